"""Is a difference more than chance? Tests that assume no distribution. Pure.

The permutation test of Fisher and Pitman: were nothing different, each way to deal the same values out to the two
sides would be as likely as the one that was measured. Of ranks, it is the test of Mann and Whitney (1947). Holm (1979)
corrects for several tests at once. Confidence bounds are from textbook formulas. docs/compare.md says where each is
used and why.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from statistics import NormalDist
from typing import NamedTuple, TypeVar

Name = TypeVar("Name")
CONFIDENCE = 0.95  # unless another is asked for
_SLACK = 1e-9  # sums of the same floats in another order


def permuted(before: Sequence[float], after: Sequence[float]) -> float:
    """The share of all ways to deal the values out in which the sums lie as far apart, either way.

    Every way is visited: C(16, 8) = 12,870 for eight values a side.
    """
    values = [*before, *after]
    if max(values) == min(values):
        return 1.0
    expected = sum(values) * len(before) / len(values)
    reached = abs(sum(before) - expected) * (1 - _SLACK)
    sums: Iterable[float]
    if len(before) == len(after):  # each way has its mirror image, in which the first value is on the other side
        sums = (values[0] + sum(dealt) for dealt in combinations(values[1:], len(before) - 1))
    else:
        sums = map(sum, combinations(values, len(before)))
    far = [abs(one - expected) >= reached for one in sums]
    return sum(far) / len(far)


def ranked(values: Sequence[float]) -> list[float]:
    """The rank of each value; equal ones share the mean of their ranks."""
    order = sorted(values)
    first = {value: place for place, value in reversed([*enumerate(order, 1)])}
    last = dict(zip(order, range(1, len(order) + 1), strict=True))
    return [(first[value] + last[value]) / 2 for value in values]


def holm(chances: Mapping[Name, float]) -> dict[Name, float]:
    """Each chance, corrected for how many were looked at."""
    found: dict[Name, float] = {}
    largest = 0.0
    for place, name in enumerate(sorted(chances, key=chances.__getitem__)):
        largest = min(max(largest, chances[name] * (len(chances) - place)), 1.0)
        found[name] = largest
    return found


def fewest_runs(confidence: float, tests: int) -> int:
    """How many values a side the permutation test needs before any outcome is rare enough for that many tests."""
    a_side = 2
    while 2 / math.comb(2 * a_side, a_side) > (1 - confidence) / tests:
        a_side += 1
    return a_side


def shift_ranks(before: int, after: int, confidence: float) -> int:
    """The rank, from either end, of the differences between each value of one side and each of the other that bound
    the shift (Mann & Whitney 1947); 0 where there are too few values to bound it.
    """
    ways = [1]  # ways[u]: how many orders of all values have u pairs in which the one of `before` is the larger
    for size in range(1, before + 1):  # the Gaussian binomial coefficient, factor by factor
        ways = _multiplied(ways, after + size)
        ways = _quotient(ways, size)
    allowed = math.comb(before + after, before) * (1 - confidence) / 2
    rank, rarer = 0, 0
    while (rarer := rarer + ways[rank]) <= allowed:
        rank += 1
    return rank


def _multiplied(ways: Sequence[int], by: int) -> list[int]:
    """Times 1 - q**by."""
    longer = [*ways, *[0] * by]
    return [own - (longer[at - by] if at >= by else 0) for at, own in enumerate(longer)]


def _quotient(ways: Sequence[int], by: int) -> list[int]:
    """Divided by 1 - q**by, which leaves nothing over."""
    made: list[int] = []
    for at, own in enumerate(ways):
        made.append(own + (made[at - by] if at >= by else 0))
    return made[: len(made) - by]


def trend(values: Sequence[float]) -> float:
    """The chance of a trend so clear, either way, were there none: Mann (1945), with the normal approximation."""
    n = len(values)
    rises = sum((b > a) - (b < a) for at, a in enumerate(values) for b in values[at + 1 :])
    deviation = math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    return math.erfc(max(abs(rises) - 1, 0) / deviation / math.sqrt(2))


def correlation_time(values: Sequence[float]) -> float:
    """Over how many neighbours a course keeps its level: 1 where each is independent of the one before.

    The integrated autocorrelation time, by the initial positive sequence (Geyer 1992).
    """
    mean = sum(values) / len(values)
    centred = [value - mean for value in values]
    power = sum(value * value for value in centred)
    if power <= _SLACK * mean * mean:
        return 1.0
    time = -1.0
    lags = [sum(map(float.__mul__, centred, centred[lag:])) / power for lag in range(len(values))]
    for even, odd in [*pairwise(lags)][::2]:
        if even + odd <= 0:
            break
        time += 2 * (even + odd)
    return max(time, 1.0)


_LARGEST_EXPONENT = 700.0  # above it math.exp() raises
_HALVINGS = 50  # of a range of shares
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


def student_chance(deviates: float, freedom: int) -> float:
    """The chance of a value of Student's distribution as far from 0, either way: Abramowitz & Stegun 26.7.3 and .4."""
    angle = math.atan(abs(deviates) / math.sqrt(freedom))
    cosine, odd = math.cos(angle), freedom % 2
    term, added = cosine if odd else 1.0, 0.0
    for place in range(2 + odd, freedom + 1, 2):
        added += term
        term *= cosine * cosine * (place - 1) / place
    within = (angle + math.sin(angle) * added) * 2 / math.pi if odd else math.sin(angle) * added
    return max(1 - within, 0.0)


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
    ways = math.lgamma(draws + 1) - math.lgamma(k + 1) - math.lgamma(draws - k + 1)  # its logarithm
    below = chance = math.exp(ways + k * math.log(share) + (draws - k) * math.log1p(-share))
    while below <= rest:
        chance *= (draws - k) / (k + 1) * share / (1 - share)
        k += 1
        below += chance
    return k


def share_interval(found: int, most: int, draws: int, confidence: float) -> Interval:
    """The share behind `found` successes of `draws`, or as many as `most` where not all are known: Clopper & Pearson
    (1934). Each end is the share for which binomial_range() just leaves that count out.
    """
    low, high = (0.0, found / draws), (most / draws, 1.0)
    for _ in range(_HALVINGS):
        share = sum(low) / 2
        low = (share, low[1]) if binomial_range(draws, share, confidence)[1] < found else (low[0], share)
        share = sum(high) / 2
        high = (high[0], share) if binomial_range(draws, share, confidence)[0] > most else (share, high[1])
    return Interval(found / draws, low[0], high[1] if most < draws else 1.0)


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
