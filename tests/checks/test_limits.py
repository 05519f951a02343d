"""Every numeric limit of a check, at the limit and one step beside it. The counters are values here: no time passes."""

from __future__ import annotations

import os
import runpy
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.checking.fake_kernel import FakeKernel, Process
from tests.checks.conftest import Judge
from tests.checks.test_trading_check import FEED, FILES, RX
from tests.hosts.builder import build_named
from tunectl.checking.judges import BUSY, IDLE, TICKS_PER_S, device_name, trespassers
from tunectl.checking.outcomes import Settled
from tunectl.checking.runner import shipped_checks
from tunectl.checking.window import Counters, Window
from tunectl.host.cpusets import CpuFacts, read_scope_facts
from tunectl.host.interrupts import parse_interrupts
from tunectl.host.procs import Thread
from tunectl.host.sysroot import Sysroot
from tunectl.model import Outcome, Scope


def shipped(module: str, name: str) -> Callable[..., None]:
    """The function behind check.<name>."""
    check: Callable[..., None] = runpy.run_path(str(shipped_checks() / f"{module}.py"))[f"test_{name}"]
    return check


tick_off = shipped("test_tick", "tick_off")
spinners_apart = shipped("test_cores", "spinners_apart")
device_interrupts = shipped("test_interrupts", "device_interrupts")
SECONDS = 2.0
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
SCOPE = Scope(frozenset(range(32)), frozenset(range(32)), frozenset({2, 18}), 32)
SPINNER = Thread(700, 700, "feed", "S", 0, 2, 0.0, 0.0, 5, frozenset({2}))


@dataclass
class Given:
    """pytest's `request`, for a check that asks for its window late."""

    window: Window

    def getfixturevalue(self, _: str) -> Window:
        """The window, whatever its name."""
        return self.window


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


@pytest.mark.parametrize(
    ("ticks", "wanted"),
    [(TICKS_PER_S * SECONDS, Outcome.COMPLIANT), (TICKS_PER_S * SECONDS + 1, Outcome.DRIFTED)],
)
def test_the_tick(facts: CpuFacts, ticks: float, wanted: Outcome) -> None:
    given = Given(window(loc=int(ticks)))
    assert outcome(lambda: tick_off(2, facts, given)) == wanted


@pytest.mark.parametrize(("idle", "wanted"), [(IDLE, Outcome.COMPLIANT), (IDLE + TICK_S / SECONDS, Outcome.UNREADABLE)])
def test_a_cpu_that_idled_proves_no_tick(facts: CpuFacts, idle: float, wanted: Outcome) -> None:
    given = Given(window(loc=0, idle_s=idle * SECONDS))
    assert outcome(lambda: tick_off(2, facts, given)) == wanted


@pytest.mark.parametrize(("busy", "wanted"), [(BUSY, Outcome.COMPLIANT), (BUSY + 0.001, Outcome.DRIFTED)])
def test_a_spinner_is_more_than_half_of_a_cpu(busy: float, wanted: Outcome) -> None:
    first = SPINNER._replace(run_s=SECONDS)
    second = SPINNER._replace(pid=701, tid=701, cpu=18, allowed=frozenset({18}), run_s=busy * SECONDS)
    seen = window(first, second)
    assert outcome(lambda: spinners_apart(frozenset({2, 18}), seen, SCOPE)) == wanted


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
    with FakeKernel(xeon, range(32), processes=[rx]):
        found = judge(xeon, {2, 3, 18, 19}, "test_trading.py", trading=(FEED,))
    assert found["check.trading_memory_local[rx]"].outcome == wanted
