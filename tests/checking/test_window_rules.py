"""What a window says, at each limit and on each side of each condition. Readings are values here: no time passes."""

import os
from collections.abc import Mapping
from typing import Any

import pytest

from tests.checking.fake_kernel import KTHREAD
from tunectl.checking.ipis import Kind, Sent, allowed, sharing, too_many, visits
from tunectl.checking.outcomes import Settled
from tunectl.checking.tick import Spun, TickCount, counted, meaning_of, settle
from tunectl.checking.traders import (
    Trader,
    counts_waits,
    dropped,
    feeding_threads,
    is_stopped,
    kept_waiting,
    loose,
    sleeps,
    span_of,
)
from tunectl.checking.window import (
    Counters,
    Landed,
    Window,
    device_interrupts,
    is_timer_row,
    parse_idle,
    spinners,
    trespassers,
)
from tunectl.cpulist import CpuSet
from tunectl.host.interrupts import parse_interrupts
from tunectl.host.openfiles import Socket
from tunectl.host.procs import PF_NO_SETAFFINITY, Thread
from tunectl.host.timers import PERF_CLOCK, TICK
from tunectl.model import Outcome, Trading

SECONDS = 2.0
ISOLATED = frozenset({2, 3})


def thread(tid: int = 7, cpu: int = 2, **more: Any) -> Thread:
    """One that is asleep and has a CPU of its own."""
    usual: dict[str, Any] = {
        "pid": tid,
        "comm": f"t{tid}",
        "state": "S",
        "flags": 0,
        "cpu_s": 1.0,
        "run_s": 1.0,
        "slices": 5,
        "allowed": frozenset({cpu}),
        "began": "1",
        "slept": 10,
    }
    return Thread(tid=tid, cpu=cpu, **{**usual, **more})


def read(at: float, threads: list[Thread], text: str = "     CPU2 CPU3\n", **more: Any) -> Counters:
    return Counters(at, parse_interrupts(text), {}, {(one.pid, one.tid): one for one in threads}, "tsc", **more)


def between(*pairs: tuple[Thread | None, Thread | None], seconds: float = SECONDS) -> Window:
    """Threads as they were and as they are; None where one was not there."""
    before, after = ([pair[at] for pair in pairs] for at in (0, 1))
    return Window(read(0.0, [one for one in before if one]), read(seconds, [one for one in after if one]))


def grown(one: Thread, **more: Any) -> tuple[Thread, Thread]:
    """A thread and what became of it."""
    return one, one._replace(**more)


# ---- runs


@pytest.mark.parametrize(
    ("now", "ran", "busy"),
    [
        ({}, False, 0.0),
        ({"state": "R"}, True, 0.0),
        ({"slices": 6}, True, 0.0),
        ({"slices": 4}, True, 0.0),  # it began anew
        ({"run_s": 2.0}, True, 0.5),
        ({"cpu_s": 1.5}, True, 0.25),
        ({"cpu_s": 1.5, "run_s": 2.0}, True, 0.5),
        ({"run_s": 9.0}, True, 1.0),
        ({"run_s": 0.5, "cpu_s": 0.5}, False, 0.0),
    ],
)
def test_what_a_thread_did(now: dict[str, Any], ran: bool, busy: float) -> None:
    (run,) = between(grown(thread(), **now)).runs
    assert (run.ran, run.busy) == (ran, busy)


def test_a_thread_that_began_meanwhile_did_all_that_it_did() -> None:
    (run,) = between((None, thread(cpu_s=0.5, run_s=0.6))).runs
    assert (run.ran, run.busy) == (True, 0.3)


def test_the_busiest_is_the_first_and_what_has_ended_is_none() -> None:
    seen = between(
        grown(thread(1), run_s=1.5), grown(thread(2), run_s=2.5), grown(thread(3), state="Z"), grown(thread(4))
    )
    assert [run.thread.tid for run in seen.runs] == [2, 1, 4]
    assert [run.busy for run in between(grown(thread(1), run_s=5.0), seconds=0.0).runs] == [0.0]


