"""`tunectl-probe hedge`: what the native program counts, on this machine.

Three threads spin. On a machine with fewer CPUs they share them by a hidden option: then every figure is void, and what
became of each request and copy is still counted exactly.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.probe.running import until_named
from tests.probe.spy import ENDED, spying_on
from tunectl.experiments.hedge_cells import HEDGE, explained_hedge

pytestmark = pytest.mark.pins
ALLOWED = sorted(os.sched_getaffinity(0))
CPUS = ",".join(map(str, ([ALLOWED[0]] * 3 + ALLOWED)[-3:] if len(ALLOWED) < 3 else ALLOWED[-3:]))


def words(program: Path, *flags: str, **options: object) -> list[str]:
    named = ((f"--{name.replace('_', '-')}", str(value)) for name, value in options.items())
    asked = [*(f"--{flag}" for flag in flags), *(word for two in named for word in two)]
    return [str(program), "hedge", "--shared", "--intrude", "--cpus", CPUS, *asked]


def measured(program: Path, *flags: str, **options: object) -> dict[str, Any]:
    done = subprocess.run(words(program, *flags, **options), capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


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
    document = measured(program, *flags, duration=0.2, **options)
    (case,) = HEDGE.read(document).cases  # which adds up what is in it, and compares the floor
    assert case.offered == case.answered + case.shed + case.unanswered > 0
    copies = case.offered - case.shed + case.hedged
    assert copies == case.answered + case.wasted + case.cancelled_unstarted + case.unfinished
    assert case.hedged == case.won + case.lost + case.hedge_cancelled + case.hedge_unfinished
    assert case.below_floor == 0
    # By the servers' own account: a copy may be done with, and its answer not taken, when the run ends.
    assert case.answered + case.wasted <= sum(case.together.served) <= case.answered + case.wasted + case.unfinished
    assert case.cancelled_unstarted == 0 or not flags
    assert case.queue_max <= 4 or "shed" not in options
    assert len(explained_hedge(document)["cells"]) == 1


def test_work_is_a_chain_that_takes_as_long_as_was_asked_for(program: Path) -> None:
    """No clock ends it: the fastest of many, which nothing interrupted, says how well it was calibrated."""
    document = measured(program, load=0.05, duration=0.3, service_ns=20_000)
    (case,), hz = document["cells"], document["clock"]["hz"]
    for name in ("a", "b"):
        fastest_ns = case["service"][name][0] * 1e9 / hz
        assert 0.5 * 20_000 < fastest_ns < 2 * 20_000, name


def test_threads_that_share_a_cpu_make_every_figure_void(program: Path) -> None:
    if len(ALLOWED) >= 3:
        pytest.skip("here are three CPUs, one for each thread")
    (cell,) = explained_hedge(measured(program, duration=0.2))["cells"]
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


@pytest.fixture(scope="module")
def live(program: Path) -> Callable[..., dict[str, Any]]:
    """A cell that was measured on three CPUs; what others made void is skipped with its reason."""
    made: dict[str, dict[str, Any]] = {}

    def cell(*flags: str, **options: object) -> dict[str, Any]:
        argv = words(program, *flags, **{"duration": 5, **options})
        argv.remove("--shared")
        if (key := " ".join(argv)) not in made:
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
        without, hedged = (live(load=0.1, stall="a", delay=each) for each in ("none", delay))
        assert without["percentiles_ns"]["99.9"] >= 5 * hedged["percentiles_ns"]["99.9"], delay


@three_cpus
@pytest.mark.slow
def test_live_it_does_not_where_both_stall_at_once(live: Callable[..., dict[str, Any]]) -> None:
    for delay in (0, "p95"):
        without, hedged = (live(load=0.1, stall="common", delay=each) for each in ("none", delay))
        assert without["percentiles_ns"]["99.9"] <= 1.1 * hedged["percentiles_ns"]["99.9"], delay


@three_cpus
@pytest.mark.slow
@pytest.mark.parametrize("delay", [0, "p95"])
def test_live_a_high_load_collapses_without_limits_and_not_with(
    live: Callable[..., dict[str, Any]], delay: object
) -> None:
    assert live("no-cancel", load=0.85, delay=delay)["collapsed"]
    limited = live(load=0.85, delay=delay, budget=0.1)
    assert not limited["collapsed"]
    assert limited["hedged"] <= 0.1 * limited["offered"] + 100
    assert limited["percentiles_ns"]["50"] <= 1.25 * live(load=0.85, delay="none")["percentiles_ns"]["50"]


def test_the_measured_loops_allocate_nothing(program: Path, tmp_path: Path) -> None:
    argv = words(program, duration=0.05, delay=0, stall="both")
    assert subprocess.run(argv, env=spying_on("hedge-", tmp_path), capture_output=True, timeout=60).returncode == 0
    argv = words(program, duration=0.05)
    assert (
        subprocess.run(argv, env=spying_on("tunectl-", tmp_path), capture_output=True, timeout=60).returncode == ENDED
    )


def test_a_signal_ends_it_early_with_what_came(program: Path) -> None:
    child = subprocess.Popen(words(program, duration=12, load=0.01), stdout=subprocess.PIPE, text=True)
    until_named(child.pid, "hedge-client", "hedge-a", "hedge-b")
    time.sleep(0.6)
    child.send_signal(signal.SIGINT)
    document = json.loads(child.communicate(timeout=20)[0])
    (case,) = HEDGE.read(document).cases
    assert document["interrupted"]
    assert document["duration_s"] < 12
    assert case.offered < 80_000


SIMULATED = ("--simulate", "--duration", "0.01")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        *(
            ((*SIMULATED, "--delay", word), f"--delay {word}: expected none, p50 to p99.9, or ns up to 1000000000")
            for word in (
                "",
                "p",
                "p49",
                "p99.95",
                "p95x",
                "-1",
                "1e3",
                "1000000001",
                "nan",
                "pnan",
                "None",
                "p 95",
                "p0x60",
                "p+95",
            )
        ),
        ((*SIMULATED, "--stall", "b"), "--stall b: expected one of none, a, both, common"),
        ((*SIMULATED, "--load", "0"), "--load 0: expected a number, from 0.001 to 2"),
        ((*SIMULATED, "--load", "nan"), "--load nan: expected a number, from 0.001 to 2"),
        ((*SIMULATED, "--budget", "1.1"), "--budget 1.1: expected a number, from 0 to 1"),
        ((*SIMULATED, "--service-ns", "499"), "--service-ns 499: expected a whole number from 500 to 100000000"),
        ((*SIMULATED, "--cpus", "0,1,2"), "--cpus: a simulation has none"),
        (
            ("--simulate", "--load", "1", "--duration", "9"),
            "that is 6000000 requests of 3000 ns, expected 1 to 5990000",
        ),
        (("--cpus", "0,1"), "--cpus 0,1: expected the client's CPU and those of both servers, like 2,3,4"),
        (("--cpus", "0,1,2,3"), "expected the client's CPU and those of both servers"),
        (("--cpus", "0,0,0"), "--cpus: all three threads spin, so each needs a CPU of its own"),
        (("--cpus", "0,0,0", "--shared", "--fifo", "1"), "each needs a CPU of its own"),
        (("--cpus", "0,0,99999"), "CPU 99999 is not online on this host"),
    ],
)
def test_a_wrong_request_is_one_line(program: Path, arguments: Sequence[str], said: str) -> None:
    done = subprocess.run([str(program), "hedge", *arguments], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr


def test_a_simulation_needs_no_privilege_and_no_cpu(program: Path) -> None:
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root without setpriv")
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"] * (os.geteuid() == 0)
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)  # pytest's own temporary directory is closed to others
        copy = Path(shutil.copy(program, place))
        done = subprocess.run([*drop, str(copy), "hedge", *SIMULATED], capture_output=True, text=True, check=True)
        document = json.loads(done.stdout)
    assert (document["simulated"], document["cpus"], document["facts"]) == (True, [], None)
    assert document["clock"] == {"source": "simulated", "hz": 1e9}
    (case,) = HEDGE.read(document).cases
    assert case.answered == case.offered == 667
