"""What Python makes of the counts of `wake`: figures, cells that are void, speed-ups, warnings. On values alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.compare.reading import compared
from tests.experiments.feeds import MS
from tests.experiments.test_laws import SPINNER
from tests.experiments.wakes import block, case, minimal, raw_document, timer
from tests.schemas import fits
from tunectl.errors import TunectlError
from tunectl.experiments.pair import Peer
from tunectl.experiments.tick_figures import Figures
from tunectl.experiments.wake_cells import explained_wake
from tunectl.model import Document, HostId
from tunectl.probe.document import read_document
from tunectl.report import render

document, cell = SPINNER.explained, SPINNER.cell


def test_a_cell_has_the_figures_of_its_counts() -> None:
    made = cell(minimal(delay=[1000, 50, 2000, 49, 300_000, 1]))
    assert (made["n"], made["min_ns"], made["max_ns"], made["mean_ns"]) == (100, 1000, 300_000, 4480.0)
    assert made["percentiles_ns"] == {"50": 1000, "90": 2000, "95": 2000, "99": 2000, "99.9": 300_000, "99.99": 300_000}
    assert made["after_send_ns"]["50"] == -10
    assert [count for _, _, count in made["histogram"]] == [50, 49, 1]
    for (low, high, _), value in zip(made["histogram"], (1000, 2000, 300_000), strict=True):
        assert low <= value < high
    assert made["receiver_cpu_percent"] == 100


def test_buckets_narrower_than_a_nanosecond_are_merged() -> None:
    counts = [number for ticks in range(400, 420) for number in (ticks, 1)]
    made = Figures(counts, 4e9).histogram_ns()
    assert [low for low, _, _ in made] == [100, 101, 102, 103, 104]
    assert sum(count for _, _, count in made) == 20


def test_a_round_trip_leaves_the_other_host_out() -> None:
    far = {"far": [20, 100], "away": [4981, 100]}
    made = explained_wake(raw_document(minimal(**far)), Peer("10.0.0.2:7000", 2_000_000_000, 3))
    fits("probe.wake", made)
    (one,) = made["cells"]
    assert (one["far_ns"]["50"], one["one_way_estimate_ns"]["50"], one["is_round_trip"]) == (20, 2490, True)
    assert made["peer"] == {"address": "10.0.0.2:7000", "hz": 2_000_000_000, "cpu": 3}


def test_a_speedup_is_the_ratio_of_two_cells() -> None:
    poll = case("poll", "sleeping", 200_000)
    (first, second) = document(block(), poll, minimal(), case("poll0", "spinning", 20_000))["speedups"]
    assert (first["way"], first["over"]) == ("minimal", "block")
    assert (first["mean"], first["percentiles"]["99"], first["max"]) == (20.0, 20.0, 20.0)
    assert (second["way"], second["mean"]) == ("poll0", 5.0)
    assert document(minimal(), case("block", "sleeping", idle_ms=1.0))["speedups"] == []


def test_a_timer_has_delays_and_nothing_of_a_sender() -> None:
    made = document(timer(late_expirations=3), block(), facts={"timer_slack_ns": 1})
    one, other = made["cells"]
    assert (one["n"], one["percentiles_ns"]["50"], one["late_expirations"]) == (100, 100_000, 3)
    assert [one[name] for name in ("after_send_ns", "send_call_ns", "late_ns")] == [None] * 3
    assert one["warnings"] == [
        "3 of 100 expirations had passed before the thread came to wait for them: it was late for longer than a period"
    ]
    assert other["late_expirations"] is None
    assert made["timer_slack_ns"] == 1


@pytest.mark.parametrize(("mechanism", "slack_ns", "said"), [("clock_nanosleep", 50_000, True), ("tcp", 50_000, False)])
def test_timer_slack_is_named_where_it_matters(mechanism: str, slack_ns: int, said: bool) -> None:
    made = document(timer(mechanism=mechanism), facts={"timer_slack_ns": slack_ns})
    assert any("timer slack is 50 µs" in text for text in made["warnings"]) is said
    assert document(timer(mechanism=mechanism), facts={"timer_slack_ns": 1})["warnings"] == []


def test_a_void_cell_is_not_compared(tmp_path: Path) -> None:
    paths = []
    for name, ms in (("before", 1000), ("after", 500)):
        made = document(block(), minimal(receiver_ns=ms * MS), has_warm_sender=name == "before")
        (tmp_path / name).write_text(json.dumps(made))
        paths.append(read_document(tmp_path / name))
    result = compared(paths[0], paths[1])
    rows = [row for group in result["groups"] if "minimal" in group["name"] for row in group["rows"]]
    assert {row["after"] for row in rows if row["measure"] != "receiver_cpu_percent"} <= {None}
    assert [row["measure"] for row in rows if row["ratio"]] == []
    assert any("void: the spinner had CPU 3" in text for text in result["warnings"])
    assert any("another sender: warm before, cold after" in text for text in result["warnings"])


@pytest.mark.parametrize("changes", [{"bytes": 1400}, {"fds": 100}, {"dirty_kib": 512}])
def test_another_size_of_messages_sets_and_working_sets_is_named(tmp_path: Path, changes: dict[str, Any]) -> None:
    made = [document(minimal()), document(minimal(), **changes), document(minimal(), at="2026-11-23T10:00:00Z")]
    for number, one in enumerate(made):
        (tmp_path / str(number)).write_text(json.dumps(one))
    before, after, alike = (read_document(tmp_path / str(number)) for number in range(3))
    shown = str(*changes.values())
    assert [text for text in compared(alike, after)["warnings"] if "another" in text and shown in text] != []
    assert [text for text in compared(before, alike)["warnings"] if "another" in text] == []


def test_two_results_of_void_cells_say_that_they_are_void(tmp_path: Path) -> None:
    def read(name: str, *cases: dict[str, Any]) -> Any:
        (tmp_path / name).write_text(json.dumps(document(*cases)))
        return read_document(tmp_path / name)

    void = read("void", block(preemptions=50), minimal(receiver_ns=0))
    with pytest.raises(
        TunectlError, match=r"every cell that .*void and .*void have in common is void: .*the spinner had"
    ):
        compared(void, void)
    missing = read(
        "missing", block(preemptions=50), minimal(sent=0, arrived=0, delay=[], reason="interrupted before it")
    )
    with pytest.raises(TunectlError, match=r"in common is void or not measured: .*interrupted before it"):
        compared(void, missing)
    with pytest.raises(TunectlError, match="have no wait method in common"):
        compared(void, read("other", block(mechanism="udp", preemptions=50)))


TAKEN = {"ticks": 1000 * MS, "cpu_ns": 300 * MS, "own_ns": 2 * MS, "own_slices": 100, "cpu_slices": 200}


@pytest.mark.parametrize(
    ("cases", "whys"),
    [
        ([block(occupancy=TAKEN), minimal(receiver_ns=0)], ["other tasks had", "--cpus"]),
        ([block(throttled_us=1), minimal(throttled_us=1)], ["a cpu.max stopped", "no control group above"]),
        ([block(unready=50), minimal(receiver_ns=0)], ["still wrote", "other tasks had", "--idle-ms", "--cpus"]),
    ],
)
def test_that_a_run_has_no_result_is_said_once_with_what_would_help(cases: list[Any], whys: list[str]) -> None:
    made = explained_wake(raw_document(*cases, dirty_kib=64))
    assert all(cell["is_void"] for cell in made["cells"])
    said = made["no_result"]
    assert all(why in said for why in whys)
    drawn = " ".join(render(Document("probe.wake", HostId(), "2026-11-28T00:00:00Z", made), "text").split())
    assert drawn.startswith("NO RESULT 2 cases, 2 void: ")
    assert drawn.count(said) == drawn.count("what would help") == 1
    assert drawn.count("2 void") == drawn.count("void") == 2  # first and last
    one_more = explained_wake(raw_document(*cases, minimal(), dirty_kib=64))
    assert one_more["no_result"] == ""
