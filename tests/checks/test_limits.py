"""Every numeric limit of a check, at the limit and one step beside it. The counters are values here: no time passes."""

import runpy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.checking.fake_kernel import Process
from tests.checks.conftest import Judge
from tests.checks.test_trading_check import FEED, FILES, RX
from tests.hosts.builder import build_named
from tunectl.checking.ipis import too_many
from tunectl.checking.outcomes import Settled
from tunectl.checking.runner import shipped_checks
from tunectl.checking.tick import TICKS_PER_S, Spun, TickCount, settle
from tunectl.checking.window import BUSY, Counters, Window, device_name, trespassers
from tunectl.host.cpusets import CpuFacts, read_scope_facts
from tunectl.host.interrupts import parse_interrupts
from tunectl.host.procs import Thread
from tunectl.host.sysroot import Sysroot
from tunectl.model import Outcome, Scope


def shipped(module: str, name: str) -> Callable[..., None]:
    """The function behind check.<name>."""
    check: Callable[..., None] = runpy.run_path(str(shipped_checks() / f"{module}.py"))[f"test_{name}"]
    return check


spinners_apart = shipped("test_cores", "spinners_apart")
device_interrupts = shipped("test_interrupts", "device_interrupts")
SECONDS = 2.0
SCOPE = Scope(frozenset(range(32)), frozenset(range(32)), frozenset({2, 18}), 32)
SPINNER = Thread(700, 700, "feed", "S", 0, 2, 0.0, 0.0, 5, frozenset({2}))


def counters(
    at: float, *, loc: int = 0, irq: int = 0, idle_s: float = 0.0, threads: tuple[Thread, ...] = ()
) -> Counters:
    text = f"     CPU2\n 30: {irq} PCI-MSI 1-edge eth0\nLOC: {loc} Local timer interrupts\n"
    by_id = {(one.pid, one.tid): one for one in threads}
    return Counters(at, parse_interrupts(text), {2: idle_s}, by_id, "tsc")


def window(*threads: Thread, loc: int = 0, irq: int = 0, idle_s: float = 0.0) -> Window:
    """Two seconds in which this much came, and in which each thread ran for its `run_s`."""
    before = counters(0.0, threads=tuple(one._replace(run_s=0.0) for one in threads))
    return Window(before, counters(SECONDS, loc=loc, irq=irq, idle_s=idle_s, threads=threads))


_ROWS = {
    "CAL": "Function call interrupts",
    "TLB": "TLB shootdowns",
    "RES": "Rescheduling interrupts",
    "IWI": "IRQ work interrupts",
}


def sent_to_2(row: str, times: int, *threads: Thread, seconds: float = SECONDS) -> Window:
    """A window in which so many interrupts of a row came to CPU 2; `threads`: one, before and after."""

    def at(when: float, count: int, thread: tuple[Thread, ...]) -> Counters:
        text = f"     CPU2\n{row}: {count} {_ROWS[row]}\n"
        return Counters(when, parse_interrupts(text), {}, {(one.pid, one.tid): one for one in thread}, "tsc")

    return Window(at(0.0, 0, threads[:1]), at(seconds, times, threads[1:]))


def outcome(check: Callable[[], None]) -> Outcome:
    """What the runner makes of it."""
    try:
        check()
    except Settled as settled:
        return settled.outcome
    except AssertionError:
        return Outcome.DRIFTED
    return Outcome.COMPLIANT


@pytest.fixture
def facts(tmp_path: Path) -> CpuFacts:
    """CPUs 2-3 isolated, with nohz_full."""
    return read_scope_facts(Sysroot(str(build_named(tmp_path / "host", "lab4", tuned_boot=frozenset({2, 3})))))


def tick(ticks: int | None, seconds: float = SECONDS, spun_s: float = SECONDS) -> Outcome:
    """The verdict on CPU 2 after so many timer interrupts."""
    return settle(TickCount(2, ticks, seconds, Spun(spun_s))).outcome


@pytest.mark.parametrize(
    ("ticks", "wanted"), [(TICKS_PER_S * SECONDS, Outcome.COMPLIANT), (TICKS_PER_S * SECONDS + 1, Outcome.DRIFTED)]
)
def test_the_tick(ticks: float, wanted: Outcome) -> None:
    assert tick(int(ticks)) == wanted


@pytest.mark.parametrize(("ticks", "wanted"), [(5, Outcome.COMPLIANT), (6, Outcome.DRIFTED)])
def test_a_few_timers_in_a_moment_are_no_tick(ticks: int, wanted: Outcome) -> None:
    """In a tenth of a second as many may come as in half a second, and it has to be a slow tick's spinner all along."""
    assert tick(ticks, 0.1, 0.1) == wanted


