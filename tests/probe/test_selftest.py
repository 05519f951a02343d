"""The probe against known interruptions, on this machine; and what it says where it may not inject them."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.probe.samples import raw_cpu, raw_run
from tests.ran import Ran
from tests.schemas import fits
from tunectl.errors import TunectlError
from tunectl.probe.injecting import PHASES, phase_of
from tunectl.probe.raw import read_raw

from .conftest import Probe
from .running import ENDED_BY_TEST_S
from .test_jitter import skip_unless_fifo

pytestmark = [pytest.mark.slow, pytest.mark.alone]  # a spinner of another test's on its CPU is refused

INJECTED = {"stop": [1], "ipi": [500], "preemption": [200, 200, 200], "count": [50_000], "loss": [5_000]}


def checked(text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    fits("probe.selftest", document)
    return document


def test_every_known_interruption_is_found(probe: Probe, program: Path, cpu: int, tunectl: Callable[..., Ran]) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU only")
    skip_unless_fifo(probe, cpu)
    for _ in range(6):  # a loaded machine, or a hypervisor, may spoil a run; a probe that is blind spoils all of them
        done = tunectl("probe", "selftest", "--cpu", cpu, "--format", "json", env={"TUNECTL_PROBE": str(program)})
        document = checked(done.out)
        assert done.code == (0 if document["passed"] else 1)
        if done.code == 0:
            break
    assert document["passed"], document["phases"]
    phases: dict[str, list[dict[str, Any]]] = {}
    for phase in document["phases"]:
        phases.setdefault(phase["kind"], []).append(phase)
    assert {kind: [phase["injected"] for phase in found] for kind, found in phases.items()} == INJECTED
    for phase in phases["preemption"] + phases["ipi"]:
        assert phase["found"] == phase["injected"]
        assert phase["missed"] == phase["counted_as_lost"] == 0
    assert all(phase["length_error_ns"]["min"] > -50 for phase in phases["preemption"])
    for phase in phases["count"] + phases["loss"]:
        assert phase["found"] + phase["counted_as_lost"] == phase["injected"]
        assert phase["account_is_exact"]
    assert phases["loss"][0]["gaps_lost"] > 0
    assert phases["stop"][0]["max_ns"] > 2.25e9  # a busy machine stops it for longer, and the judge knows for how long
    # The one is rounded, the other cut.
    assert document["vouched_ns"] == pytest.approx(phases["ipi"][0]["shortest_gap_ns"], abs=1)


@pytest.fixture
def unprivileged() -> tuple[str, ...]:
    """A prefix under which SCHED_FIFO is not allowed."""
    drop: tuple[str, ...] = ()
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root without setpriv")
        drop = ("setpriv", "--bounding-set=-sys_nice", "--inh-caps=-all")
    return ("sh", "-c", 'ulimit -r 0; exec "$@"', "sh", *drop)


def test_without_permission_a_phase_does_not_run_and_says_why(
    probe: Probe, cpu: int, unprivileged: tuple[str, ...]
) -> None:
    asked = PHASES[1]
    what = f"preemption,{asked.injected},{asked.asked_ns},{asked.pause_ns}"
    done = probe(
        "jitter", "--intrude", "--cpus", cpu, "--duration", ENDED_BY_TEST_S, "--inject", what, prefix=unprivileged
    )
    assert "CAP_SYS_NICE" in phase_of(asked, read_raw(json.loads(done.stdout))).error


def test_on_the_only_cpu_nothing_can_interrupt_from_another() -> None:
    run = raw_run(raw_cpu(), facts={"main_thread": []}, injected={"errno": 0, "truths": [(5_000, 5_100)] * 532})
    assert phase_of(PHASES[0], read_raw(run)).error == "there is no other CPU to interrupt from"
    assert not phase_of(PHASES[0], read_raw(run | {"facts": raw_run()["facts"]})).error


@pytest.mark.parametrize(("early", "skipped"), [(0, 0), (7, 7), (40, 32)])
def test_what_was_done_before_the_spinner_spun_does_not_count(early: int, skipped: int) -> None:
    truths = [(at, at + 1) for at in range(1_000 - early, 1_532 - early)]
    run = raw_run(raw_cpu(), injected={"errno": 0, "truths": truths})
    assert phase_of(PHASES[0], read_raw(run)).truths == truths[skipped : skipped + 500]


def test_an_interrupted_self_test_is_none() -> None:
    run = raw_run(raw_cpu(), injected={"errno": 0, "truths": [(5_000, 5_100)] * 499})
    with pytest.raises(TunectlError, match="interrupted"):
        phase_of(PHASES[0], read_raw(run))
