"""The pages of `probe feed`, text and HTML: figures, stages, what is a bound, what is unknown, what was left out."""

from typing import Any

import pytest

from tests.compare.feeds import feed_document
from tests.experiments.feeds import case, lossy, message, tail
from tests.report.documents import AT, HOST
from tunectl.model import Document
from tunectl.report import render
from tunectl.report.charts import Level, levels
from tunectl.report.html.charts import series_plot, share_plot, stacked_bars
from tunectl.shapes import FEED_STAGES, Feed, FeedSeries, typed

ONE = feed_document(case(tail(20_000)))


def text(body: dict[str, Any], width: int = 80, verbose: int = 0) -> list[str]:
    return render(Document("probe.feed", HOST, AT, body, verbose=verbose), "text", width=width).splitlines()


def test_the_stages_of_a_single_case_add_up_to_each_percentile() -> None:
    lines = text(ONE)
    at = lines.index("Stages: tcp ws-json, 1 symbol, poll0")
    rows = [line.split() for line in lines[at + 4 : at + 4 + len(FEED_STAGES)]]
    assert [row[0] for row in rows] == list(FEED_STAGES)
    assert "Stages: median of each" not in lines


# ---- HTML


def test_a_bar_is_full_and_in_the_order_of_the_stages() -> None:
    (one,) = typed(ONE, Feed).cases
    bars = stacked_bars(one)
    assert [bar["name"] for bar in bars] == ["P50", "P90", "P99", "P99.9", "longest"]
    for bar in bars:
        assert sum(part["width"] for part in bar["parts"]) == pytest.approx(100, abs=0.1)
        assert [part["number"] for part in bar["parts"]] == sorted(part["number"] for part in bar["parts"])
    widest = max(bars[4]["parts"], key=lambda part: float(part["width"]))
    assert widest["stage"] == "send"  # 290 us late


def test_a_negative_stage_has_no_part_of_a_bar() -> None:
    (one,) = typed(feed_document(case([message(wire=-30)] * 100)), Feed).cases
    assert {part["stage"] for part in stacked_bars(one)[0]["parts"]} == {*FEED_STAGES} - {"wire", "batch"}


def test_lost_messages_keep_the_curve_up() -> None:
    (one,) = typed(feed_document(lossy([message()] * 900, 100)), Feed).cases
    plot = share_plot([one])
    assert plot is not None
    assert [mark["label"] for mark in plot["y"]] == ["P99.9", "P99", "P90", "all"]
    level = next(mark["at"] for mark in plot["y"] if mark["label"] == "P90")
    assert f"V{level:g}" in plot["paths"][0]["d"]  # a tenth is longer than anything that came
    assert share_plot([]) is None


def test_the_course_of_a_run() -> None:
    (one,) = typed(ONE, Feed).cases
    plot = series_plot(one)
    assert plot is not None
    assert (plot["slices"], plot["end"]) == (4, "1 s")
    assert plot["said"] == "Longest message 301 µs, due after 250 ms"


def test_slices_are_of_whole_intervals_and_an_empty_one_is_unknown() -> None:
    series = FeedSeries(0.5, [(2, 20, 15), (0, 0, 0), (1, 30, 30), (3, 30, 12), (1, 7, 7)])
    assert levels(series, 5) == [Level(15, 10), None, Level(30, 30), Level(12, 10), Level(7, 7)]
    assert levels(series, 2) == [Level(30, 50 / 3), Level(12, 37 / 4)]
    assert levels(FeedSeries(0.5, []), 2) == []