@pytest.mark.parametrize(("spun_s", "wanted"), [(0.4, Outcome.COMPLIANT), (0.399, Outcome.UNREADABLE)])
def test_where_nothing_spun_for_long_no_tick_is_proved(spun_s: float, wanted: Outcome) -> None:
    """A fifth of the time: there, a tick of 100 a second would have made twice what is allowed."""
    assert tick(0, spun_s=spun_s) == wanted
    assert tick(21, spun_s=spun_s) == Outcome.DRIFTED


@pytest.mark.parametrize(("sent", "loud"), [(20, False), (21, True)])
@pytest.mark.parametrize("row", ["CAL", "TLB", "RES", "IWI"])
def test_interrupts_from_other_cpus(row: str, sent: int, loud: bool) -> None:
    """Ten a second of each kind."""
    assert bool(too_many(sent_to_2(row, sent), 2)) == loud


@pytest.mark.parametrize(("row", "counts"), [("CAL", False), ("RES", False), ("TLB", True), ("IWI", True)])
def test_what_woke_a_thread_is_its_own_affair(row: str, counts: bool) -> None:
    """A thread that sleeps and is woken 500 times, by as many calls or reschedules, and one more."""
    asleep = SPINNER._replace(slices=10)
    woken = asleep._replace(slices=510)
    assert bool(too_many(sent_to_2(row, 520, asleep, woken), 2)) == counts
    assert too_many(sent_to_2(row, 521, asleep, woken), 2)


@pytest.mark.parametrize(("seconds", "loud"), [(0.1, False), (1.0, False), (0.99, False)])
def test_a_handful_in_a_moment_is_none_at_work(seconds: float, loud: bool) -> None:
    assert bool(too_many(sent_to_2("CAL", 10, seconds=seconds), 2)) == loud
    assert too_many(sent_to_2("CAL", 11, seconds=seconds), 2)


@pytest.mark.parametrize(("busy", "wanted"), [(BUSY, Outcome.COMPLIANT), (BUSY + 0.001, Outcome.DRIFTED)])
def test_a_spinner_is_more_than_half_of_a_cpu(busy: float, wanted: Outcome) -> None:
    first = SPINNER._replace(run_s=SECONDS)
    second = SPINNER._replace(pid=701, tid=701, cpu=18, allowed=frozenset({18}), run_s=busy * SECONDS)
    seen = window(first, second)
    assert outcome(lambda: spinners_apart(frozenset({2, 18}), seen, SCOPE, [])) == wanted


@pytest.mark.parametrize(("times", "wanted"), [(0, Outcome.COMPLIANT), (1, Outcome.DRIFTED)])
def test_one_interrupt_is_enough(facts: CpuFacts, tmp_path: Path, times: int, wanted: Outcome) -> None:
    scope = Scope(facts.present, facts.online, frozenset({2}), facts.nr_cpus)
    host = Sysroot(str(tmp_path / "host"))
    assert outcome(lambda: device_interrupts(2, window(irq=times), host, scope)) == wanted
    assert device_name("PCI-MSI 1-edge eth0") == "eth0"


@pytest.mark.parametrize(("slices", "found"), [(5, 0), (6, 1)])
def test_one_visit_is_enough(slices: int, found: int) -> None:
    """A thread that may run anywhere was put on the CPU once more than before, or it was not."""
    visitor = SPINNER._replace(allowed=frozenset(range(4)))
    seen = Window(counters(0.0, threads=(visitor,)), counters(SECONDS, threads=(visitor._replace(slices=slices),)))
    assert len(trespassers(seen, 2, frozenset({2, 3}))) == found


@pytest.mark.parametrize(
    ("far_pages", "wanted"), [(50, Outcome.COMPLIANT), (51, Outcome.DRIFTED)], ids=["a twentieth", "more"]
)
def test_memory_on_another_node(xeon: Path, judge: Judge, far_pages: int, wanted: Outcome) -> None:
    maps = f"7f00 default anon=1000 N0={1000 - far_pages} N1={far_pages} kernelpagesize_kB=4\n"
    rx: Process = replace(RX, files={**FILES, "numa_maps": maps})
    found = judge(xeon, {2, 3, 18, 19}, "test_trading.py", trading=(FEED,), processes=[rx])
    assert found["check.trading_memory_local[rx]"].outcome == wanted