@pytest.mark.parametrize(
    ("before", "after", "share"), [(1.0, 1.5, 0.25), (1.0, 1.0, 0.0), (1.0, 3.0, 1.0), (1.0, 9.0, 1.0), (2.0, 1.0, 0.0)]
)
def test_the_share_of_idle_time_is_one(before: float, after: float, share: float) -> None:
    seen = Window(read(0.0, [])._replace(idle_s={2: before}), read(SECONDS, [])._replace(idle_s={2: after}))
    assert (seen.idle_share(2), seen.idle_share(3)) == (share, None)
    assert Window(seen.before, seen.after._replace(at=0.0)).idle_share(2) is None
    assert Window(seen.before._replace(idle_s={}), seen.after).idle_share(2) is None
    assert Window(seen.before, seen.after._replace(idle_s={})).idle_share(2) is None


def test_idle_time_is_of_a_cpu_and_has_five_fields() -> None:
    assert parse_idle("cpu 1 1 1 1 1\ncpu0 1 1 1 7\ncpu1x 1 1 1 1 1\nctxt 1 1 1 1 1\n") == {}
    assert parse_idle("cpu2 1 0 1 100 50 0 0\n") == {2: 150 / os.sysconf("SC_CLK_TCK")}


@pytest.mark.parametrize(
    ("before", "after", "still"),
    [
        (" 30: 5 5 PCI 1-edge a\n", " 30: 5 5 PCI 1-edge a\n", True),
        (" 30: 5 5 PCI 1-edge a\n", " 30: 5 6 PCI 1-edge a\n", False),
        (" 30: 5 5 PCI 1-edge a\n", " 30: 5 5 PCI 1-edge a\n 31: 1 1 PCI 2-edge b\n", True),
        (" 30: 5 5 PCI 1-edge a\nRES: 1 1 Rescheduling interrupts\n", " 30: 5 5 PCI 1-edge a\nRES: 1 2 x\n", False),
    ],
)
def test_a_host_on_which_nothing_arrives_is_a_recording(before: str, after: str, still: bool) -> None:
    head = "     CPU2 CPU3\n"
    assert Window(read(0.0, [], head + before), read(1.0, [], head + after)).still is still


@pytest.mark.parametrize(
    ("name", "description", "is_timer"),
    [
        ("LOC", "Local timer interrupts", True),
        ("11", "GICv3 30 Level arch_timer", True),
        ("11", "PCI-MSI 1-edge eth0", False),
        ("RES", "Rescheduling interrupts", False),
    ],
)
def test_the_row_of_the_timer(name: str, description: str, is_timer: bool) -> None:
    assert is_timer_row(name, description) is is_timer


# ---- what other CPUs send


def sent(rows: Mapping[str, int], *threads: tuple[Thread | None, Thread | None]) -> Window:
    text = {"CAL": "Function call", "TLB": "TLB shootdowns", "RES": "Rescheduling", "IWI": "IRQ work"}

    def lines(times: int) -> str:
        return "     CPU2\n" + "".join(
            f"{name}: {count * times} {text[name]}{'' if name == 'TLB' else ' interrupts'}\n"
            for name, count in rows.items()
        )

    seen = between(*threads)
    return Window(
        seen.before._replace(interrupts=parse_interrupts(lines(0))),
        seen.after._replace(interrupts=parse_interrupts(lines(1))),
    )


def test_the_most_frequent_kind_is_the_first() -> None:
    found = too_many(sent({"CAL": 30, "TLB": 50, "RES": 20, "IWI": 40}), 2)
    assert found == [Sent(Kind.TLB, 50, 2.0), Sent(Kind.WORK, 40, 2.0), Sent(Kind.CALL, 30, 2.0)]
    assert [one.per_s for one in found] == [25.0, 20.0, 15.0]
    assert Sent(Kind.TLB, 5, 0.0).per_s == 0.0
    assert [allowed(seconds) for seconds in (0.1, 1.0, 2.0)] == [10.0, 10.0, 20.0]


def test_visits_are_those_of_this_cpu_by_threads_that_were_there_before() -> None:
    seen = between(
        grown(thread(1), slices=9),
        grown(thread(2), slices=6),
        grown(thread(3, cpu=3), slices=99),
        grown(thread(4), slices=0),  # another thread of that number
        (None, thread(5, slices=500)),
    )
    assert (visits(seen, 2), visits(seen, 3)) == (5, 94)


