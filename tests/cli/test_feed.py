"""`tunectl probe feed` as it is installed: formats, the result kept after a signal, and one line for what is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests import artefacts
from tests.cli.places import PROGRAM, code_of_cases, complaint, environment, wait_until_it_waits
from tests.probe.spy import ENDED, spying_on
from tests.ran import Ran

pytestmark = [
    pytest.mark.slow,
    pytest.mark.pins,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="feed spins on two CPUs, and here is one"),
]

Run = Callable[..., Ran]
SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/tunectl.probe.feed-1.json").read_text())
CPUS = f"{min(os.sched_getaffinity(0))},{max(os.sched_getaffinity(0))}"
# Other tests pin threads, too: the guard would rightly refuse to measure beside them (tests/probe/test_guard.py).
HERE = ("--intrude", "--cpus", CPUS)
QUICK = (*HERE, "--transport", "tcp,udp", "--message-format", "ws-json,binary", "--rate", "1000", "--duration", "0.1")


def test_json_and_a_file_with_the_same(tunectl: Run, tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    done = tunectl("probe", "feed", *QUICK, "--format", "json", "--output", output)
    assert (done.code, done.err) == (code_of_cases(done.json), "")
    Draft202012Validator(SCHEMA).validate(done.json)
    kept = json.loads(output.read_text())
    assert kept["cells"] == done.json["cells"]
    assert [(cell["transport"], cell["format"], cell["due"]) for cell in kept["cells"]] == [
        ("tcp", "ws-json", 100),
        ("tcp", "binary", 100),
        ("udp", "ws-json", 0),
        ("udp", "binary", 100),
    ]
    assert tunectl("report", output, "--format", "html").code == 0
    assert "nothing to compare" in complaint(tunectl("compare", output, output), 1)  # one run, or all void


def test_text(tunectl: Run) -> None:
    done = tunectl("probe", "feed", *QUICK, env={"COLUMNS": "80"})
    assert (done.code in (0, 1), done.err) == (True, "")  # every case may be void
    assert "1,000 messages a second" in done.out
    assert "they go over tcp, and not over udp" in " ".join(done.out.split())
    assert [line for line in done.out.splitlines() if len(line) > 80] == []


def test_one_cpu_for_both_is_refused(tunectl: Run) -> None:
    cpu = CPUS.split(",")[0]
    done = tunectl("probe", "feed", "--intrude", "--cpus", f"{cpu},{cpu}")
    assert f"the sender spins, so the receiver needs another CPU than {cpu}" in complaint(done, 2)


def test_nothing_that_can_be_measured_is_an_error_with_the_reason(tunectl: Run) -> None:
    done = tunectl("probe", "feed", *HERE, "--transport", "udp")
    assert "nothing was measured: WebSocket frames are a stream of bytes" in complaint(done, 1)


@pytest.mark.parametrize(
    ("limit", "seconds", "wanted"), [("8.6e13", "1", "within"), ("1", "1", "broken"), ("1", "0.1", "")]
)
def test_the_host_file_has_a_limit(tunectl: Run, tmp_path: Path, limit: str, seconds: str, wanted: str) -> None:
    host = tmp_path / "host.toml"
    isolated = f'isolated = "{max(os.sched_getaffinity(0))}"\nallow_split_siblings = true'
    host.write_text(f'profile = "low-latency"\n{isolated}\n[budget.feed]\ndue_to_book_p99_9_ns = {limit}\n')
    words = ("--rate", "20000", "--duration", seconds, "--waiting", "poll", "--stamps", "off")
    done = tunectl("probe", "feed", *HERE, *words, "--host", host, "--format", "json")
    budget = done.json["budget"]
    assert budget["verdict"] in {wanted, "not-judged"} - {""}  # a machine that is too busy proves nothing
    assert done.code == {"within": 0, "broken": 3, "not-judged": 1}[budget["verdict"]]
    assert budget["limits"] == {"due_to_book_p99_9_ns": float(limit)}
    Draft202012Validator(SCHEMA).validate(done.json)


def test_a_preloaded_library_sees_the_programs_calls(tunectl: Run, tmp_path: Path) -> None:
    """As docs/probe-feed.md starts it under a kernel-bypass library; this one ends it once the receiver allocates."""
    library = spying_on("feed-", tmp_path)["LD_PRELOAD"]
    wrapper = tmp_path / "probe"
    wrapper.write_text(f'#!/bin/sh\nexec env LD_PRELOAD={library} {artefacts.program()} "$@"\n')
    wrapper.chmod(0o755)
    words = ("probe", "feed", *HERE, "--rate", "1000", "--duration", "0.05", "--stamps", "off")
    env = {"TUNECTL_PROBE": str(wrapper)}
    done = tunectl(*words, "--format", "json", env=env)
    assert (done.code, done.err) == (code_of_cases(done.json), "")
    assert f"{ENDED}" in complaint(tunectl(*words, "--alloc", "1", env=env), 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_still_gives_the_result(number: signal.Signals) -> None:
    child = subprocess.Popen(
        [*PROGRAM, "probe", "feed", *HERE, "--rate", "1000", "--duration", "60", "--format", "json"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until_it_waits(child)
    child.send_signal(number)
    out, err = child.communicate(timeout=30)
    found = json.loads(out)
    assert (child.returncode, err) == (code_of_cases(found), "")
    assert found["interrupted"] is True
    assert found["stamp_cost_ns"] is None  # what is under way ends; nothing new begins
