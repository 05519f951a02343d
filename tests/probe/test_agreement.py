"""A document of cases whose own counts contradict each other is refused, with the key and both figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.compare.feeds import feed_document
from tests.compare.hedges import hedge_document
from tests.experiments.feeds import case as feed_case
from tests.experiments.feeds import tail as messages
from tests.experiments.hedges import case as hedge_case
from tests.experiments.hedges import tail as answers
from tunectl.errors import TunectlError
from tunectl.probe.document import checked

HERE = Path("edited.json")


def hedge(**changes: Any) -> dict[str, Any]:
    document = hedge_document(hedge_case(answers(20_000, 8_000), won=[8_000] * 20, hedged=100, delay="p95"))
    document["cells"][0] |= changes
    return document


def feed(budget: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    document = feed_document(feed_case(messages(20_000)))
    document["cells"][0] |= changes
    return document | ({"budget": budget} if budget else {})


def refusal(document: dict[str, Any]) -> str:
    with pytest.raises(TunectlError) as caught:
        checked(document, HERE)
    return caught.value.message


def test_what_was_counted_is_taken() -> None:
    checked(hedge(), HERE)
    checked(feed(), HERE)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"won": 21}, "won + lost + hedge_cancelled + hedge_unfinished: 101, and hedged is 100"),
        ({"wasted": 1}, "answered + wasted + cancelled_unstarted + unfinished: "),
        ({"hedged": 20_001, "lost": None, "wasted": None}, "hedged: 20,001, of 20,000 requests"),
        ({"delay": "none", "lost": None}, "hedged: 100, of 20,000 requests, and no second copy"),
        ({"utilisation": 1.02}, "utilisation: 1.02, and no server works more than all the time"),
        ({"delay": "5000", "delay_ns": 5_053}, "delay_ns: 5,053, and 5,000 was asked for"),
        ({"single_ns": {"a": {"min": 9, "mean": 20, "50": 6, "max": 30}}}, "single_ns[a]: min is 9, and 50 is 6"),
        ({"floor_ns": 8_003}, "floor_ns: 8,003, and hedges won, though no answer took longer than 8,000 ns"),
    ],
)
def test_requests_and_copies_add_up(changes: dict[str, Any], said: str) -> None:
    assert f"edited.json: cells[0].{said}" in refusal(hedge(**changes))


def test_a_floor_is_no_contradiction_at_the_longest_answer() -> None:
    checked(hedge(floor_ns=8_002), HERE)  # both are rounded


def test_what_two_clocks_explain_is_no_contradiction() -> None:
    checked(hedge(utilisation=1.01), HERE)
    checked(hedge(delay="5000", delay_ns=5_052), HERE)


def test_a_case_is_there_once() -> None:
    document = hedge()
    document["cells"] *= 2
    assert "edited.json: cells: 'load 0.1, second copy at P95': is there twice" in refusal(document)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"due": 19_999}, "due: 19,999, and n is 20,000"),
        ({"sent": 19_999}, "sent + unsent: 19,999, and n is 20,000"),
        ({"receiver_cpu_percent": 100.5}, "receiver_cpu_percent: 100.5, and no thread has more than one CPU"),
        ({"receiver_cpu_percent": 89.98}, "receiver_cpu_percent: 89.98, and a spinner with less than 89.99 % is void"),
        ({"series": {"interval_s": 1.0, "intervals": [[1, 1, 1]]}}, "series.intervals: 1, and n - lost - unsent is 20"),
        ({"late_ns": {"min": 5, "mean": 2, "50": 6, "max": 9}}, "late_ns: mean is 2, and all are from 5 to 9"),
        ({"stages_ns": {"read": {"50": 8, "99": 3}}}, "stages_ns[read]: 50 is 8, and 99 is 3"),
        ({"bars_ns": {"50": {"read": 1.0, "wire": None}}}, "bars_ns[50]: adds up to 1, and that percentile is "),
    ],
)
def test_messages_add_up(changes: dict[str, Any], said: str) -> None:
    assert f"edited.json: cells[0].{said}" in refusal(feed(**changes))


def test_a_thread_may_have_a_whole_cpu() -> None:
    checked(feed(receiver_cpu_percent=100.0), HERE)
    checked(feed(receiver_cpu_percent=89.99), HERE)
    checked(feed(receiver_cpu_percent=1.0, waiting="poll"), HERE)


def test_a_limit_that_the_figures_break_is_not_within() -> None:
    value = feed()["cells"][0]["due_to_book_ns"]["99.9"]
    for limit, is_within in ((value, True), (value - 1, False)):
        document = feed({"limits": {"due_to_book_p99_9_ns": limit}, "verdict": "within"})
        if is_within:
            checked(document, HERE)
        else:
            assert "edited.json: budget.verdict: is within, and the figures break a limit" in refusal(document)