@pytest.mark.parametrize(
    ("other", "shares"),
    [
        ({"pid": 1, "cpu": 3, "state": "R"}, True),
        ({"pid": 2, "cpu": 3, "state": "R"}, False),
        ({"pid": 1, "cpu": 2, "state": "R"}, False),
        ({"pid": 1, "cpu": 3}, False),
    ],
)
def test_a_process_shares_memory_with_what_ran_elsewhere(other: dict[str, Any], shares: bool) -> None:
    here, there = thread(1), thread(9, **other)
    found = sharing(between((here, here), (there, there)), 2)
    assert [(one.thread.tid, two.thread.tid) for one, two in found] == ([(1, 9)] if shares else [])
    kernel = here._replace(flags=KTHREAD)
    assert sharing(between((kernel, kernel), (there, there)), 2) == []


# ---- who is where


def test_interrupts_of_devices_alone_and_the_most_frequent_first() -> None:
    head = "     CPU2 CPU3\n"
    rows = (
        " 30: {0} 0 PCI-MSI 1-edge a\n 31: {1} 9 PCI-MSI 2-edge b\n 32: {1} 0 PCI-MSI 3-edge c\n"
        " 33: {1} 0 GICv3 30 Level arch_timer\nRES: {1} 0 Rescheduling\n"
    )
    seen = Window(read(0.0, [], head + rows.format(0, 0)), read(1.0, [], head + rows.format(1, 4)))
    assert device_interrupts(seen, 2) == [Landed(31, "b", 4), Landed(32, "c", 4), Landed(30, "a", 1)]


@pytest.mark.parametrize(
    ("one", "found"),
    [
        ({}, [True]),  # pinned, whether it ran or not
        ({"allowed": ISOLATED}, [True]),
        ({"allowed": ISOLATED, "cpu": 0}, [True]),  # it will be moved to the first of them
        ({"allowed": frozenset({3}), "cpu": 2}, []),
        ({"allowed": frozenset({1, 2})}, []),
        ({"allowed": frozenset({1, 2}), "state": "R"}, [False]),
        ({"allowed": frozenset({1, 2}), "state": "R", "cpu": 1}, []),
        ({"allowed": None, "state": "R"}, [False]),
        ({"flags": KTHREAD}, []),
        ({"flags": KTHREAD, "state": "R"}, [False]),
        ({"flags": KTHREAD | PF_NO_SETAFFINITY, "state": "R"}, []),
        ({"comm": "kworker/2:1", "flags": KTHREAD, "state": "R"}, []),
    ],
)
def test_who_trespasses_on_an_isolated_cpu(one: dict[str, Any], found: list[bool]) -> None:
    seen = thread(7, **{"cpu": 2, **one}) if "cpu" in one else thread(**one)
    assert [each.pinned for each in trespassers(between((seen, seen)), 2, ISOLATED)] == found


def test_who_is_pinned_comes_first() -> None:
    visitor, pinned = thread(1, allowed=frozenset({1, 2}), state="R"), thread(2)
    assert [one.run.thread.tid for one in trespassers(between((visitor, visitor), (pinned, pinned)), 2, ISOLATED)] == [
        2,
        1,
    ]


def test_a_cpu_has_one_spinner_the_busiest() -> None:
    seen = between(
        grown(thread(1, cpu=3), run_s=2.2),
        grown(thread(2, cpu=2), run_s=2.1),
        grown(thread(3, cpu=2), run_s=2.5),
        grown(thread(4, cpu=1), run_s=3.0),
        grown(thread(5, cpu=0), run_s=2.0),
    )
    assert [run.thread.tid for run in spinners(seen, frozenset({0, 2, 3}))] == [3, 1]


# ---- the tick


def test_each_cpu_of_the_spinners_is_counted_in_its_order() -> None:
    head, row = "     CPU2 CPU3\n", "LOC: {} {} Local timer interrupts\n"
    seen = Window(read(0.0, [], head + row.format(1, 1)), read(SECONDS, [], head + row.format(4, 41)))
    spun = {3: Spun(2.0), 2: Spun(2.0), 5: Spun(2.0)}
    assert [(one.cpu, one.ticks, one.seconds) for one in counted(seen, spun)] == [
        (2, 3, 2.0),
        (3, 40, 2.0),
        (5, None, 2.0),
    ]
    outcomes = [settle(one).outcome for one in counted(seen, spun)]
    assert outcomes == [Outcome.COMPLIANT, Outcome.DRIFTED, Outcome.UNREADABLE]


