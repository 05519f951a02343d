"""The formulas, each against its definition."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunectl.compare.chance import Interval, binomial_range, poisson_interval, ratio_interval, student_deviate

confidences = st.sampled_from([0.5, 0.9, 0.95, 0.99])


def binomial_at_most(k: int, draws: int, share: float) -> float:
    """P(successes <= k), by the definition."""
    return math.fsum(math.comb(draws, i) * share**i * (1 - share) ** (draws - i) for i in range(k + 1))


@given(st.integers(1, 300), st.floats(0.001, 0.999), confidences)
def test_binomial_range_is_the_narrowest_that_leaves_half_the_rest_at_each_end(
    draws: int, share: float, confidence: float
) -> None:
    few, many = binomial_range(draws, share, confidence)
    rest = (1 - confidence) / 2
    slack = 1e-9
    assert 0 <= few <= many <= draws
    assert few == 0 or binomial_at_most(few - 1, draws, share) <= rest + slack
    assert binomial_at_most(few, draws, share) > rest - slack
    assert binomial_at_most(many, draws, share) >= 1 - rest - slack
    assert many == 0 or binomial_at_most(many - 1, draws, share) < 1 - rest + slack


def test_binomial_range_of_many_draws_joins_the_exact_one() -> None:
    exact, normal = binomial_range(39_000, 0.5, 0.95), binomial_range(41_000, 0.5, 0.95)
    assert [(19_500 - exact[0]) / math.sqrt(39_000), (exact[1] - 19_500) / math.sqrt(39_000)] == pytest.approx(
        [(20_500 - normal[0]) / math.sqrt(41_000), (normal[1] - 20_500) / math.sqrt(41_000)], rel=0.01
    )


@given(st.integers(0, 150), st.sampled_from([0.9, 0.95, 0.99]))
def test_poisson_interval_by_its_definition(count: int, confidence: float) -> None:
    """At the upper bound so few are as rare as half of the rest, at the lower one so many."""
    bounds, rest = poisson_interval(count, confidence), (1 - confidence) / 2

    def at_most(k: int, mean: float) -> float:
        return math.fsum(math.exp(-mean + i * math.log(mean) - math.lgamma(i + 1)) for i in range(k + 1))

    assert at_most(count, bounds.high) == pytest.approx(rest, rel=0.15)
    if count > 4:  # below that Byar's lower bound lies deeper than it need
        assert 1 - at_most(count - 1, bounds.low) == pytest.approx(rest, rel=0.25)
    elif bounds.low:
        assert 1 - at_most(count - 1, bounds.low) <= rest * 1.1


def test_student_by_the_tables() -> None:
    assert student_deviate(0.95, 29) == pytest.approx(2.045, abs=0.001)
    assert student_deviate(0.95, 7) == pytest.approx(2.365, abs=0.002)
    assert student_deviate(0.99, 29) == pytest.approx(2.756, abs=0.001)


figures = st.just(0.0) | st.floats(1e-9, 1e9)
intervals = st.tuples(figures, figures, figures).map(lambda of: Interval(sorted(of)[1], sorted(of)[0], sorted(of)[2]))


@given(intervals, intervals)
def test_a_ratio_lies_within_its_bounds_and_they_within_the_extremes(before: Interval, after: Interval) -> None:
    ratio = ratio_interval(before, after)
    if before.value == after.value == 0:
        assert ratio is None
        return
    assert ratio is not None
    assert ratio.low <= ratio.value * (1 + 1e-9)
    assert ratio.high >= ratio.value * (1 - 1e-9)
    if before.low > 0:
        assert ratio.high <= after.high / before.low * (1 + 1e-9)
    assert ratio.low >= (after.low / before.high if before.high else 0) * (1 - 1e-9)


@given(st.floats(1, 1e6), st.floats(0.01, 0.9), st.floats(1, 1e6), st.floats(0.01, 0.9))
def test_swapping_the_sides_inverts_the_ratio(a: float, part: float, b: float, other: float) -> None:
    first, second = Interval(a, a * part, a / part), Interval(b, b * other, b / other)
    there, back = ratio_interval(first, second), ratio_interval(second, first)
    assert there is not None
    assert back is not None
    assert there.value * back.value == pytest.approx(1)
    assert there.low * back.high == pytest.approx(1)


def test_what_is_not_bounded_bounds_nothing() -> None:
    known, open_ = Interval(2, 1, 3), Interval(2, 1, math.inf)
    ratio = ratio_interval(known, open_)
    assert ratio is not None
    assert (ratio.low > 0, ratio.high) == (True, math.inf)
    ratio = ratio_interval(open_, known)
    assert ratio is not None
    assert (ratio.low, ratio.high < math.inf) == (0, True)
