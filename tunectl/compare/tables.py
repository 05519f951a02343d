"""The tables of a comparison: a measure before and after, and their ratio. Pure."""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from statistics import median

from tunectl.compare.chance import Interval, ratio_interval, shift_ranks
from tunectl.compare.estimate import (
    Sample,
    arrival_percentile,
    gap_percentile,
    interruptions_per_s,
    longest_streak,
    stolen_ppm,
)
from tunectl.compare.judged import RATE, STOLEN, Measure
from tunectl.shapes import Bounds, Row, replaced
from tunectl.wording import seconds_of

NONE_IN_EITHER = "none in either run"
LONGEST: Measure = ("max_ns", None)
NAMES = ("before", "after")  # of the two sides, in a sentence
Estimates = Mapping[Measure, Interval | None]


def row(measure: Measure, sides: Sequence[Interval | None], ratio: Interval | None, reason: str = "") -> Row:
    """One row of both sides. A side that is None had nothing to measure: no ratio then."""
    before, after = sides
    if not reason and ratio is None:
        reason = NONE_IN_EITHER if before is after or (before and after) else "none in one of the runs"
    elif not reason and ratio and math.isinf(ratio.high) and math.isfinite(ratio.value):
        reason = "one of the runs is too short to bound it"
    return Row(*measure, _bounds(before), _bounds(after), _bounds(ratio), reason)


def ratio_of(before: Interval | None, after: Interval | None) -> Interval | None:
    """after / before; None where a side had nothing to measure, and for 0 / 0."""
    return ratio_interval(before, after) if before and after else None


def _bounds(interval: Interval | None) -> Bounds | None:
    if interval is None:
        return None
    # No bound is exact to more digits.
    return Bounds(*(float(f"{value:.6g}") if math.isfinite(value) else None for value in interval))


def without_bounds(measure: Measure, values: Sequence[float | None], reason: str) -> Row:
    """A row of two single observations; of those below 0 there is no ratio."""
    sides = [None if value is None else Interval(value, value, value) for value in values]
    is_signed = any(value is not None and value < 0 for value in values)
    made = row(measure, sides, None if is_signed else ratio_of(*sides), reason)
    bare = (bounds and Bounds(bounds.value, None, None) for bounds in (made.before, made.after, made.ratio))
    return replaced(made, **dict(zip(("before", "after", "ratio"), bare, strict=True)))


_ARRIVALS = {"99": 0.01, "99.9": 0.001, "99.99": 0.0001}
_GAPS = {"50": 0.5, "99": 0.01, "99.9": 0.001}


def estimates(side: Sample, confidence: float) -> dict[Measure, Interval | None]:
    """Every measure of a run that has bounds."""
    found: dict[Measure, Interval | None] = {}
    for nines, share in _ARRIVALS.items():
        found["arrival_ns", nines] = arrival_percentile(side, share, confidence)
    for nines, share in _GAPS.items():
        found["gap_ns", nines] = gap_percentile(side, share, confidence)
    return found | {RATE: interruptions_per_s(side, confidence), STOLEN: stolen_ppm(side, confidence)}


def run_rows(
    before: Sample, after: Sample, confidence: float, names: tuple[str, str] = NAMES
) -> tuple[list[Row], Estimates]:
    """The rows of two runs, and the ratios of all that have bounds."""
    sides = estimates(before, confidence), estimates(after, confidence)
    ratios = {measure: ratio_of(sides[0][measure], sides[1][measure]) for measure in sides[0]}
    rows = [row(measure, [side[measure] for side in sides], ratio) for measure, ratio in ratios.items()]
    return [*rows[:-2], _longest(before, after, names), *rows[-2:]], ratios


def set_rows(
    before: Sequence[Sample], after: Sequence[Sample], confidence: float
) -> tuple[list[Row], Estimates, dict[Measure, tuple[list[float], list[float]]]]:
    """The rows of two sets of runs, each run one observation; their ratios; and what each run had."""
    found = [[_values(run, confidence) for run in side] for side in (before, after)]
    values = {
        measure: ([run[measure] for run in found[0]], [run[measure] for run in found[1]]) for measure in found[0][0]
    }
    ratios = {measure: _ratio(*sides, confidence) for measure, sides in values.items()}
    rows = []
    for measure, sides in values.items():
        middles = [Interval(median(side), min(side), max(side)) for side in sides]
        rows.append(row(measure, middles, ratios[measure]))
    return rows, ratios, values


def _values(run: Sample, confidence: float) -> dict[Measure, float]:
    """A run without gaps has gap percentiles of 0."""
    each = estimates(run, confidence)
    values = {measure: bounds.value if bounds else 0.0 for measure, bounds in each.items()}
    *others, rate, stolen = values.items()
    return dict([*others, (LONGEST, run.whole.longest), rate, stolen])


def _ratio(before: Sequence[float], after: Sequence[float], confidence: float) -> Interval | None:
    """The ratio of the middle runs, as the columns have them, with Mann's and Whitney's bounds of the shift.

    The bounds are ranks of all ratios between a run of one side and a run of the other. None where every run had 0.
    """
    if not max(*before, *after):
        return None
    pairs = sorted(map(_quotient, *zip(*product(before, after), strict=True)))
    place = shift_ranks(len(before), len(after), confidence)
    low, high = (pairs[place - 1], pairs[-place]) if place else (0.0, math.inf)
    value = _quotient(median(before), median(after))
    return Interval(value, min(low, value), max(high, value))


def _quotient(before: float, after: float) -> float:
    """after / before; two that had nothing are equal."""
    return after / before if before else math.inf if after else 1.0


def _longest(before: Sample, after: Sample, names: tuple[str, str]) -> Row:
    """The maximum is one observation and has no bounds. But which run the longest gaps are from says something."""
    values = [side.whole.longest for side in (before, after)]
    if not max(values):
        return without_bounds(LONGEST, values, NONE_IN_EITHER)
    first, occasions, chance = longest_streak(before, after)
    (owner, missing), other = (names, after) if first else (names[::-1], before)
    longest = "the longest gap is" if occasions == 1 else f"the {occasions:,} longest occasions are all"
    reason = f"{longest} from {owner}: were nothing different, the chance of that would be {chance:.2g}"
    never = other.run_ns / 1e9 / 3  # the rule of three: with none seen in a time t, the rate is below 3/t (95 %)
    if occasions:
        rate = f"less than once in {seconds_of(never)} of a CPU's time (95 %)"
        reason += f"; {missing} shows none as long, so there they come {rate}"
    return without_bounds(LONGEST, values, reason)
