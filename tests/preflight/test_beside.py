"""CPUs that are judged beside a running engine: counts can break a limit, and can never keep one."""

from dataclasses import replace
from typing import Any

import pytest

from tests.checking.fake_kernel import FakeKernel, Process, Row
from tests.probe.samples import typed_result
from tunectl.host.interrupts import Interrupts
from tunectl.host.interrupts import Row as InterruptRow
from tunectl.host.occupants import Occupant
from tunectl.host.procs import Thread
from tunectl.host.sysroot import Sysroot
from tunectl.model import Finding, Outcome
from tunectl.preflight.beside import Beheld, Beside, behold, broken, compare
from tunectl.preflight.gate import Parts, decide

KEY = (70, 71)
LIMITS = {"interruptions_per_s": 10.0, "stolen_ppm": 100.0, "max_ns": 1.0, "p99_9_ns": 1.0}


def engine(**more: Any) -> Thread:
    fields: dict[str, Any] = {"state": "R", "run_s": 0.0, "slices": 1, "waited_s": 0.0, "preempted": 0}
    return Thread(pid=70, tid=71, comm="engine", flags=0, cpu=2, cpu_s=0.0, **{**fields, **more})


THERE = {2: [Occupant(engine(), "engine")]}


def table(count: int) -> Interrupts:
    """A table of CPU 2, where the timer came so often."""
    return Interrupts((2,), {"LOC": InterruptRow((count,), "Local timer interrupts")})


def seen(interrupts: int = 0, steal_s: float = 0.0, seconds: float = 2.0, **now: Any) -> Beside:
    before = Beheld(0.0, table(1000), {2: 1.0}, {KEY: engine()})
    after = Beheld(seconds, table(1000 + interrupts), {2: 1.0 + steal_s}, {KEY: engine(**now)})
    (one,) = compare(before, after, THERE)
    return one


@pytest.mark.parametrize(
    ("one", "limit"),
    [
        (seen(21), "interruptions_per_s"),
        (seen(18, preempted=3, slices=4), "interruptions_per_s"),
        (seen(waited_s=201e-6), "stolen_ppm"),
        (seen(steal_s=0.01), "stolen_ppm"),
    ],
)
def test_counts_break_a_limit(one: Beside, limit: str) -> None:
    (line,) = broken([one], LIMITS)
    assert f"({limit})" in line
    assert "CPU 2, beside engine (tid 71, declared as engine)" in line


@pytest.mark.parametrize("one", [seen(), seen(20), seen(17, preempted=3, slices=4), seen(waited_s=200e-6)])
def test_at_the_limit_is_within(one: Beside) -> None:
    assert broken([one], LIMITS) == []


def test_a_thread_that_sleeps_has_timers_of_its_own() -> None:
    sleeper = seen(2000, state="S", slices=1001, run_s=0.1)
    assert not sleeper.spins
    assert broken([sleeper], LIMITS) == []


def test_a_thread_that_never_left_its_cpu_spins_though_little_was_charged_to_it() -> None:
    assert seen(run_s=0.0).spins
    assert seen(state="S", run_s=1.9, slices=3).spins


@pytest.mark.parametrize(("run_s", "spins"), [(1.8, False), (1.81, True)])
def test_a_spinner_has_its_cpu_for_more_than_nine_tenths(run_s: float, spins: bool) -> None:
    """Of two seconds; one that slept for longer has timers of its own."""
    assert seen(state="S", run_s=run_s, slices=3).spins is spins


@pytest.mark.parametrize("strict", [False, True])
def test_beside_an_engine_it_is_never_go(strict: bool) -> None:
    good = (Finding("mm.ksm", "", Outcome.COMPLIANT),)
    parts = Parts(verify=good, check=good, thermal_verdict="ok", not_measured=("CPU 2",))
    assert decide(parts, strict)[0] == "unknown"
    assert decide(replace(parts, beside=("over",)), strict)[0] == "no-go"
    assert decide(replace(parts, not_measured=()), strict)[0] == "unknown"
    measured = typed_result(budget={"verdict": "within"})
    assert decide(replace(parts, not_measured=(), probe=measured), strict)[0] == "go"


def test_it_is_read_from_what_the_kernel_counts(tmp_path: Any) -> None:
    spinner = Process(70, "engine", 2, "2", busy=1.0)
    rows = [Row("LOC", "Local timer interrupts", {2: 250.0})]
    with FakeKernel(tmp_path, [0, 1, 2, 3], rows, [spinner], frozenset({2})):
        root = Sysroot(str(tmp_path))
        there = {2: [Occupant(engine()._replace(tid=70), "engine")]}
        found = behold(root, 0.0, there, 100)
    assert found.interrupts.on("LOC", 2) >= 1000
    assert found.threads[70, 70].comm == "engine"
    assert found.steal_s == {2: 0.0}