def test_a_tick_is_told_by_the_second() -> None:
    assert TickCount(2, 30, 2.0, Spun(2.0)).per_s == 15.0
    assert TickCount(2, None, 2.0, Spun(2.0)).per_s == 0.0
    assert TickCount(2, 30, 0.0, Spun(0.0)).per_s == 0.0
    found = settle(TickCount(2, 31, 3.0, Spun(3.0)))
    assert (found.outcome, found.observed, found.desired) == (Outcome.DRIFTED, 10.3, 10.0)


@pytest.mark.parametrize("served", [False, True, None])
def test_a_fair_server_is_switched_off_where_there_is_one(served: bool | None) -> None:
    found = settle(TickCount(2, 99, 2.0, Spun(2.0)), serves=lambda _: served)
    assert ("fair_server/cpu2/runtime" in str(found.fix)) is (served is True)
    assert ("fair server" in found.reason) is (served is not False)


def test_functions_of_timers_in_words() -> None:
    ticks = sorted(TICK)
    assert meaning_of([], ["prog"]) == []
    assert meaning_of([ticks[0]], ["prog"]) == ["the tick itself is set there"]
    assert meaning_of(["b", "a"], ["prog"]) == [
        "the timer a is set there",
        "the timer b is set there",
        "the tick itself is off",
    ]
    assert meaning_of([PERF_CLOCK], []) == ["a perf clock event is set there", "the tick itself is off"]
    assert meaning_of([PERF_CLOCK, ticks[0]], ["x", "y"]) == [
        "a perf clock event is set there (perf events are held by x, y)",
        "the tick itself is set there",
    ]


# ---- declared threads

RX = Trading("rx", "feed.service", "", "rx", 2, "fifo", 50, False, ("eth0", "tx"), True)
TX = RX._replace(name="tx", cpu=3, fed_by=())


def trader(*threads: Thread, declared: Trading = RX) -> Trader:
    return Trader(declared, threads)


@pytest.mark.parametrize("now", [{"began": "2"}, {"state": "Z"}])
def test_a_span_is_of_one_and_the_same_thread(now: dict[str, Any]) -> None:
    one = thread()
    assert span_of(between(grown(one)), trader(one)) == (one, one)
    with pytest.raises(Settled) as settled:
        span_of(between(grown(one, **now)), trader(one))
    assert settled.value.outcome is Outcome.UNREADABLE


@pytest.mark.parametrize("pair", [(None, thread()), (thread(), None)])
def test_one_that_came_or_went_has_no_span(pair: tuple[Thread | None, Thread | None]) -> None:
    with pytest.raises(Settled):
        span_of(between(pair), trader(thread()))
    with pytest.raises(Settled, match="is 2 threads"):
        span_of(between((thread(), thread())), trader(thread(), thread(8)))


@pytest.mark.parametrize(
    ("before", "after", "times"),
    [
        ({"state": "R"}, {"state": "R"}, 0),
        ({"state": "R"}, {"state": "R", "slept": 13}, 3),
        ({"state": "R"}, {"state": "S"}, 0),
        ({"state": "S"}, {"state": "R"}, 0),
        ({"state": "S"}, {"state": "S"}, 1),
        ({"state": "D"}, {"state": "S"}, 1),
        ({"state": "S"}, {"state": "S", "slept": 14}, 4),
        ({"state": "R"}, {"state": "R", "slept": 3}, 0),
        ({"slept": None}, {}, None),
        ({}, {"slept": None}, None),
    ],
)
def test_how_often_a_thread_slept(before: dict[str, Any], after: dict[str, Any], times: int | None) -> None:
    then, now = thread(**before), thread(**after)
    assert sleeps(span_of(between((then, now)), trader(then))) == times


@pytest.mark.parametrize(("before", "after", "stopped"), [("R", "R", 0), ("T", "R", 1), ("R", "t", 1), ("S", "D", 0)])
def test_a_stop_at_either_end_is_one(before: str, after: str, stopped: int) -> None:
    then, now = thread(state=before), thread(state=after)
    assert is_stopped(span_of(between((then, now)), trader(then))) is bool(stopped)


def test_whether_the_kernel_counts_waits() -> None:
    assert counts_waits(between(grown(thread(1, slices=0)), grown(thread(2, slices=1))))
    assert not counts_waits(between(grown(thread(1, slices=0)), grown(thread(2, slices=0))))


