"""Which distances between gaps return: guesses at periods, for phase.py to judge. Pure; times in ns."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import repeat
from math import exp, log
from operator import sub

from tunectl.probe.phase import LEAST_PERIODS, Looked, can_be_seen, fullest

SECOND = 1e9  # ns
SHORTEST, LONGEST = 0.5e6, 1.2e9
_PAIRS = 100_000  # distances that are looked at, so that a busy CPU takes no longer than 0.1 s
_FOLLOWERS = 512
_SEEDS = 300
_STEPS = 128  # buckets for each e-fold
_NEAR, _FAR = 4, 16  # buckets: the neighbourhood that a peak has to stand out from
_DEVIATIONS = 4.0
_PEAKS = 8
_REACH = 0.015  # of the period: how far a guess may be off


def guesses(looked: Looked, known: Sequence[float]) -> Iterator[float]:
    """Periods that are worth judging, the shortest first: distances that stand out, and the `known` ones."""
    rough = sorted({*_peaks(looked.starts), *known})
    for guess in rough:
        if looked.length >= LEAST_PERIODS * guess:
            yield tracked(looked.starts, guess, looked.length)


def _peaks(starts: Sequence[float]) -> list[float]:
    """The distances that are more frequent than those around them, by the deviation that chance would need."""
    counts: Counter[int] = Counter()
    for after in range(1, min(len(starts), _FOLLOWERS, max(8, _PAIRS // (len(starts) + 1)))):
        distances = map(sub, starts[after:], starts)
        counts.update([int(_STEPS * log(distance)) for distance in distances if SHORTEST <= distance <= LONGEST])
    scored = [(_deviation(counts, index), index) for index in counts]
    best = sorted((one for one in scored if one[0] > _DEVIATIONS), reverse=True)
    taken: list[int] = []
    for _, index in best:
        if len(taken) < _PEAKS and all(abs(index - other) > 2 for other in taken):
            taken.append(index)
    return [exp((index + 0.5) / _STEPS) for index in taken]


def _deviation(counts: Counter[int], index: int) -> float:
    heap = sum(counts[index + off] for off in (-1, 0, 1))
    below = sum(counts[index - off] for off in range(_NEAR, _FAR))
    above = sum(counts[index + off] for off in range(_NEAR, _FAR))
    chance = 3 * max(below, above) / (_FAR - _NEAR)
    return float((heap - chance) / (chance + 1) ** 0.5)


def tracked(starts: Sequence[float], guess: float, length: float) -> float:
    """The period near `guess`: from the distances over 1, 2, 4 ... periods, each more precise than the last."""
    period, times = guess, 1
    step = max(1, len(starts) // _SEEDS)
    while times * period < length / 2:
        offs = sorted(_offs(starts, step, times * period, _REACH * guess))
        if len(offs) < 3:
            break
        period += _densest(offs, _REACH * guess / 3) / times
        times *= 2
    return period


def _offs(starts: Sequence[float], step: int, distance: float, reach: float) -> Iterator[float]:
    """How far the gaps around `distance` after each seed are off."""
    for start in starts[::step]:
        index = bisect_left(starts, start + distance - reach)
        while index < len(starts) and starts[index] <= start + distance + reach:
            yield starts[index] - start - distance
            index += 1


def _densest(values: Sequence[float], width: float) -> float:
    """The mean of the values in the fullest stretch of this width; `values` in order."""
    most, first, best = 0, 0, (0, 1)
    for last, value in enumerate(values):
        while value - values[first] > width:
            first += 1
        if last + 1 - first > most:
            most, best = last + 1 - first, (first, last + 1)
    return sum(values[slice(*best)]) / (best[1] - best[0])


def second(looked: Looked) -> float | None:
    """The period of about a second that most gaps agree on: what few gaps in a short run do not show as a peak."""
    slots = looked.length / SECOND
    if slots < LEAST_PERIODS or not (can_be_seen(looked, SECOND, 0.01) or can_be_seen(looked, SECOND)):
        return None
    step = 0.01 * SECOND / slots
    periods = [SECOND + times * step for times in range(-int(slots), int(1.5 * slots) + 1)]
    return max(zip(map(_hits, repeat(looked.starts), periods), periods, strict=True))[1]


def _hits(starts: Sequence[float], period: float) -> int:
    return fullest(starts, period)[0]
