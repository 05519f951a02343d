"""When compare cannot tell, and the nearest case in which it can."""

from typing import Any

import pytest

from tests.compare.runs import Gap, sample_of, simulated
from tunectl.compare.judged import DECIDING, judge_runs, judge_sets
from tunectl.compare.tables import run_rows
from tunectl.shapes import fields_of

SECONDS = 10.0


def judged(before: list[Gap], after: list[Gap], seconds: float = SECONDS) -> Any:
    sides = sample_of(before, seconds), sample_of(after, seconds)
    return fields_of(judge_runs(*sides, run_rows(*sides, 0.95)[1], 0.95))


def storm(at_s: float, lasts_s: float) -> list[Gap]:
    return [(int((at_s + i * 1e-3) * 1e9), 20_000) for i in range(int(lasts_s * 1000))]


CALM = simulated(1, SECONDS, 100)
ALIKE = simulated(2, SECONDS, 100)
STORMS = [gap for at in (0.5, 6) for gap in storm(at, 2.5)]
SPATS = [gap for at in range(40) for gap in storm(at * 0.25 + 0.07, 0.1)]


@pytest.mark.parametrize(
    ("before", "after", "reason", "helps"),
    [
        (CALM, sorted([*ALIKE, *STORMS]), "bursts outlast a tenth of a run", "compare several runs a side"),
        (
            CALM,
            [gap for gap in simulated(3, SECONDS, 300) if gap[0] % 10**6 * 10**4 < gap[0]],
            "the rate drifts",
            "compare",
        ),
        (CALM[:3], CALM[-2:], "too few independent interruptions", "make the runs "),
    ],
)
def test_what_cannot_be_told_and_what_would_help(before: list[Gap], after: list[Gap], reason: str, helps: str) -> None:
    found = judged(before, after)
    assert (found["outcome"], found["reason"][: len(reason)]) == ("cannot-tell", reason)
    assert found["would_help"].startswith(helps)
    assert {row["change"] for row in found["rows"]} == {"unknown"}
    assert {row["chance"] for row in found["rows"]} == {None}


def test_many_short_bursts_can_be_told() -> None:
    found = judged(CALM, sorted([*ALIKE, *SPATS]))
    assert found["outcome"] == "different"
    assert [row["change"] for row in found["rows"]] == ["higher"] * 3


def test_bursts_between_ask_for_longer_runs() -> None:
    bursts = [gap for at in (0.5, 2.0, 5.9, 8.8) for gap in storm(at, 0.6)]
    found = judged(sorted([*CALM, *bursts]), sorted([*ALIKE, *bursts]))
    assert found["reason"].startswith("bursts last for ")
    assert found["would_help"].startswith("make the runs ")


def test_no_gap_in_either_run_tells_nothing() -> None:
    """Nothing bounds a ratio: what interrupts once in two such runs may have come or gone."""
    found = judged([], [])
    assert (found["outcome"], found["reason"]) == ("cannot-tell", "nothing interrupted either side")
    assert judged([], CALM)["outcome"] == "different"
    of_sets = judge_sets(dict.fromkeys(DECIDING, ([0.0] * 5, [0.0] * 5)), dict.fromkeys(DECIDING), 0.95)
    assert (of_sets.outcome, of_sets.reason) == ("cannot-tell", "nothing interrupted either side")
