"""Two results of `hedge` side by side: rows with bounds, what second copies cost, and what else differs."""

from typing import Any

import pytest

from tests.compare.feeds import feed_document
from tests.compare.hedges import hedge_document, simulated_hedge
from tests.compare.reading import Read, both, compared, rows, wider
from tests.experiments.feeds import case as feed_case
from tests.experiments.hedges import OWN, case, tail, unmeasured
from tunectl.errors import TunectlError

VOID: dict[str, Any] = {"threads": [OWN | {"cpu_ns": 0}, OWN, OWN]}


def test_percentiles_have_bounds_and_costs_are_one_figure_a_run(read: Read) -> None:
    before = read("a", hedge_document(case(tail(20_000), hedged=200, busy_ticks=200_000)))
    after = read("b", hedge_document(case([2 * ns for ns in tail(20_000)], hedged=400, busy_ticks=300_000)))
    made = both(before, after)
    found = rows(made)
    assert [*found] == [
        *(("answer_ns", name) for name in ("50", "99", "99.9")),
        *((name, None) for name in ("max_ns", "hedged_percent", "missed_percent", "utilisation_percent")),
    ]
    ratio = found["answer_ns", "50"]["ratio"]
    assert 1.9 < ratio["low"] <= ratio["value"] <= ratio["high"] < 2.1
    assert found["hedged_percent", None]["after"]["value"] == 2
    assert found["utilisation_percent", None]["ratio"]["value"] == 1.5
    assert (made["kind"], made["judged"]) == ("hedge", None)
    assert made["groups"][0]["name"] == "load 0.1, second copy after 5 µs"
    assert any("those that wait in one queue are not" in text for text in made["warnings"])


def test_cases_are_matched_by_all_that_was_asked(read: Read) -> None:
    some = [3_000] * 100
    ways: list[dict[str, Any]] = [
        *({}, {"load": 0.5}, {"delay": "p95"}, {"stall": "a"}, {"service_ns": 5000}, {"cancel": False}),
        *({"budget": 0.1}, {"shed_at": 4}),
    ]
    cases = [case(some, **way) for way in ways]
    made = both(read("a", hedge_document(*cases)), read("b", hedge_document(*reversed(cases))))
    assert len(made["groups"]) == len(ways)
    one = both(
        read("c", hedge_document(case(some), case(some, load=0.5))),
        read("d", hedge_document(case(some), case(some, load=0.7))),
    )
    assert [text for text in one["warnings"] if text.startswith("only ")] == [
        "only before: load 0.5, no second copy",
        "only after: load 0.7, no second copy",
    ]


def test_a_simulation_is_not_compared_with_a_measurement(read: Read) -> None:
    some = case([3_000] * 100)
    said = r"have no case in common \(probe both hosts with the same loads, .*both measured or both simulated"
    with pytest.raises(TunectlError, match=said):
        compared(read("a", hedge_document(some)), read("b", simulated_hedge(some)))
    assert both(read("a", simulated_hedge(some)), read("b", simulated_hedge(some)))["groups"]


def test_what_missed_has_no_ratio_and_leaves_bounds_open(read: Read) -> None:
    calm = read("a", hedge_document(case([3_000] * 1000)))
    missing = read("b", hedge_document(case([3_000] * 980, unanswered=20)))
    found = rows(both(calm, missing))
    assert found["answer_ns", "50"]["ratio"] is not None
    assert found["answer_ns", "99"]["ratio"] is None
    assert "too many of them missed" in found["answer_ns", "99"]["reason"]
    assert found["missed_percent", None]["after"]["value"] == 2
    few = read("c", hedge_document(case([3_000] * 992, unanswered=8)))
    assert rows(both(calm, few))["answer_ns", "99"]["after"]["high"] is None


def test_what_else_differs_is_named(read: Read) -> None:
    some = [3_000] * 100
    before = read("a", hedge_document(case(some), case(some, load=0.5)))
    changed: dict[str, Any] = {"fifo_priority": 3, "cpus": [4, 5, 6], "interrupted": True}
    after = read("b", hedge_document(case(some), case(some, load=0.5, **VOID), **changed))
    said = "\n".join(both(before, after)["warnings"])
    for text in (
        "another scheduling priority: ordinary before, 3 after",
        "after was interrupted before its time",
        "after: load 0.5, no second copy: void: the spinner had CPU 4 for 0 % of the time",
        "load 0.1, no second copy: other CPUs: 2-3-4 before, 4-5-6 after",
    ):
        assert text in said


def test_what_cannot_be_compared(read: Read) -> None:
    hedge, feed = read("a", hedge_document(case([3_000] * 100))), read("f", feed_document(feed_case()))
    with pytest.raises(TunectlError, match=r"a\.json is of `probe hedge`, .*f\.json is of `probe feed`"):
        compared(hedge, feed)
    void = read("c", hedge_document(case([3_000] * 100, **VOID)))
    with pytest.raises(
        TunectlError, match=r"in common is void: the spinner had CPU 2 .*nobody else wants the three CPUs"
    ):
        compared(void, void)
    with pytest.raises(TunectlError, match=r"in common is void or not measured: .*interrupted"):
        compared(void, read("d", hedge_document(unmeasured("interrupted"))))


@pytest.mark.parametrize("width", [80, 120])
def test_the_page(read: Read, width: int) -> None:
    made = both(read("a", hedge_document(case(tail(20_000)))), read("b", hedge_document(case(tail(20_000, 900_000)))))
    assert not wider(made, width)
