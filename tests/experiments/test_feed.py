"""Real runs of `tunectl probe feed` on this machine: what must hold on any, however loaded."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.schemas import fits
from tunectl.experiments.feed import FeedRequest, run_feed
from tunectl.experiments.feed_cells import explained_feed
from tunectl.shapes import FEED_STAGES
from tunectl.work import Work

pytestmark = [
    pytest.mark.slow,
    pytest.mark.pins,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="feed spins on two CPUs, and here is one"),
]

QUICK: dict[str, Any] = {"rate": 2000, "duration_s": 0.1}


def feed(pair: str, **asked: Any) -> dict[str, Any]:
    """The document of a whole run."""
    said: list[Work] = []
    made = run_feed(FeedRequest(cpus=pair, intrude=True, **QUICK | asked), said.append)
    fits("probe.feed", made)
    return made


@pytest.mark.parametrize(
    "words",
    ["--stamps sw", "--stamps off", "--transport udp --format binary", "--waiting poll --alloc 2", "--burst 16",
     "--transport multicast-ab --format json --symbols 4", "--tls ktls", "--waiting busy-poll"],
)  # fmt: skip
def test_what_the_program_writes_is_as_the_schema_says(program: Path, pair: str, words: str) -> None:
    argv = [str(program), "feed", "--intrude", "--cpus", pair, "--rate", "2000", "--duration", "0.1", *words.split()]
    raw = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)
    fits("probe.feed.raw", raw)
    fits("probe.feed", explained_feed(raw))


def test_every_cell_is_there_with_figures_or_with_a_reason(installed: Path, pair: str) -> None:
    made = feed(pair, transport="tcp,udp", format="ws-json,binary", waiting="poll,poll0")
    cells = made["cells"]
    assert len(cells) == 8
    for cell in cells:
        assert bool(cell["reason"]) is (cell["n"] == 0)
        assert cell["cpus"] == [int(cpu) for cpu in pair.split(",")]
        if cell["n"]:
            figures_agree(cell)
    refused = [(cell["transport"], cell["format"]) for cell in cells if "they go over tcp" in cell["reason"]]
    assert refused == [("udp", "ws-json")] * 2  # on a busy machine others may have no result, each with its reason


def figures_agree(cell: dict[str, Any]) -> None:
    assert cell["n"] == cell["due"] == cell["sent"] + cell["unsent"] == 200
    due = cell["due_to_book_ns"]
    found = [due[name] for name in ("min", "50", "90", "95", "99", "max") if due[name] is not None]
    assert found == sorted(found)
    assert due["99.9"] is None
    assert sum(count for _, _, count in cell["histogram"]) + cell["lost"] == 200
    assert sum(count for count, _, _ in cell["series"]["intervals"]) == cell["sent"] - cell["lost"]
    if not cell["lost"] and not cell["unsent"]:
        parts = sum((cell["stages_ns"][name] or {"mean": 0})["mean"] for name in FEED_STAGES)
        assert parts == pytest.approx(due["mean"], abs=10)
    bar = cell["bars_ns"]["50"]
    if bar and not cell["unsent"]:
        assert sum(ns or 0 for ns in bar.values()) == pytest.approx(due["50"], rel=0.02)


def test_the_cost_of_stamps_is_measured_where_there_are_some(installed: Path, pair: str) -> None:
    said: list[Work] = []
    made = run_feed(FeedRequest(cpus=pair, intrude=True, **QUICK), said.append)
    (cell,) = made["cells"]
    assert len(said) == 1 + cell["stamped"]
    if cell["stamped"]:
        assert said[1].now == "tcp ws-json, 1 symbol, poll0: once more without time stamps"
        assert said[1].left_s
    off = feed(pair, stamps="off")
    assert (off["stamp_cost_ns"], off["cells"][0]["stamped"]) == (None, False)
    assert off["cells"][0]["stages_ns"]["wire"] is None


def test_overload_is_counted_and_never_shortens_the_tail(installed: Path, pair: str) -> None:
    """A million messages a second, far more than a UDP socket takes here: none is left out of the figures."""
    (cell,) = feed(pair, transport="udp", format="json", rate=1_000_000, duration_s=0.05)["cells"]
    assert cell["due"] == 50_000
    assert cell["sent"] + cell["unsent"] == 50_000
    if not cell["is_void"] and cell["n"]:
        assert sum(count for _, _, count in cell["histogram"]) + cell["lost"] == 50_000
        assert (cell["lower_bounds_from_ns"] is not None) is (cell["unsent"] > 0)
