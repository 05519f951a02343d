"""The tests of chance, each against its definition or a published table."""

import math
import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunectl.compare.chance import correlation_time, fewest_runs, holm, permuted, ranked, shift_ranks, trend

few = st.lists(st.integers(0, 6).map(float), min_size=2, max_size=5)


@given(few, few)
def test_permuted_by_its_definition(before: list[float], after: list[float]) -> None:
    values = [*before, *after]
    overall = sum(values) / len(values)

    def apart(places: tuple[int, ...]) -> float:
        return abs(sum(values[place] for place in places) - overall * len(before))

    reached = apart(tuple(range(len(before))))
    every = [apart(places) >= reached - 1e-9 for places in combinations(range(len(values)), len(before))]
    assert permuted(before, after) == pytest.approx(sum(every) / len(every))


def test_permuted_knows_no_side() -> None:
    assert permuted([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) == permuted([6, 7, 8, 9, 10], [1, 2, 3, 4, 5]) == 2 / 252
    assert permuted([0.0] * 8, [0.0] * 8) == 1


def test_ranks_of_equal_values_are_shared() -> None:
    assert ranked([5, 1, 5, 9, 5]) == [3, 1, 3, 5, 3]


def test_holm_by_hand() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "c": 0.06, "b": 0.06})
    assert holm({"a": 0.9, "b": 0.5}) == {"b": 1, "a": 1}


def test_the_fewest_runs_are_those_whose_rarest_outcome_is_rare_enough() -> None:
    assert 2 / math.comb(8, 4) > 0.05 / 3 > 2 / math.comb(10, 5)
    assert [fewest_runs(confidence, 3) for confidence in (0.5, 0.95, 0.99)] == [3, 5, 6]


@pytest.mark.parametrize(
    ("before", "after", "rank"), [(5, 5, 3), (4, 4, 1), (3, 3, 0), (8, 8, 14), (5, 8, 7), (10, 10, 24)]
)
def test_bounds_of_a_shift_by_the_tables_of_mann_and_whitney(before: int, after: int, rank: int) -> None:
    """The published critical values (5 %, two-sided), plus one: 2, 0, none, 13, 6, 23."""
    assert shift_ranks(before, after, 0.95) == rank


def test_a_trend_is_seen_and_its_absence() -> None:
    assert trend([1, 2, 3, 4, 5, 6, 7, 8]) == trend([8, 7, 6, 5, 4, 3, 2, 1]) < 0.001
    assert trend([3, 1, 4, 1, 5, 2, 6, 1]) > 0.2
    assert trend([2.0] * 8) == 1


def test_how_long_a_course_keeps_its_level() -> None:
    rng = random.Random(1)
    assert correlation_time([rng.random() for _ in range(120)]) < 2.5
    for length in (4, 12):
        blocks = [level for _ in range(120 // length) for level in [float(rng.random() < 0.4)] * length]
        assert length * 0.4 < correlation_time(blocks) < length * 2.5, length
    assert correlation_time([3.0] * 120) == 1
