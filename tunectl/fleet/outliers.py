"""Who differs from the rest: the median and the median absolute deviation, of logarithms. Pure.

Both stand still however wild up to half of the values are, so the outliers cannot hide themselves by widening the
spread, as they do with a mean and a standard deviation. Logarithms, because latencies spread by factors: 12 µs among
peers with 4 µs is as odd as 120 µs among 40 µs.
The score is Iglewicz and Hoaglin's modified z-score ("How to Detect and Handle Outliers", ASQC 1993): 0.6745 times the
distance over the MAD; 3.5 is their limit, which 1 of 2,000 normally distributed values passes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median
from typing import NamedTuple

SCORE = 3.5
FEWEST = 5  # values; of fewer, a median and a MAD say little
_TO_SIGMA = 0.6745  # MAD over the standard deviation, of a normal distribution
_LEAST_MAD = math.log(1.02)  # peers more alike than that are alike by chance, or by a coarse clock


class Spread(NamedTuple):
    """What is usual: half of the values lie within a factor of `spread` of the median."""

    n: int
    median: float
    spread: float
    low: float  # beyond either limit is an outlier
    high: float


class Outlier(NamedTuple):
    """One value that is not usual."""

    value: float
    ratio: float  # to the median
    score: float  # negative below it


def spread_of(values: list[float], floor: float, ratio: float) -> Spread | None:
    """What is usual among these; None for fewer than FEWEST.

    Values count as at least `floor`, which is above 0; within a factor of `ratio` of the median all is usual.
    """
    if len(values) < FEWEST:
        return None
    logs = [math.log(max(value, floor)) for value in values]
    middle = median(logs)
    mad = max(median(abs(one - middle) for one in logs), _LEAST_MAD)
    reach = max(SCORE * mad / _TO_SIGMA, math.log(ratio))
    return Spread(len(values), math.exp(middle), math.exp(mad), math.exp(middle - reach), math.exp(middle + reach))


def outliers(values: Mapping[str, float], floor: float, ratio: float) -> tuple[Spread | None, dict[str, Outlier]]:
    """What is usual, and the names whose value is not."""
    usual = spread_of(list(values.values()), floor, ratio)
    if usual is None:
        return None, {}
    found = {}
    for name, value in values.items():
        counted = max(value, floor)
        if not usual.low <= counted <= usual.high:
            score = _TO_SIGMA * math.log(counted / usual.median) / math.log(usual.spread)
            found[name] = Outlier(value, counted / usual.median, score)
    return usual, found
