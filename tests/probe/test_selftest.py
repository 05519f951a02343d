"""The probe against known interruptions, on this machine; and what it says where it may not inject them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.ran import Ran

from .conftest import Probe
from .test_jitter import skip_unless_fifo

pytestmark = [pytest.mark.slow, pytest.mark.pins]

SCHEMA = Path(__file__).parents[2] / "docs" / "schema" / "tunectl.probe.selftest-1.json"
INJECTED = {"stop": [1], "ipi": [500], "preemption": [200, 200, 200], "count": [50_000], "loss": [5_000]}


def checked(text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    jsonschema.validate(document, json.loads(SCHEMA.read_text()), format_checker=jsonschema.FormatChecker())
    return document


def test_every_known_interruption_is_found(probe: Probe, program: Path, cpu: int, tunectl: Callable[..., Ran]) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU only")
    skip_unless_fifo(probe, cpu)
    for _ in range(3):  # a loaded machine, or a hypervisor, may spoil a run; a probe that is blind spoils all three
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
    assert phases["stop"][0]["max_ns"] == pytest.approx(2.5e9, rel=0.1)
    # The one is rounded, the other cut.
    assert document["vouched_ns"] == pytest.approx(phases["ipi"][0]["shortest_gap_ns"], abs=1)


@pytest.fixture
def unprivileged() -> tuple[str, ...]:
    """A prefix under which SCHED_FIFO is not allowed. The phases that need it take most of the time, and do not run."""
    drop: tuple[str, ...] = ()
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root without setpriv")
        drop = ("setpriv", "--bounding-set=-sys_nice", "--inh-caps=-all")
    return ("sh", "-c", 'ulimit -r 0; exec "$@"', "sh", *drop)


def test_without_permission_it_is_no_pass_and_says_why(probe: Probe, cpu: int, unprivileged: tuple[str, ...]) -> None:
    done = probe("selftest", "--cpus", cpu, prefix=unprivileged)
    document = checked(done.stdout)
    assert done.returncode == 1
    assert document["passed"] is False
    kinds = {phase["kind"]: phase for phase in document["phases"]}
    for kind in ("preemption", "count", "loss"):
        assert kinds[kind]["outcome"] == "not-run"
        assert "CAP_SYS_NICE" in kinds[kind]["reason"]
    assert kinds["stop"]["outcome"] != "not-run"


def test_on_the_only_cpu_nothing_can_interrupt_from_another(
    probe: Probe, cpu: int, tmp_path: Path, unprivileged: tuple[str, ...]
) -> None:
    directory = tmp_path / "sys/devices/system/cpu"
    directory.mkdir(parents=True)
    (directory / "online").write_text(f"{cpu}\n")
    done = probe(
        "selftest", "--cpus", cpu, "--root", tmp_path, "--output", tmp_path / "result.json", prefix=unprivileged
    )
    assert (done.returncode, done.stdout) == (1, "")
    document = checked((tmp_path / "result.json").read_text())
    (ipi,) = [phase for phase in document["phases"] if phase["kind"] == "ipi"]
    assert (ipi["outcome"], ipi["reason"]) == ("not-run", "there is no other CPU to interrupt from")
    assert document["passed"] is False
