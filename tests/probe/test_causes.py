"""What a gap was for, by made-up events: each is (ticks, what), and a tick is a nanosecond."""

import random
from collections.abc import Iterable, Sequence

import pytest

from tunectl.probe.causes import (
    LABELS_MOST,
    Beyond,
    Cause,
    Event,
    Interruption,
    Joined,
    Kind,
    Lost,
    State,
    Switch,
    Work,
    join,
    table,
)

OWN, OTHER, KWORKER = 700, 41, 9
TIMER = Interruption(Cause(Kind.TIMER, "local timer"))
SOFTIRQ = Interruption(Cause(Kind.SOFTIRQ, "softirq TIMER"))
IRQ = Interruption(Cause(Kind.IRQ, "irq 36 eth0"))


def to(tid: int, left: int = OWN, state: State = State.READY) -> Switch:
    return Switch(left, state, tid, Cause(Kind.THREAD, f"thread t{tid}"))


def back(left: int = OTHER) -> Switch:
    return to(OWN, left)


IDLE = to(0)


def named(gaps: Sequence[Sequence[int]], events: Iterable[Event], error_ticks: int = 0, **how: bool) -> list[str]:
    joined = join(gaps, events, OWN, 1e9, error_ticks=error_ticks, **how)
    assert len(joined.of_gap) == len(gaps)
    return [joined.causes[at].label for at in joined.of_gap]


OUTSIDE = "not the kernel: hypervisor, SMI or hardware"
LOST = "not known: events of the trace were lost"
ELSEWHERE = "not known: the probe was on another CPU, which was not traced for it"
UNSEEN = "not known: the trace lacks the switch back to the probe"
THROTTLED = "throttled: cpu.max of its control group"


@pytest.mark.parametrize(
    ("events", "cause"),
    [
        ([], OUTSIDE),
        ([(1100, TIMER)], "local timer"),
        # By how long each held the CPU: until the next one, or the end.
        ([(1100, TIMER), (1200, SOFTIRQ)], "softirq TIMER + local timer"),
        ([(1100, TIMER), (8000, SOFTIRQ)], "local timer + softirq TIMER"),
        ([(1100, TIMER), (1200, to(OTHER)), (9900, back())], "thread t41 + local timer"),
        ([(1100, TIMER), (9000, to(OTHER)), (9900, back())], "local timer + thread t41"),
        # What interrupts the other thread is no cause; what comes once the CPU is back is one.
        ([(1100, to(OTHER)), (2000, IRQ), (5000, TIMER), (9900, back())], "thread t41"),
        ([(1100, to(OTHER)), (2000, back()), (9000, IRQ)], "thread t41 + irq 36 eth0"),
        ([(1100, to(OTHER)), (2000, to(KWORKER, OTHER)), (9000, back(KWORKER))], "thread t9 + thread t41"),
        # A hypervisor that kept the CPU hands over a pending interrupt when it gives it back.
        ([(6001, TIMER)], f"{OUTSIDE} + local timer"),
        ([(6000, TIMER)], "local timer"),
        ([(1100, to(KWORKER)), (1200, Work(Cause(Kind.WORK, "work f"))), (9000, back(KWORKER))], "work f + thread t9"),
    ],
)
def test_a_gap_is_named_after_what_held_the_cpu_longest(events: list[Event], cause: str) -> None:
    assert named([[1000, 10000]], events) == [cause]


CALL = Interruption(Cause(Kind.IPI, "function call IPI"))


@pytest.mark.parametrize(
    ("events", "is_guest", "cause"),
    [
        # The other CPU's interrupt made the guest leave: the hypervisor is its way in.
        ([(20_000, CALL)], True, f"function call IPI + {OUTSIDE}"),
        ([(20_000, CALL), (20_500, SOFTIRQ)], True, f"function call IPI + {OUTSIDE} + softirq TIMER"),
        # The nearest others: no hypervisor, one that kept the CPU for longer, and what no other CPU sent.
        ([(20_000, CALL)], False, f"{OUTSIDE} + function call IPI"),
        ([(101_001, CALL)], True, f"{OUTSIDE} + function call IPI"),
        ([(20_000, TIMER)], True, f"{OUTSIDE} + local timer"),
    ],
)
def test_what_a_guest_left_for_is_named_before_the_hypervisor(events: list[Event], is_guest: bool, cause: str) -> None:
    end = events[-1][0] + 1000
    assert named([[1000, end]], events, is_guest=is_guest) == [cause]


