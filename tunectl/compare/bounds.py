"""Confidence bounds from textbook formulas. docs/compare.md says where each is used and why. Pure."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

_LARGEST_EXPONENT = 700.0  # above it math.exp() raises
_EXACT_BELOW = 1e4  # a binomial's variance; above it the normal curve is exact to one rank in a thousand


class Interval(NamedTuple):
    """An estimate and its two-sided bounds; `high` is infinite where the run was too short to bound it."""

    value: float
    low: float
    high: float


def normal_deviate(confidence: float) -> float:
    """How many standard deviations either way hold this share of a normal distribution: 1.96 for 0.95."""
    return float(NormalDist().inv_cdf((1 + confidence) / 2))


def student_deviate(confidence: float, freedom: int) -> float:
    """The same for Student's distribution, by the expansion of Abramowitz & Stegun 26.7.5: to 0.1 % from 5 degrees."""
    z = normal_deviate(confidence)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / float(freedom) ** power for power, term in enumerate(terms, 1))


def binomial_range(draws: int, share: float, confidence: float) -> tuple[int, int]:
    """The fewest and the most successes of `draws` at this confidence; each end leaves out half of the rest."""
    rest = (1 - confidence) / 2
    return _fewest(draws, share, rest), draws - _fewest(draws, 1 - share, rest)


def _fewest(draws: int, share: float, rest: float) -> int:
    """The smallest k for which P(successes <= k) is above `rest`."""
    mean, variance = draws * share, draws * share * (1 - share)
    if variance == 0:
        return round(mean)
    if variance > _EXACT_BELOW:
        return max(math.floor(NormalDist(mean, math.sqrt(variance)).inv_cdf(rest)), 0)
    k = max(math.floor(mean - 10 * math.sqrt(variance)) - 10, 0)  # the chance of fewer is negligible beside `rest`
    chance = math.exp(_log_binomial(draws, k, share))
    below = chance
    while below <= rest:
        chance *= (draws - k) / (k + 1) * share / (1 - share)
        k += 1
        below += chance
    return k


def _log_binomial(draws: int, k: int, share: float) -> float:
    ways = math.lgamma(draws + 1) - math.lgamma(k + 1) - math.lgamma(draws - k + 1)
    return ways + k * math.log(share) + (draws - k) * math.log1p(-share)


def poisson_interval(count: float, confidence: float) -> Interval:
    """Bounds of the mean behind a count of independent events: Byar's approximation (Breslow & Day 1987, 2.10)."""
    z = normal_deviate(confidence)
    low = count * (1 - 1 / (9 * count) - z / (3 * math.sqrt(count))) ** 3 if count > 0 else 0.0
    above = count + 1
    return Interval(count, max(low, 0.0), above * (1 - 1 / (9 * above) + z / (3 * math.sqrt(above))) ** 3)


def ratio_interval(before: Interval, after: Interval) -> Interval | None:
    """after / before with bounds from both: MOVER on logarithms (Donner & Zou 2012). None for 0 / 0.

    An estimate of 0 has no logarithm. Then the extremes of both intervals are taken, which is wider, never narrower.
    """
    if before.value == 0 and after.value == 0:
        return None
    if before.value == 0 or after.value == 0:
        value = after.value / before.value if before.value else math.inf
        return Interval(value, _divided(after.low, before.high), _divided(after.high, before.low))
    value = math.log(after.value) - math.log(before.value)
    down = math.hypot(_log(after.value, after.low), _log(before.high, before.value))
    up = math.hypot(_log(after.high, after.value), _log(before.value, before.low))
    return Interval(_exp(value), _exp(value - down), _exp(value + up))


def _log(above: float, below: float) -> float:
    """log(above / below); infinite where one of them has no finite logarithm."""
    return math.log(above) - math.log(below) if below > 0 and above < math.inf else math.inf


def _exp(value: float) -> float:
    return math.inf if value > _LARGEST_EXPONENT else math.exp(value)


def _divided(above: float, below: float) -> float:
    if below == math.inf:
        return 0.0
    return above / below if below else math.inf
