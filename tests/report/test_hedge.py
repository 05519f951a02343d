"""The pages of `probe hedge`, text and HTML: what a second copy gains, what is unknown, where it collapses."""

import math
from typing import Any

from tests.compare.hedges import hedge_document
from tests.experiments.hedges import case, tail
from tests.report.documents import AT, HOST
from tests.report.pages import Page, file
from tests.report.pages import page as html_page
from tunectl.model import Document
from tunectl.report import render
from tunectl.report.hedge import findings, gain
from tunectl.report.html.charts import load_plot
from tunectl.shapes import Hedge, typed

CALM, SHORT = tail(20_000), tail(20_000, 6_000)
STALLED = [300_000 if at % 500 == 50 else 3_000 + at % 97 for at in range(20_000)]
COLLAPSED: dict[str, Any] = {"unanswered": 5_000, "queue_sums": [20_000, 0, 0, 900_000]}
ONE = hedge_document(
    case(STALLED),
    case(SHORT, won=[8_000] * 200, hedged=1_000, delay="p95", wasted_ticks=3_000_000),
    case(CALM, load=0.85),
    case([900_000] * 15_000, load=0.85, hedged=20_000, delay="p95", hedge_cancelled=20_000, **COLLAPSED),
)


def text(body: dict[str, Any], width: int = 80, verbose: int = 0) -> list[str]:
    return render(Document("probe.hedge", HOST, AT, body, verbose=verbose), "text", width=width).splitlines()


def html(body: dict[str, Any]) -> Page:
    return html_page(file("probe.hedge", body))


def said(*cases: dict[str, Any]) -> list[str]:
    return findings(typed(hedge_document(*cases), Hedge))


def test_what_it_gains_and_where_it_collapses() -> None:
    fell = "P99.9 is 6 µs instead of 300 µs (50 times shorter), for 5 % more copies"
    assert findings(typed(ONE, Hedge)) == [
        f"a second copy helps most at load 0.1, at P95: {fell}",
        "it helps at no delay at load 0.85",
        "with a second copy at P95 it collapses at load 0.85",
    ]


def test_what_was_not_sent_did_not_help() -> None:
    assert said(case(STALLED), case(CALM, hedged=0, delay="p95")) == []
    assert said(case(CALM), case(STALLED, load=0.5)) == []
    assert said(case(CALM, hedged=9, delay="0")) == []  # nothing to compare it with


def test_what_chance_explains_did_not_help() -> None:
    """Ten of 20,000 decide P99.9: a few more or less of them are chance."""
    few, more = ([9_000] * slow + [3_000] * (20_000 - slow) for slow in (15, 25))
    assert "no second copy helps" in said(case(more), case(few, hedged=9, delay="0"))[0]
    none, many = ([9_000] * slow + [3_000] * (20_000 - slow) for slow in (0, 60))
    assert "helps most" in said(case(many), case(none, hedged=9, delay="0"))[0]


def test_each_stall_is_told_by_itself() -> None:
    found = said(
        case(STALLED, stall="a"),
        case(SHORT, stall="a", hedged=20, delay="0"),
        case(STALLED, stall="common"),
        case(STALLED, stall="common", hedged=20, delay="0"),
    )
    assert [one[:42] for one in found] == [
        "stall a: a second copy helps most at load ",
        "stall common: no second copy helps: at no ",
    ]


def gained(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, float] | None:
    cases = typed(hedge_document(before, after), Hedge).cases
    return gain(cases[1], cases)


def test_a_gain_is_of_the_last_percentile_that_is_known_of_both() -> None:
    hedged: dict[str, Any] = {"hedged": 9, "delay": "0"}
    assert gained(case(STALLED), case(SHORT, **hedged)) == ("99.9", 50.0)
    assert gained(case([6_000] * 999), case([3_000] * 999, **hedged)) == ("99", 2.0)  # too few for P99.9
    assert gained(case([6_000] * 9_950, shed=50), case([3_000] * 10_000, **hedged)) == ("99.9", math.inf)
    assert gained(case([6_000] * 10_000), case([3_000] * 9_950, shed=50, **hedged)) == ("99.9", 0.0)
    assert gained(case([6_000] * 9_950, shed=50), case([3_000] * 9_950, shed=50, **hedged)) == ("99", 2.0)
    assert gained(case([6_000] * 900, shed=100), case([3_000] * 900, shed=100, **hedged)) is None
    assert gained(case([6_000] * 999, load=0.2), case([3_000] * 999, **hedged)) is None  # another load


def test_answers_where_there_were_none_are_a_gain() -> None:
    found = said(case([6_000] * 9_950, shed=50), case([3_000] * 10_000, hedged=100, delay="0"))
    fell = "P99.9 is 3 µs and without it more than 0.1 % missed, for 1 % more copies"
    assert found == [f"a second copy helps most at load 0.1, at once: {fell}"]


# ---- HTML


def test_a_plot_has_a_pair_of_lines_for_each_delay() -> None:
    cases = typed(ONE, Hedge).cases
    plot = load_plot(cases)
    assert plot is not None
    assert [path["name"] for path in plot["paths"]] == ["none, P50", "none, P99.9", "at P95, P50", "at P95, P99.9"]
    assert [mark["label"] for mark in plot["x"]] == ["0.1", "0.85"]
    assert "L" in plot["paths"][2]["d"]
    assert "L" not in plot["paths"][3]["d"]  # beyond load 0.1 too many missed
    assert load_plot([one for one in cases if one.load == 0.1]) is None


def test_a_plot_has_no_more_lines_than_can_be_told_apart() -> None:
    delays = ("none", "0", "p95", "p99")
    cases = [case(CALM, load=load, delay=delay) for load in (0.1, 0.5) for delay in delays]
    plot = load_plot(typed(hedge_document(*cases), Hedge).cases)
    assert plot is not None
    assert len(plot["paths"]) == 6
    assert "the table has 1 more" in html(hedge_document(*cases)).words