FIFO = {"policy": 1, "rt_priority": 50}


@pytest.mark.parametrize(
    ("before", "after", "waits_s"),
    [
        ({}, {"waited_s": 0.02}, None),  # a hundredth of the window
        ({}, {"waited_s": 0.021}, 0.021),
        ({"waited_s": 1.0}, {"waited_s": 0.5}, None),
        ({"cpu": 3}, {"cpu": 3, "waited_s": 1.0}, None),
        ({"cpu": 3}, {"cpu": 2, "waited_s": 1.0}, 1.0),
        ({"cpu": 2}, {"cpu": 3, "waited_s": 1.0}, 1.0),
        ({"state": "R"}, {"state": "R"}, 2.0),  # ready all along, and never ran
        ({"state": "S"}, {"state": "R"}, None),
        ({"state": "R"}, {"state": "S"}, None),
        ({"state": "R"}, {"state": "R", "slices": 6}, None),
        ({"state": "R"}, {"state": "R", "run_s": 1.1}, None),
        ({"state": "R"}, {"state": "R", "cpu_s": 1.1}, None),
        ({"state": "R", **FIFO}, {"state": "R", **FIFO}, 2.0),
        ({"state": "R", **FIFO, "rt_priority": 51}, {"state": "R", **FIFO, "rt_priority": 51}, None),
        ({}, {"state": "Z", "waited_s": 1.0}, None),
    ],
)
def test_a_feeder_that_waits_for_the_cpu(before: dict[str, Any], after: dict[str, Any], waits_s: float | None) -> None:
    then, now = thread(9, **before), thread(9, **after)
    own = thread(**FIFO)
    found = kept_waiting(between((own, own), (then, now)), trader(own), [now])
    assert [pytest.approx(one.seconds) for one in found] == ([] if waits_s is None else [waits_s])


def test_who_feeds_a_thread() -> None:
    names = ["irq/33-eth0", "irq/333-eth1", "napi/eth0-8193", "napi/eth1-8194", "irq/34-x"]
    kernel = [thread(number, comm=name, flags=KTHREAD) for number, name in enumerate(names, start=10)]
    user = thread(20, comm="irq/33-fake")
    declared, other = thread(7), thread(8)
    every = [*kernel, user, declared, other]
    window = between(*((one, one) for one in every))
    traders = [trader(declared), trader(other, declared=TX), trader(thread(9), declared=TX._replace(name="no"))]
    found = feeding_threads(window, traders[0], traders, frozenset({33}))
    assert [one.comm for one in found] == ["irq/33-eth0", "napi/eth0-8193", "t8"]


@pytest.mark.parametrize(
    ("allowed", "is_loose"), [({1, 2}, True), ({2}, True), ({0, 1}, False), (set(), False), (None, False)]
)
def test_a_feeder_that_may_run_on_an_isolated_cpu_is_loose(allowed: CpuSet | None, is_loose: bool) -> None:
    one = thread(9, allowed=None if allowed is None else frozenset(allowed))
    assert loose([one], [trader(thread())], ISOLATED) == ([one] if is_loose else [])
    assert loose([one], [trader(one)], ISOLATED) == []


def test_what_was_dropped_for_a_thread_since_the_window_began() -> None:
    own, feeder, stranger = thread(7), thread(8), thread(9)
    traders = [trader(own), trader(feeder, declared=TX), trader(stranger, declared=TX._replace(name="no"))]

    def state(backlog: dict[int, int], **drops: int) -> Counters:
        sockets = {(int(pid[1:]), 5): Socket(5, 4000, count) for pid, count in drops.items()}
        return read(0.0, [], backlog_drops=backlog, sockets=sockets)

    def lost(before: Counters, after: Counters) -> list[int]:
        return [
            int(line.split("dropped ")[1].split()[0]) for line in dropped(Window(before, after), traders[0], traders)
        ]

    assert lost(state({2: 5}, p7=1, p8=2, p9=3), state({2: 9}, p7=3, p8=5, p9=9)) == [4, 2, 3]
    assert lost(state({2: 5}, p7=1), state({2: 5}, p7=1)) == []
    assert lost(state({2: 5}), state({2: 4}, p7=7)) == []  # counted anew; a socket that was opened meanwhile
    assert lost(state({3: 5}), state({2: 9, 3: 9})) == []