def test_no_more_than_four_parts_are_named() -> None:
    events: list[Event] = [(1000 + 10 * n, Interruption(Cause(Kind.IRQ, f"irq {n}"))) for n in range(5)]
    assert named([[1000, 1060]], events) == ["irq 4 + irq 0 + irq 1 + irq 2 + more"]
    assert named([[1000, 1060]], events[:4]) == ["irq 3 + irq 0 + irq 1 + irq 2"]


@pytest.mark.parametrize(
    ("events", "cause"),
    [
        # A signal stops it: whoever uses the CPU meanwhile does not take it away.
        ([(1100, to(0, state=State.STOPPED)), (5000, to(OTHER, 0)), (9900, back())], "stopped by a signal"),
        # Ready to run, and the CPU idle: that is what throttling is.
        ([(1100, IDLE), (9900, back(0))], THROTTLED),
        ([(1100, to(OTHER)), (2000, to(0, OTHER)), (9900, back(0))], f"{THROTTLED} + thread t41"),
        # The nearest innocent ones: it slept, as in a page fault that reads a disk; another ran all the time.
        ([(1100, to(0, state=State.ASLEEP)), (9900, back(0))], "the probe's own thread slept"),
        ([(1100, to(OTHER)), (9900, back())], "thread t41"),
    ],
)
def test_how_the_thread_left_decides(events: list[Event], cause: str) -> None:
    assert named([[1000, 10000]], events) == [cause]


def test_under_fifo_it_is_the_share_of_real_time_threads_that_throttles() -> None:
    assert named([[1000, 10000]], [(1100, IDLE), (9900, back(0))], is_fifo=True) == [
        "throttled: kernel.sched_rt_runtime_us"
    ]


def test_where_the_kernel_counted_no_move_none_is_claimed() -> None:
    """Some kernels leave a switch out of their trace; the thread was here all the same, and the other had this CPU."""
    gaps = [[1000, 10_000], [20_000, 21_000]]
    events: list[Event] = [(1200, to(KWORKER)), (20_500, TIMER)]
    assert named(gaps, events, has_moved=False) == ["thread t9", "local timer"]
    assert named(gaps, events, has_moved=True) == [
        "moved to another CPU",
        ELSEWHERE,
    ]


def test_a_throttle_is_named_where_the_trace_lacks_the_way_back() -> None:
    gaps = [[1000, 70_000], [101_000, 170_000]]
    events: list[Event] = [(1100, TIMER), (1200, IDLE), (40_000, TIMER), (101_200, IDLE), (169_900, back(0))]
    assert named(gaps, events, has_moved=False) == [f"{THROTTLED} + local timer", THROTTLED]


def test_who_had_the_cpu_of_a_thread_whose_way_from_it_is_lacking_is_not_known() -> None:
    assert named([[1000, 2000], [20_000, 21_000]], [(900, Lost(OTHER)), (1500, TIMER)], has_moved=False) == [
        UNSEEN,
        OUTSIDE,
    ]


def test_a_thread_that_runs_on_without_this_cpu_has_moved() -> None:
    """Its gap ends, and it was not given this CPU: an idle one is not throttling then."""
    gaps = [[1000, 10_000], [20_000, 21_000], [30_000, 39_000], [50_000, 51_000]]
    events: list[Event] = [
        (1100, TIMER),
        (1200, to(KWORKER)),
        (1500, to(0, KWORKER)),
        (20_500, TIMER),
        (38_000, back(0)),
        (50_100, TIMER),
    ]
    assert named(gaps, events) == [
        "moved to another CPU + local timer",
        ELSEWHERE,
        "moved to another CPU",
        "local timer",
    ]
    assert named(gaps[:1], [(1100, IDLE), (9900, back(0))]) == [THROTTLED]


def test_events_outside_of_gaps_are_counted_and_change_nothing_but_who_runs() -> None:
    events: list[Event] = [
        (10, to(OWN, 0)),
        (500, TIMER),
        (1100, IRQ),
        (2500, to(OTHER)),
        (2600, back()),
        (9000, TIMER),
    ]
    joined = join([[1000, 2000], [3000, 4000]], events, OWN, 1e9)
    assert [joined.causes[at].label for at in joined.of_gap] == ["irq 36 eth0", OUTSIDE]
    assert (joined.events, joined.apart) == (6, 5)


