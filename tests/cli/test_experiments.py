"""`tunectl probe wake`, `feed`, `hedge` and `contention`: formats, a file with the same, the result after a signal.

What is wrong with their options is one line each: tests/golden/refused.py.
"""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import artefacts
from tests.cli.places import code_of_cases, complaint, started, this_host_file, wait_until_it_waits
from tests.cli.test_commands import valid
from tests.probe.spy import ENDED, spying_on
from tests.ran import Ran

pytestmark = [pytest.mark.slow, pytest.mark.pins]

Run = Callable[..., Ran]
ALLOWED = sorted(os.sched_getaffinity(0))
has_two = pytest.mark.skipif(len(ALLOWED) < 2, reason="feed spins on two CPUs, and here is one")
has_three = pytest.mark.skipif(
    len(ALLOWED) < 3, reason="a client and two servers spin on three CPUs, and here are fewer"
)
# Other tests pin threads, too: the guard would rightly refuse to measure beside them (tests/probe/test_guard.py).
HERE = f"--intrude --cpus {ALLOWED[0]},{ALLOWED[-1]}"
FEED = ("probe", "feed", *HERE.split())
HEDGED = [[stall, load, delay] for stall in ("none", "a") for load in (0.1, 0.85) for delay in ("none", "0", "p95")]


class Experiment(NamedTuple):
    """A quick run, what its cells are of, and one that goes on for long."""

    name: str
    quick: str
    fields: tuple[str, ...]
    cells: list[list[Any]]
    long: str


WAKE = Experiment(
    "wake",
    f"{HERE} --mechanisms pipe,udp --waiting block,minimal --idle-ms 0 --messages 5",
    ("mechanism", "sent"),  # a receiver that stalls for a second loses the last: tests/experiments/test_wake.py
    [["pipe", 5], ["pipe", 5], ["udp", 5], ["udp", 5]],
    f"{HERE} --mechanisms pipe --waiting block --idle-ms 50 --messages 2000",
)
FEEDING = Experiment(
    "feed",
    f"{HERE} --transport tcp,udp --message-format ws-json,binary --rate 1000 --duration 0.1",
    ("transport", "format", "due"),
    [["tcp", "ws-json", 100], ["tcp", "binary", 100], ["udp", "ws-json", 0], ["udp", "binary", 100]],
    f"{HERE} --rate 1000 --duration 60",
)
HEDGING = Experiment(
    "hedge",
    "--simulate --duration 0.05 --load 0.1,0.85 --stall none,a --budget 0.1 --shed 4 --no-cancel",
    ("stall", "load", "delay"),
    HEDGED,
    "--simulate --duration 8 --load 0.9,0.95",
)
CONTENTION = Experiment(
    "contention",
    f"{HERE} --buffers pool --hand-over futex,ring --duration 0.1",
    ("buffers", "hand_over", "sent"),
    [["pool", "futex", 2000], ["pool", "ring", 2000]],
    f"{HERE} --hand-over ring --duration 60",
)
TABLE = [WAKE, pytest.param(FEEDING, marks=has_two), HEDGING, pytest.param(CONTENTION, marks=has_two)]
each = pytest.mark.parametrize("of", TABLE, ids=["wake", "feed", "hedge", "contention"])


@each
def test_json_and_a_file_with_the_same(tunectl: Run, tmp_path: Path, of: Experiment) -> None:
    output, later = tmp_path / "result.json", tmp_path / "later.json"
    done = tunectl("probe", of.name, *of.quick.split(), "--format", "json", "--output", output)
    assert (done.code, done.err) == (code_of_cases(done.json), "")
    kept = json.loads(output.read_text())
    assert kept["cells"] == valid(f"probe.{of.name}", done.out)["cells"]
    assert [[cell[field] for field in of.fields] for cell in kept["cells"]] == of.cells
    assert tunectl("report", output, "--format", "html").code == 0
    later.write_text(json.dumps(kept | {"at": "2026-11-21T10:00:00Z"}))
    assert tunectl("compare", output, later).code in (0, 1)  # where every case is void, nothing is in common
    assert "nothing to compare" in complaint(tunectl("compare", output, output), 1)


@each
def test_text_fits(tunectl: Run, of: Experiment) -> None:
    done = tunectl("probe", of.name, *of.quick.split(), env={"COLUMNS": "80"})
    assert (done.code in (0, 1), done.err) == (True, "")  # every case may be void
    assert [line for line in done.out.splitlines() if len(line) > 80] == []


