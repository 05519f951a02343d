"""`tunectl-probe hedge`: what the native program counts, on this machine.

Three threads spin. On a machine with fewer CPUs they share them by a hidden option: then every figure is void, and what
became of each request and copy is still counted exactly.
"""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.experiments import native
from tests.probe.spy import ENDED, spying_on
from tunectl.experiments.hedge_cells import HEDGE, RawCase, explained_hedge

pytestmark = pytest.mark.pins
ALLOWED = sorted(os.sched_getaffinity(0))
CPUS = ",".join(map(str, ([ALLOWED[0]] * 3 + ALLOWED)[-3:] if len(ALLOWED) < 3 else ALLOWED[-3:]))


def words(program: Path, *flags: str, **options: object) -> list[str]:
    return native.words(program, "hedge", "shared", "intrude", *flags, cpus=CPUS, **options)


def measured(program: Path, *flags: str, **options: object) -> dict[str, Any]:
    return native.document_of(words(program, *flags, **options))


def measured_some(program: Path, *flags: str, **options: object) -> dict[str, Any]:
    """A document with requests in it: threads that are away for all of a run have offered none."""
    for seconds in (0.2, 1, 5):
        document = measured(program, *flags, duration=seconds, **options)
        if HEDGE.read(document).cases[0].offered:
            break
    return document


def check_balance(case: RawCase, flags: Sequence[str], limits: Mapping[str, object]) -> None:
    """What became of each request and of each copy adds up, within the limits that were asked for."""
    assert case.offered == case.answered + case.shed + case.unanswered > 0
    copies = case.offered - case.shed + case.hedged
    assert copies == case.answered + case.wasted + case.cancelled_unstarted + case.unfinished
    assert case.hedged == case.won + case.lost + case.hedge_cancelled + case.hedge_unfinished
    assert case.below_floor == 0
    assert case.cancelled_unstarted == 0 or not flags
    assert case.queue_max <= 4 or "shed" not in limits
    assert case.hedged <= 0.1 * case.offered + 100 or "budget" not in limits


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ((), {"delay": 0, "load": 0.01}),
        (("no-cancel",), {"delay": 0, "load": 0.01, "stall": "both"}),
        ((), {"delay": "p95", "load": 0.5, "stall": "common"}),
        (("no-cancel",), {"delay": 20_000, "load": 0.3, "budget": 0.1, "shed": 4}),
        ((), {"delay": "none", "load": 1.5}),
    ],
)
def test_every_request_and_every_copy_is_accounted_for(
    program: Path, flags: Sequence[str], options: dict[str, object]
) -> None:
    document = measured_some(program, *flags, **options)
    (case,) = HEDGE.read(document).cases  # which adds up what is in it, and compares the floor
    check_balance(case, flags, options)
    # By the servers' own account: a copy may be done with, and its answer not taken, when the run ends.
    assert case.answered + case.wasted <= sum(case.together.served) <= case.answered + case.wasted + case.unfinished
    assert len(explained_hedge(document)["cells"]) == 1


def test_work_is_a_chain_that_takes_as_long_as_was_asked_for(program: Path) -> None:
    """No clock ends it: the fastest of many, which nothing interrupted, says how well it was calibrated."""
    for _ in range(5):  # a core whose clock changes between the two is another one
        document = measured(program, load=0.05, duration=0.3, service_ns=20_000)
        (case,), hz = document["cells"], document["clock"]["hz"]
        fastest_ns = [case["service"][name][0] * 1e9 / hz if case["service"][name] else 0 for name in ("a", "b")]
        if is_near := 0.5 * 20_000 < min(fastest_ns) <= max(fastest_ns) < 2 * 20_000:
            break
    assert is_near, fastest_ns


def test_threads_that_share_a_cpu_make_every_figure_void(program: Path) -> None:
    if len(ALLOWED) >= 3:
        pytest.skip("here are three CPUs, one for each thread")
    (cell,) = explained_hedge(measured_some(program))["cells"]
    assert cell["is_void"]
    assert cell["n"] == 0


