"""`tunectl probe wake` as it is installed: formats, the result kept after a signal, and one line for what is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.cli.places import PROGRAM, code_of_cases, environment, wait_until_it_waits
from tests.ran import Ran

pytestmark = [pytest.mark.slow, pytest.mark.pins]

Run = Callable[..., Ran]
SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/tunectl.probe.wake-1.json").read_text())
CPUS = f"{min(os.sched_getaffinity(0))},{max(os.sched_getaffinity(0))}"
# Other tests pin threads, too: the guard would rightly refuse to measure beside them (tests/probe/test_guard.py).
QUICK = (
    "--intrude",
    "--cpus",
    CPUS,
    "--mechanisms",
    "pipe,udp",
    "--waiting",
    "block,minimal",
    "--idle-ms",
    "0",
    "--messages",
    "5",
)


def test_json_and_a_file_with_the_same(tunectl: Run, tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    done = tunectl("probe", "wake", *QUICK, "--format", "json", "--output", output)
    assert (done.code, done.err) == (code_of_cases(done.json), "")
    Draft202012Validator(SCHEMA).validate(done.json)
    kept = json.loads(output.read_text())
    assert kept["cells"] == done.json["cells"]
    assert [(cell["sent"], cell["lost"]) for cell in kept["cells"]] == [(5, 0)] * 4


def test_text(tunectl: Run) -> None:
    done = tunectl("probe", "wake", *QUICK, env={"COLUMNS": "80"})
    assert (done.code in (0, 1), done.err) == (True, "")  # every case may be void
    assert "\nMedian\n" in done.out
    assert "a warm sender" in done.out
    assert [line for line in done.out.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_a_signal_still_gives_the_result(number: signal.Signals) -> None:
    words = [
        "probe",
        "wake",
        "--intrude",
        "--cpus",
        CPUS,
        "--mechanisms",
        "pipe",
        "--waiting",
        "block",
        "--idle-ms",
        "50",
    ]
    child = subprocess.Popen(
        [*PROGRAM, *words, "--messages", "2000", "--format", "json"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until_it_waits(child)
    child.send_signal(number)
    out, err = child.communicate(timeout=30)
    assert (child.returncode, err) == (code_of_cases(json.loads(out)), "")
    assert json.loads(out)["interrupted"] is True
