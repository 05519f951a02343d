"""Is a difference more than chance? Tests that assume no distribution. Pure.

The permutation test of Fisher and Pitman: were nothing different, each way to deal the same values out to the two
sides would be as likely as the one that was measured. Of ranks, it is the test of Mann and Whitney (1947). Holm (1979)
corrects for several tests at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import TypeVar

Name = TypeVar("Name")
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
