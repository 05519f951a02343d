"""What [budget.feed] says of a result: at the limit, one nanosecond beyond it, and where nothing can be said."""

from typing import Any

import pytest

from tests.compare.feeds import feed_document
from tests.experiments.feeds import case, message
from tunectl.errors import UsageError
from tunectl.experiments.feed_budget import judge_feed
from tunectl.shapes import Feed, typed

KEY = "due_to_book_p99_9_ns"
ASKED = {"transport": "tcp", "format": "json", "symbols": 1, "rate": 10_000, "burst": 1, "waiting": "poll0"}


def judged(*cases: dict[str, Any], limit: float | None = 9_000.0, **more: Any) -> tuple[str, list[str], str]:
    found = judge_feed(typed({"cells": list(cases), **more}, Feed), {} if limit is None else {KEY: limit})
    return found.verdict, found.broken, found.reason


def tail(p99_9: float | None, **more: Any) -> dict[str, Any]:
    """A case of 20,000 messages with this P99.9."""
    spread = {"min": 1.0, "mean": 2.0, "50": 2.0, "90": 3.0, "99": 4.0, "99.9": p99_9, "99.99": None, "max": p99_9}
    return {**ASKED, "tls": "off", "alloc": 0, "n": 20_000, "histogram": [], "due_to_book_ns": spread, **more}


NAME = "tcp json, 1 symbol, poll0"


@pytest.mark.parametrize(
    ("found", "verdict", "said"),
    [
        (tail(9_000.0), "within", ""),
        (tail(8_999.0), "within", ""),
        (tail(9_001.0), "broken", f"{NAME}: 99.9 % of messages are in the book 9.001 µs after they were due"),
        (tail(9_001.0, lower_bounds_from_ns=5_000), "broken", "at least 9.001 µs"),
        (tail(8_000.0, lower_bounds_from_ns=5_000), "not-judged", "P99.9 is 8 µs or more: messages were never sent"),
        (tail(8_000.0, lower_bounds_from_ns=8_001), "within", ""),
        (tail(None, lost=21), "broken", "more than 0.1 % of the messages were lost (21 of 20,000)"),
        (tail(None), "not-judged", "P99.9 is not known"),
        (tail(9_000.0, failed="receiving failed"), "not-judged", f"{NAME}: receiving failed"),
        (tail(9_001.0, failed="receiving failed"), "broken", "9.001 µs after they were due"),
        (tail(None, n=9_999), "not-judged", "9,999 messages, and P99.9 needs 10,000"),
        (tail(None, n=0, reason="no CPU", is_void=True), "not-judged", f"{NAME}: void: no CPU"),
        (tail(None, n=0, reason="the kernel has no TLS"), "not-judged", f"{NAME}: the kernel has no TLS"),
    ],
)
def test_one_case(found: dict[str, Any], verdict: str, said: str) -> None:
    got, broken, reason = judged(found)
    assert got == verdict
    assert said in "; ".join([*broken, reason])
    assert bool(broken) == (verdict == "broken")


def test_every_case_is_held_to_the_limit_and_one_that_breaks_it_decides() -> None:
    assert judged(tail(9_000.0), tail(9_001.0))[0] == "broken"
    assert judged(tail(9_000.0), tail(None, n=0, reason="no"))[0] == "not-judged"
    assert judged(tail(9_001.0), tail(None, n=0, reason="no"))[0] == "broken"


def test_what_keeps_no_limit() -> None:
    assert judged(tail(9_000.0), limit=None) == (
        "not-judged",
        [],
        "no limit is set ([budget.feed] due_to_book_p99_9_ns)",
    )
    assert judged(tail(9_000.0), interrupted=True)[0] == "not-judged"
    assert judged(tail(9_001.0), interrupted=True)[0] == "broken"
    assert judged() == ("not-judged", [], "nothing was measured")


@pytest.mark.parametrize(
    ("least", "most", "apart"),
    [(0.0, 0.0, False), (-1.0, 1.0, False), (0.1, 1.0, True), (-1.0, -0.1, True), (1.0, -1.0, True)],
)
@pytest.mark.parametrize("p99_9", [9_000.0, 9_001.0])
def test_counters_that_differ_prove_nothing(p99_9: float, least: float, most: float, apart: bool) -> None:
    verdict, broken, reason = judged(tail(p99_9), clock={"offset_least_ns": least, "offset_most_ns": most})
    assert verdict == ("not-judged" if apart else "within" if p99_9 == 9_000.0 else "broken")
    assert ("counters" in reason) == apart
    assert not (apart and broken)


@pytest.mark.parametrize("limits", [{"p50": 1.0}, {KEY: 0.0}, {KEY: float("nan")}])
def test_what_is_no_limit_is_refused(limits: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=r"budget\.feed"):
        judge_feed(typed({"cells": [tail(1.0)]}, Feed), limits)


@pytest.mark.parametrize(("failed", "errno", "verdict"), [("receiving", 5, "not-judged"), ("", 0, "within")])
def test_a_case_that_ended_early_is_known_by_its_cell(failed: str, errno: int, verdict: str) -> None:
    body = feed_document(case([message()] * 20_000, failed=failed, errno=errno))
    assert bool(body["cells"][0]["failed"]) == bool(failed)
    assert judge_feed(typed(body, Feed), {KEY: 1e9}).verdict == verdict


@pytest.mark.parametrize(("ticks", "verdict"), [([5, 9], "not-judged"), ([-5, 9], "within")])
def test_the_offset_that_was_measured_is_judged(ticks: list[int], verdict: str) -> None:
    clock = {"source": "tsc", "hz": 1e9, "granule_ns": 1.0, "drift_ppm": 0.0, "offset_ticks": ticks}
    body = feed_document(case([message()] * 20_000), clock=clock)
    assert judge_feed(typed(body, Feed), {KEY: 1e9}).verdict == verdict
