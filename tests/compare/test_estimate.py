"""What the bounds promise, held against simulated runs whose truth is known: fixed seeds, loose limits."""

import math
from collections.abc import Callable
from functools import cache

import pytest

from tests.compare.runs import sample_of, simulated, steady
from tunectl.compare.chance import Interval
from tunectl.compare.estimate import (
    SLICES,
    Sample,
    arrival_percentile,
    gap_percentile,
    interruptions_per_s,
    longest_streak,
    stolen_ppm,
)

RUNS, SECONDS = 100, 10.0
Estimate = Callable[[Sample], Interval | None]
ESTIMATES: dict[str, Estimate] = {
    "gap P50": lambda run: gap_percentile(run, 0.5, 0.95),
    "gap P99": lambda run: gap_percentile(run, 0.01, 0.95),
    "arrival": lambda run: arrival_percentile(run, 0.0002, 0.95),
    "rate": lambda run: interruptions_per_s(run, 0.95),
    "stolen": lambda run: stolen_ppm(run, 0.95),
}


@cache
def runs(burst: int) -> list[Sample]:
    return [sample_of(simulated(seed, SECONDS, burst=burst), SECONDS) for seed in range(RUNS)]


@cache
def truth(burst: int) -> Sample:
    """A run so long that it is the truth."""
    return sample_of(simulated(1_000_000, 500.0, burst=burst), 500.0)


def coverage(estimate: Estimate, burst: int, change: Callable[[Sample], Sample] = lambda run: run) -> float:
    """In how many of the runs the bounds hold the truth."""
    true = estimate(truth(burst))
    assert true is not None
    found = [bounds for run in runs(burst) if (bounds := estimate(change(run)))]
    assert len(found) == RUNS
    return sum(bounds.low <= true.value <= bounds.high for bounds in found) / RUNS


@pytest.mark.parametrize("burst", [1, 10])
@pytest.mark.parametrize("name", ESTIMATES)
@pytest.mark.slow
def test_bounds_hold_the_truth_about_as_often_as_they_say(name: str, burst: int) -> None:
    assert coverage(ESTIMATES[name], burst) >= 0.85


def unsliced(run: Sample) -> Sample:
    """As if nobody knew when the gaps came."""
    return Sample(run.run_ns, run.whole, (), 0.0, ())


@pytest.mark.slow
def test_without_slices_bursts_make_the_bounds_too_narrow() -> None:
    """The sabotaged twin: independence taken for granted holds without bursts, and fails with them."""
    assert coverage(ESTIMATES["rate"], 1, unsliced) >= 0.85
    assert coverage(ESTIMATES["rate"], 10, unsliced) < 0.6


@pytest.mark.slow
def test_confidence_costs_width() -> None:
    run = runs(1)[0]
    for estimate in (gap_percentile, arrival_percentile):
        narrow, wide = (estimate(run, 0.0002 if estimate is arrival_percentile else 0.5, c) for c in (0.9, 0.99))
        assert narrow is not None
        assert wide is not None
        assert wide.low <= narrow.low <= narrow.value <= narrow.high <= wide.high


def test_a_percentile_that_few_gaps_decide_is_not_bounded_above() -> None:
    few = sample_of([(at * 100_000_000, 1000 + at) for at in range(50)], 10.0)
    tail = gap_percentile(few, 0.001, 0.95)
    assert tail is not None
    assert (tail.value, tail.high) == (1049, math.inf)
    assert tail.low == pytest.approx(1049, abs=2)
    median = gap_percentile(few, 0.5, 0.95)
    assert median is not None
    assert 1000 < median.low < median.value < median.high < 1049


def test_no_gap_at_all() -> None:
    none = sample_of([], 10.0)
    assert gap_percentile(none, 0.5, 0.95) is None
    assert arrival_percentile(none, 0.001, 0.95) == (0, 0, math.inf)
    assert interruptions_per_s(none, 0.95).value == 0
    assert interruptions_per_s(none, 0.95).high == pytest.approx(0.37, abs=0.01)  # the rule of three, two-sided
    assert stolen_ppm(none, 0.95).low == 0


def test_arrivals_of_a_timer_by_hand() -> None:
    """Every ms a gap of 10 µs: 1 % of moments lie in one, and a tenth of those, 0.1 %, wait more than 9 µs."""
    run = sample_of(steady(1_000_000, 10_000, 10.0), 10.0)
    found = arrival_percentile(run, 0.001, 0.95)
    assert found.value == pytest.approx(9000, abs=1)
    assert found.low < 9000 < found.high < 10_000
    assert stolen_ppm(run, 0.95).value == pytest.approx(10_000, rel=0.001)
    assert interruptions_per_s(run, 0.95).value == pytest.approx(1000, rel=0.001)


def test_the_longest_gaps_of_one_burst_are_one_occasion() -> None:
    calm = sample_of(steady(1_000_000, 10_000, 10.0), 10.0)
    burst = sample_of([*steady(1_000_000, 10_000, 10.0), *[(5_000_500_000 + i * 60_000, 50_000) for i in range(4)]], 10)
    spread = sample_of(
        [*steady(1_000_000, 10_000, 10.0), *[(i * 1_100_000_000 + 500_000, 50_000) for i in range(9)]], 10
    )
    assert longest_streak(burst, calm) == (True, 1, 1.0)
    *whose, chance = longest_streak(calm, spread)
    assert (whose, chance) == ([False, 9], 2 / 2**9)


def test_slices_hold_every_gap() -> None:
    run = sample_of(simulated(3, 10.0), 10.0)
    assert len(run.slices) == SLICES
    assert sum(part.count for part in run.slices) == run.whole.count
    assert run.sliced