three_cpus = pytest.mark.skipif(
    len(ALLOWED) < 3, reason="a client and two servers spin on three CPUs, and here are fewer"
)


@three_cpus
def test_with_three_cpus_each_thread_has_its_own(program: Path) -> None:
    argv = [str(program), "hedge", "--intrude", "--cpus", CPUS, "--duration", "1", "--load", "0.05", "--delay", "p95"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    (case,) = HEDGE.read(json.loads(done.stdout)).cases
    assert 0 < case.answered <= case.offered


RUNS = range(4)  # a hypervisor takes as much as a stall does now and then; what never shows is not there


@pytest.fixture(scope="module")
def live(program: Path) -> Callable[..., dict[str, Any]]:
    """A cell that was measured on three CPUs; what others made void is skipped with its reason."""
    made: dict[str, dict[str, Any]] = {}

    def cell(*flags: str, run: int, **options: object) -> dict[str, Any]:
        argv = words(program, *flags, **{"duration": 5, **options})
        argv.remove("--shared")
        if (key := f"{run} {' '.join(argv)}") not in made:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
            (made[key],) = explained_hedge(json.loads(done.stdout))["cells"]  # which adds up the counts
        if made[key]["is_void"]:
            pytest.skip(f"the three CPUs are not free: {made[key]['reason']}")
        return made[key]

    return cell


@three_cpus
@pytest.mark.slow
def test_live_a_second_copy_helps_where_one_server_stalls(live: Callable[..., dict[str, Any]]) -> None:
    for delay in (0, "p95"):
        for run in RUNS:
            without, hedged = (live(run=run, load=0.1, stall="a", delay=each) for each in ("none", delay))
            if is_better := without["percentiles_ns"]["99.9"] >= 5 * hedged["percentiles_ns"]["99.9"]:
                break
        assert is_better, delay


@three_cpus
@pytest.mark.slow
def test_live_it_does_not_where_both_stall_at_once(live: Callable[..., dict[str, Any]]) -> None:
    for delay in (0, "p95"):
        for run in RUNS:
            without, hedged = (live(run=run, load=0.1, stall="common", delay=each) for each in ("none", delay))
            if is_no_better := without["percentiles_ns"]["99.9"] <= 1.1 * hedged["percentiles_ns"]["99.9"]:
                break
        assert is_no_better, delay


@three_cpus
@pytest.mark.slow
@pytest.mark.parametrize("delay", [0, "p95"])
def test_live_a_high_load_collapses_without_limits_and_not_with(
    live: Callable[..., dict[str, Any]], delay: object
) -> None:
    for run in RUNS:
        collapsed = live("no-cancel", run=run, load=0.85, delay=delay)["collapsed"]
        limited = live(run=run, load=0.85, delay=delay, budget=0.1)
        without = live(run=run, load=0.85, delay="none")
        assert limited["hedged"] <= 0.1 * limited["offered"] + 100
        is_near = limited["percentiles_ns"]["50"] <= 1.25 * without["percentiles_ns"]["50"]
        if collapsed and is_near and not limited["collapsed"]:
            break
    assert collapsed
    assert not limited["collapsed"]
    assert is_near


def test_the_measured_loops_allocate_nothing(program: Path, tmp_path: Path) -> None:
    argv = words(program, duration=0.05, delay=0, stall="both")
    assert subprocess.run(argv, env=spying_on("hedge-", tmp_path), capture_output=True, timeout=60).returncode == 0
    argv = words(program, duration=0.05)
    ended = subprocess.run(argv, env=spying_on("tunectl-", tmp_path), capture_output=True, timeout=60)
    assert ended.returncode == ENDED


def test_a_signal_ends_it_early_with_what_came(program: Path) -> None:
    argv = words(program, duration=12, load=0.01)
    document = native.ended_by(signal.SIGINT, argv, ("hedge-client", "hedge-a", "hedge-b"), after_s=0.6)
    (case,) = HEDGE.read(document).cases
    assert document["duration_s"] < 12
    assert case.offered < 80_000
