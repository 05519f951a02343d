"""The pages of `probe feed`, text and HTML: figures, stages, what is a bound, what is unknown, what was left out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compare.feeds import TRIP, feed_document
from tests.experiments.feeds import case, lossy, message, tail, unmeasured, unsent
from tests.report.documents import AT, HOST, document
from tests.report.documents import body as preflight_body
from tests.report.pages import Page, file
from tests.report.pages import page as html_page
from tunectl.model import Document
from tunectl.report import render
from tunectl.report.charts import Level, levels
from tunectl.report.html.charts import series_plot, share_plot, stacked_bars
from tunectl.shapes import FEED_STAGES, Feed, FeedSeries, typed

ONE = feed_document(case(tail(20_000)))
SEVERAL = feed_document(*(case(tail(1_000), symbols=symbols) for symbols in (1, 2, 4, 8)))


def text(body: dict[str, Any], width: int = 80, verbose: int = 0) -> list[str]:
    return render(Document("probe.feed", HOST, AT, body, verbose=verbose), "text", width=width).splitlines()


def html(body: dict[str, Any]) -> Page:
    return html_page(file("probe.feed", body))


def test_the_stages_of_a_single_case_add_up_to_each_percentile() -> None:
    lines = text(ONE)
    at = lines.index("Stages: tcp ws-json, 1 symbol, poll0")
    rows = [line.split() for line in lines[at + 4 : at + 4 + len(FEED_STAGES)]]
    assert [row[0] for row in rows] == list(FEED_STAGES)
    assert "Stages: median of each" not in lines


def test_a_round_trip_says_where_it_went() -> None:
    stamps = {"asked": "hw", "kind": "hw", "reason": "", "were_on": None, "uncertainty_ticks": 900, "stepped": False}
    body = feed_document(case(tail(1_000), stamps=stamps), trip=TRIP)
    assert (body["peer"], body["interface"]) == ({"address": "10.0.0.2:7000", "hz": 2_000_000_000, "cpu": 5}, "eth1")
    assert [cell["is_round_trip"] for cell in body["cells"]] == [True]
    lines = text(body)
    assert lines[0] == "from CPU 2 and back from 10.0.0.2:7000 to CPU 3, 1 case, 1 s"
    said = ("messages go to 10.0.0.2:7000 and come back: wire", "wire ends at the network card's time stamp")
    for page in (" ".join(lines), html(body).words.lower()):
        assert all(words in page for words in said)
        assert "tcp ws-json, 1 symbol, poll0, there and back" in page
    stayed = " ".join(text(ONE))
    assert "back" not in stayed
    assert "network card" not in stayed


def test_of_many_cases_one_table_has_the_medians_and_the_rest_is_for_those_who_ask() -> None:
    lines = text(SEVERAL)
    assert "Stages: median of each" in lines
    assert not any(line.startswith("Stages: tcp") for line in lines)
    verbose = text(SEVERAL, verbose=1)
    assert sum(line.startswith("Stages: tcp") for line in verbose) == 4
    assert sum("messages by length" in line for line in verbose) == 4


def held(verdict: str, limit: float = 51_000, *broken: str) -> dict[str, Any]:
    reason = "" if verdict != "not-judged" else "interrupted"
    budget = {"limits": {"due_to_book_p99_9_ns": limit}, "verdict": verdict, "broken": broken, "reason": reason}
    return {**ONE, "budget": budget}


@pytest.mark.parametrize(
    ("body", "line", "word"),
    [
        (held("within"), "within budget (due to book P99.9 51 µs)", "within budget"),
        (held("broken", 50_000, "tcp: late"), "over budget: tcp: late", "over budget"),
        (held("not-judged"), "not judged: interrupted", "not judged"),
    ],
)
def test_how_it_was_judged_is_said_first(body: dict[str, Any], line: str, word: str) -> None:
    assert line in text(body)[:6]
    assert word in html(body).words


def test_without_a_limit_nothing_is_said_of_a_budget() -> None:
    assert "budget" not in "\n".join(text(ONE))


@pytest.mark.parametrize(
    ("limit", "verdict", "word"),
    [
        (60_000.0, "within", "within"),
        (60_000.0, "not-judged", "not judged"),
        (50_000.0, "broken", "OVER"),
        (None, "not-judged", "no limit"),
    ],
)
def test_preflight_puts_the_worst_case_beside_its_limit(limit: float | None, verdict: str, word: str) -> None:
    limits = {} if limit is None else {"due_to_book_p99_9_ns": limit}
    feed = {**ONE, "budget": {"limits": limits, "verdict": verdict}}
    lines = render(document("preflight", is_feed_asked=True, feed=feed), "text", width=100).splitlines()
    (row,) = [line for line in lines if line.strip().startswith("due to book P99.9")]
    assert row.rstrip().endswith(f"tcp ws-json, 1 symbol, poll0  {word}")
    assert "Feed" in lines
    said = html_page(file("preflight", {**preflight_body("preflight"), "feed": feed})).words
    assert "The worst case of feed" in said
    nagios = render(document("preflight", is_feed_asked=True, feed=feed), "nagios")
    assert f"'feed_due_to_book_p99.9'=50.96us;;{'' if limit is None else f'{limit / 1000:g}'};0" in nagios


WORST = feed_document(
    case(tail(1_000)),
    case(tail(1_000), transport="multicast-ab", format="binary", symbols=64, waiting="busy-poll", alloc=64),
    lossy([message()] * 900, 100, tls="ktls"),
    unsent([message()] * 900, [987_654_321] * 100, symbols=4),
    case(stamped=False, format="json"),
    case(receiver_ns=0, format="binary"),
    unmeasured("the socket's NAPI id is 0: no device queue that the kernel could poll feeds it", waiting="busy-poll"),
    unmeasured("WebSocket frames are a stream of bytes: they go over tcp, and not over udp", transport="udp"),
    interrupted=True,
)


@pytest.mark.parametrize("width", [40, 60, 80, 132])
@pytest.mark.parametrize("verbose", [0, 1])
@pytest.mark.parametrize("body", [ONE, SEVERAL, WORST])
def test_lines_fit(body: dict[str, Any], width: int, verbose: int) -> None:
    lines = text(body, width, verbose)
    assert [line for line in lines if len(line) > width] == []
    assert [line for line in lines if line != line.rstrip()] == []


def test_bounds_unknown_figures_and_void_cases_are_told_apart() -> None:
    lines = text(WORST, 132)
    table = {name: line for line in lines for name in ("64 symbols", "ktls", "4 symbols") if f" {name}" in line[:60]}
    at = lines.index("Due to book")
    rows = {line[2:40].strip(): line[40:].split() for line in lines[at + 2 : at + 8]}
    assert table
    assert rows["tcp ws-json, 4 symbols, poll0"].count("≥") == 2  # P99 and the longest; P50 is exact, P99.9 unknown
    assert rows["tcp ws-json, 1 symbol, poll0, ktls"].count("-") == 3  # P99, P99.9, the longest
    assert rows["tcp binary, 1 symbol, poll0"] == ["void"]
    assert any("≥ is a lower bound" in line for line in lines)
    assert any(line.startswith("without time stamps") for line in lines)
    assert any("the spinner had CPU 3 for 0 % of the time" in line for line in lines)
    assert sum("NAPI id is 0" in line for line in lines) == 1
    assert any("a signal ended the run early" in line for line in lines)


def test_nothing_measured_is_no_table() -> None:
    lines = text(feed_document(unmeasured("the kernel refuses it")))
    assert "Due to book" not in lines
    assert any("the kernel refuses it" in line for line in lines)


@pytest.mark.parametrize(("cost", "said"), [(310, "310 ns longer"), (-20, "20 ns shorter"), (None, "")])
def test_what_stamps_cost_is_said(cost: int | None, said: str) -> None:
    found = [line for line in text({**ONE, "stamp_cost_ns": cost}) if line.startswith("with time stamps the median is")]
    assert len(found) == bool(said)
    assert all(said in line for line in found)


# ---- HTML


def test_the_page_has_figures_bars_a_distribution_and_the_course() -> None:
    made = html(ONE)
    for words in ("Due to book", "How many messages take longer", "Stages: tcp ws-json, 1 symbol, poll0", "feed probe"):
        assert words in made.words, words
    assert len(made.all("rect")) >= 5 * 7 + len(FEED_STAGES)
    assert "longest message, " in made.words
    ids = [attrs["id"] for _, attrs, _ in made.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    named = [one for _, attrs, _ in made.tags for one in attrs.get("aria-labelledby", "").split()]
    assert set(named) <= set(ids)


def test_the_page_of_whatever_may_happen() -> None:
    made = html(WORST)
    for words in ("≥ 988 ms", "void", "Not measured: udp ws-json", "100 of 1,000 messages were lost"):
        assert words in made.words, words
    assert "Distribution" not in html(feed_document(unmeasured("no"))).words


def test_text_from_outside_stays_text() -> None:
    made = html(feed_document(unmeasured("<script>x</script>"), case(tail(100)) | {"tls": "<b>"}))
    assert made.all("script") == []
    assert made.all("b") == []


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