def test_what_is_lost_is_not_known_and_nothing_beside_it() -> None:
    """Between 1,500 and 4,500 events were lost: any gap that overlaps this has no known cause."""
    gaps = [[1000, 1400], [1450, 1600], [2000, 3000], [4000, 5000], [6000, 7000]]
    events: list[Event] = [(1100, TIMER), (1500, TIMER), (4500, Lost(OWN)), (4500, IRQ), (6100, IRQ)]
    assert named(gaps, events) == ["local timer", LOST, LOST, LOST, "irq 36 eth0"]
    # Where another thread had the CPU behind it, that one has it until it gives it back.
    away: list[Event] = [(1100, TIMER), (4500, Lost(OTHER)), (4600, IRQ), (4900, back()), (6100, IRQ)]
    assert named(gaps, away)[3:] == [LOST, "irq 36 eth0"]


def test_behind_a_trace_that_is_cut_nothing_is_known() -> None:
    gaps = [[1000, 2000], [3000, 4000]]
    assert named(gaps, [(1100, TIMER)], is_cut=True) == [LOST, LOST]
    assert named(gaps, [(1100, TIMER), (2500, TIMER)], is_cut=True) == ["local timer", LOST]
    assert named(gaps, [(1100, TIMER), (2500, TIMER)]) == ["local timer", OUTSIDE]


def test_each_gap_is_in_one_row_and_the_rows_add_up() -> None:
    gaps = [[1000, 1004], [2000, 2004], [3000, 3011]]
    joined = join(gaps, [(1001, TIMER), (2001, TIMER)], OWN, 3e9)
    rows = table(gaps, joined, 3e9, 6, Beyond(0, 0))
    # 11 ticks are 3.67 ns and 8 are 2.67; the run's total, 19 ticks, is 6 ns.
    assert [(row.cause, row.count, row.total_ns, row.max_ns) for row in rows] == [
        (OUTSIDE, 1, 4, 3),
        ("local timer", 2, 2, 1),
    ]
    beyond = table(gaps, joined, 3e9, 1004, Beyond(7, 600))
    assert beyond[0].cause == "not known: beyond the list of events"
    assert (beyond[0].count, beyond[0].total_ns, beyond[0].max_ns) == (7, 999, 600)
    assert table([], Joined([], [], 0, 0), 3e9, 0, Beyond(0, 0)) == []


def test_of_very_many_causes_the_first_part_stays() -> None:
    draw = random.Random(3)
    gaps = [[1000 * n, 1000 * n + 900] for n in range(1, LABELS_MOST + 200)]
    events: list[Event] = []
    for start, _ in gaps:
        events += [(start + 1, TIMER), (start + 500, Interruption(Cause(Kind.IRQ, f"irq {start}")))]
    names = named(gaps, events)
    assert len(set(names)) <= LABELS_MOST + 1
    assert names[0] == "local timer + irq 1000"
    assert draw.choice(names[-100:]) == "local timer + more"


def test_whatever_the_events_every_gap_has_one_cause() -> None:
    """Any order of kinds: gaps, counts and totals stay whole."""
    for seed in range(60):
        draw = random.Random(seed)
        stamps = sorted(draw.sample(range(100_000), 40))
        gaps = [[stamps[at], stamps[at + 1]] for at in range(0, 40, 2)]
        kinds = (TIMER, IRQ, to(OTHER), IDLE, back(), to(0, OTHER), Lost(OWN), Lost(OTHER), to(0, state=State.STOPPED))
        events: list[Event] = sorted(
            ((draw.randrange(100_000), draw.choice(kinds)) for _ in range(80)), key=lambda e: e[0]
        )
        joined = join(gaps, events, OWN, 1e9, is_cut=draw.random() < 0.5)
        stolen = sum(end - start for start, end in gaps)
        rows = table(gaps, joined, 1e9, stolen, Beyond(0, 0))
        assert (sum(row.count for row in rows), sum(row.total_ns for row in rows)) == (20, stolen)
        assert joined.events == 80
