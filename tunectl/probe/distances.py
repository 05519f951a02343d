"""Which distances between gaps return: guesses at periods, for phase.py to judge. Pure; times in ns."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise, repeat
from math import exp, inf, log
from operator import sub

from tunectl.probe.phase import LEAST_PERIODS, WINDOWS, Looked, can_be_seen, fullest

SECOND = 1e9  # ns
SHORTEST, LONGEST = 0.5e6, 1.2e9
# Of the gaps the most lonely ones are looked at, so many at a time: a storm has thousands of distances, and no period.
# The more there are, the shorter the distances that are looked at, so that a busy CPU takes no longer than an idle one.
_LONELY = (3000, 500)
_PAIRS = 40_000
_SEEDS = 300
_STEPS = 128  # buckets for each e-fold
_FINE = 100e3  # ns: buckets of what comes on time
_NEAR, _FAR = 4, 16  # buckets: the neighbourhood that a peak has to stand out from
_DEVIATIONS = 4.0
_PEAKS = 8
_REACH = 0.015  # of the period: how far a guess may be off


def guesses(looked: Looked, known: Sequence[float]) -> Iterator[float]:
    """Periods that are worth judging, the shortest first: distances that stand out, and the `known` ones."""
    rough = {period: _REACH * period for period in known}
    for most in _LONELY:
        starts = _lonely(looked.starts, most)
        rough |= _peaks(starts)
        if len(starts) == len(looked.starts):
            break
    for guess, reach in sorted(rough.items()):
        if looked.length >= LEAST_PERIODS * guess:
            yield tracked(looked.starts, guess, looked.length, reach)


def _lonely(starts: Sequence[float], most: int) -> Sequence[float]:
    """Those with the longest time before them."""
    if len(starts) <= most:
        return starts
    distances = [inf, *(after - before for before, after in pairwise(starts))]
    least = sorted(distances, reverse=True)[most - 1]
    return [start for start, distance in zip(starts, distances, strict=True) if distance >= least]


def _peaks(starts: Sequence[float]) -> dict[float, float]:
    """The distances that are more frequent than those around them, and how far each may be off.

    By the deviation that chance would need: in buckets that grow with the distance, and in fine ones.
    """
    grown, fine = Counter[int](), Counter[int]()
    for after in range(1, min(len(starts), max(8, _PAIRS // (len(starts) + 1)))):
        distances = [at for at in map(sub, starts[after:], starts) if SHORTEST <= at <= LONGEST]
        grown.update([int(_STEPS * log(distance)) for distance in distances])
        fine.update([int(distance / _FINE) for distance in distances])
    rough = {exp((index + 0.5) / _STEPS): _REACH for index in _outstanding(grown)}
    found = {guess: reach * guess for guess, reach in rough.items()}
    return found | {
        (index + 0.5) * _FINE: 2 * _FINE for index in _outstanding(fine) if index * _FINE * _REACH > 2 * _FINE
    }


def _outstanding(counts: Counter[int]) -> list[int]:
    """The buckets that stand out most, no two of them neighbours."""
    scored = []
    for index in [index for index, count in counts.items() if count > 1]:
        heap = sum(counts[index + off] for off in (-1, 0, 1))
        below = sum(counts[index - off] for off in range(_NEAR, _FAR))
        above = sum(counts[index + off] for off in range(_NEAR, _FAR))
        chance = 3 * max(below, above) / (_FAR - _NEAR)
        deviation = (heap - chance) / (chance + 1) ** 0.5
        if deviation > _DEVIATIONS:
            scored.append((deviation, index))
    taken: list[int] = []
    for _, index in sorted(scored, reverse=True):
        if len(taken) < _PEAKS and all(abs(index - other) > 2 for other in taken):
            taken.append(index)
    return taken


def tracked(starts: Sequence[float], guess: float, length: float, reach: float) -> float:
    """The period near `guess`: from the distances over 1, 2, 4 ... periods, each more precise than the last."""
    period, times = guess, 1
    step = max(1, len(starts) // _SEEDS)
    while times * period < length / 2:
        distance = times * period
        offs: list[float] = []  # how far the gaps around this distance after each seed are off
        for start in starts[::step]:
            first = bisect_left(starts, start + distance - reach)
            last = bisect_right(starts, start + distance + reach)
            offs.extend(map(sub, starts[first:last], repeat(start + distance)))
        offs.sort()
        if len(offs) < 3:
            break
        period += _densest(offs, reach / 3) / times
        times *= 2
    return period


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
    if slots < LEAST_PERIODS or not any(can_be_seen(looked, SECOND, window, 1 / slots) for window in WINDOWS[:3]):
        return None
    step = 0.01 * SECOND / slots
    periods = [SECOND + times * step for times in range(-int(slots), int(1.5 * slots) + 1)]
    return max((fullest(looked.starts, period)[0], period) for period in periods)[1]