@each
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_still_gives_the_result(of: Experiment, number: signal.Signals) -> None:
    child = started("probe", of.name, *of.long.split(), "--format", "json")
    wait_until_it_waits(child, for_its_child=True)
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    kept = json.loads(out or '{"cells": [], "interrupted": true}')  # nothing was simulated yet: one line says so
    assert (child.returncode, err.count("\n")) == (code_of_cases(kept), out == "")
    assert kept["interrupted"] is True
    assert kept.get("stamp_cost_ns") is None  # what is under way ends; nothing new begins


@pytest.mark.parametrize(
    ("command", "cpus"), [("feed", "0,8000"), ("contention", "0,8000"), ("hedge", "0,8000,8001"), ("wake", "0,8000")]
)
def test_a_cpu_that_is_not_there_is_named_before_those_who_run_on_the_others(
    tunectl: Run, command: str, cpus: str
) -> None:
    assert complaint(tunectl("probe", command, "--cpus", cpus), 2) == "CPU 8000 is not online on this host"


@has_two
def test_nothing_that_can_be_measured_is_an_error_with_the_reason(tunectl: Run) -> None:
    done = tunectl(*FEED, "--transport", "udp")
    assert "nothing was measured: WebSocket frames are a stream of bytes" in complaint(done, 1)


@has_two
@pytest.mark.parametrize(
    ("limit", "seconds", "wanted"),
    [("8.6e13", "1", {"within", "not-judged"}), ("1", "1", {"broken", "not-judged"}), ("1", "0.1", {"not-judged"})],
)
def test_the_host_file_has_a_limit(tunectl: Run, tmp_path: Path, limit: str, seconds: str, wanted: set[str]) -> None:
    host = this_host_file(tmp_path, f"[budget.feed]\ndue_to_book_p99_9_ns = {limit}\n")
    words = ("--rate", "20000", "--duration", seconds, "--waiting", "poll", "--stamps", "off")
    done = tunectl(*FEED, *words, "--host", host, "--format", "json")
    budget = valid("probe.feed", done.out)["budget"]
    assert budget["verdict"] in wanted  # a machine that is too busy proves nothing
    assert done.code == {"within": 0, "broken": 3, "not-judged": 1}[budget["verdict"]]
    assert budget["limits"] == {"due_to_book_p99_9_ns": float(limit)}


@has_two
def test_a_preloaded_library_sees_the_programs_calls(tunectl: Run, tmp_path: Path) -> None:
    """As docs/probe-feed.md starts it under a kernel-bypass library; this one ends it once the receiver allocates."""
    library = spying_on("feed-", tmp_path)["LD_PRELOAD"]
    wrapper = tmp_path / "probe"
    wrapper.write_text(f'#!/bin/sh\nexec env LD_PRELOAD={library} {artefacts.program()} "$@"\n')
    wrapper.chmod(0o755)
    words = (*FEED, "--rate", "1000", "--duration", "0.05", "--stamps", "off")
    env = {"TUNECTL_PROBE": str(wrapper)}
    done = tunectl(*words, "--format", "json", env=env)
    assert (done.code, done.err) == (code_of_cases(done.json), "")
    assert f"{ENDED}" in complaint(tunectl(*words, "--alloc", "1", env=env), 1)


@pytest.mark.skipif(len(ALLOWED) > 2, reason="here are three CPUs")
def test_without_three_cpus_it_says_so_and_what_needs_none(tunectl: Run) -> None:
    said = complaint(tunectl("probe", "hedge", "--intrude"), 2)
    assert f"here {len(ALLOWED)} can be chosen" in said
    assert "--simulate" in said


@has_three
def test_a_measurement_of_three_threads(tunectl: Run) -> None:
    cpus = ",".join(map(str, ALLOWED[-3:]))
    asked = ("--cpus", cpus, "--load", "0.05", "--delay", "p95", "--duration", "0.2")
    done = tunectl("probe", "hedge", "--intrude", *asked, "--format", "json")
    assert (done.code, done.err) == (0, "")
    cells = valid("probe.hedge", done.out)["cells"]
    assert all(cell["cpus"] == ALLOWED[-3:] and cell["offered"] for cell in cells)
