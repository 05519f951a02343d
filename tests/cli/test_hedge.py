"""`tunectl probe hedge` as it is installed: simulated and measured, formats, and one line for what is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.cli.places import PROGRAM, complaint, environment, wait_until_it_waits
from tests.ran import Ran

pytestmark = pytest.mark.slow
Run = Callable[..., Ran]
SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/tunectl.probe.hedge-1.json").read_text())
ALLOWED = sorted(os.sched_getaffinity(0))
QUICK = ("--simulate", "--duration", "0.05", "--load", "0.1,0.85", "--stall", "none,a")
has_three = pytest.mark.skipif(
    len(ALLOWED) < 3, reason="a client and two servers spin on three CPUs, and here are fewer"
)


@pytest.mark.parametrize("command", ["feed", "hedge", "wake"])
def test_a_cpu_that_is_not_there_is_named_before_those_who_run_on_the_others(tunectl: Run, command: str) -> None:
    cpus = ",".join(["0", "8000", "8001"][: 3 if command == "hedge" else 2])
    done = tunectl("probe", command, "--cpus", cpus)
    assert complaint(done, 2) == "CPU 8000 is not online on this host"


def test_json_and_a_file_with_the_same(tunectl: Run, tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    done = tunectl("probe", "hedge", *QUICK, "--format", "json", "--output", output)
    assert (done.code, done.err) == (0, "")
    Draft202012Validator(SCHEMA).validate(done.json)
    kept = json.loads(output.read_text())
    assert kept["cells"] == done.json["cells"]
    assert [(cell["stall"], cell["load"], cell["delay"]) for cell in kept["cells"]] == [
        (stall, load, delay) for stall in ("none", "a") for load in (0.1, 0.85) for delay in ("none", "0", "p95")
    ]
    assert all(cell["n"] for cell in kept["cells"])
    assert tunectl("report", output, "--format", "html").code == 0
    later = tmp_path / "later.json"
    later.write_text(json.dumps(kept | {"at": "2026-11-21T10:00:00Z"}))
    assert tunectl("compare", output, later).code == 0


def test_text(tunectl: Run) -> None:
    done = tunectl("probe", "hedge", *QUICK, "--budget", "0.1", "--shed", "4", "--no-cancel", env={"COLUMNS": "80"})
    assert (done.code, done.err) == (0, "")
    words = " ".join(done.out.split())
    assert "no measurement of this host" in words
    assert "no copy is cancelled; a budget of 0.1 second copies for each request; a queue of 4 refuses" in words
    assert [line for line in done.out.splitlines() if len(line) > 80] == []


@pytest.mark.skipif(len(ALLOWED) > 2, reason="here are three CPUs")
def test_without_three_cpus_it_says_so_and_what_needs_none(tunectl: Run) -> None:
    said = complaint(tunectl("probe", "hedge", "--intrude"), 2)
    assert f"each on a CPU of its own: here {len(ALLOWED)} can be chosen" in said
    assert "--simulate, which needs none" in said
    cpu = ALLOWED[0]
    done = tunectl("probe", "hedge", "--intrude", "--cpus", f"{cpu},{cpu},{cpu}")
    assert "all three threads spin, so each needs a CPU of its own" in complaint(done, 2)


@has_three
@pytest.mark.pins
def test_a_measurement(tunectl: Run) -> None:
    cpus = ",".join(map(str, ALLOWED[-3:]))
    asked = ("--cpus", cpus, "--load", "0.05", "--delay", "p95", "--duration", "0.2")
    done = tunectl("probe", "hedge", "--intrude", *asked, "--format", "json")
    assert (done.code, done.err) == (0, "")
    Draft202012Validator(SCHEMA).validate(done.json)
    assert all(cell["cpus"] == ALLOWED[-3:] and cell["offered"] for cell in done.json["cells"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_simulation(number: signal.Signals) -> None:
    """What was simulated by then comes back; where that is nothing yet, one line says so."""
    child = subprocess.Popen(
        [*PROGRAM, "probe", "hedge", "--simulate", "--duration", "8", "--load", "0.9,0.95", "--format", "json"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until_it_waits(child)
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    if child.returncode == 0:
        assert json.loads(out)["interrupted"] is True
    else:
        assert (out, err.count("\n")) == ("", 1)
