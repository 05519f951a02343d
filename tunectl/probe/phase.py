"""Does something happen each P, in phase? One period judged on the starts of gaps. Pure; times in ns.

The run is cut into periods. A period is hit when a gap begins within a window around a phase that all of them share.
By chance, the gaps of one period may lie anywhere in it, whatever the periods around it hold: the chance of a hit is
the share of the period that lies within half a window of its gaps. This stays true for bursts and for rates that
drift, since no density is carried from one period to another. The hits add up to a Poisson binomial variable. Its
upper tail is at most that of the binomial variable with the same mean (Hoeffding, 1956,
doi:10.1214/aoms/1177728178), which is below exp(-n KL(hits / n, mean)). So the mean over all periods is enough.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise, repeat
from math import ceil, floor, inf, log
from statistics import fmean, median
from typing import NamedTuple

LEAST_PERIODS = 12
COVERAGE = 0.7  # of the periods, beyond what chance covers: a period that is mostly left out is none
# Of the period, to either side. A tick comes late behind another interruption; what is rare among many gaps shows in
# the narrowest alone.
WINDOWS = (0.03, 0.01, 0.003, 0.001, 0.0003)
LEAST_HITS = 6  # where pauses hide the other periods
# What comes at such a share of its moments is no period, but must not be taken for one of its multiples.
THIN = 0.15
_ERROR = 1e-4  # false periods for each octave of periods, over all phases and windows
_WORTH = 0.6  # of the evidence that is wanted: a first look, that cuts a heap in two at worst
_FIT = 1.5  # windows: the reach of a fit


@dataclass(frozen=True)
class Looked:
    """Starts of gaps in order, the length of the stretch, and its pauses (start, end), in which nothing can begin."""

    starts: Sequence[float]
    length: float
    pauses: Sequence[tuple[float, float]] = ()

    @cached_property
    def _distances(self) -> list[float]:
        return [after - before for before, after in pairwise(self.starts)]

    def near(self, width: float) -> float:
        """How much of the time lies within half of `width` of a start."""
        return sum(map(min, self._distances, repeat(width))) + width if self.starts else 0.0

    @cached_property
    def _stretches(self) -> list[float]:
        """The lengths of what pauses hide together, in order."""
        lengths, upto = [], 0.0
        for start, end in self.pauses:
            if end > upto:
                lengths.append(end - max(start, upto))
                upto = end
        return sorted(lengths)

    @cached_property
    def _sums(self) -> list[float]:
        return [0.0, *accumulate(self._stretches)]

    def hidden(self, reach: float) -> float:
        """How much of the time lies in a pause, further than `reach` from its start."""
        longer = bisect_left(self._stretches, reach)
        return self._sums[-1] - self._sums[longer] - reach * (len(self._stretches) - longer)

    def chance(self, width: float) -> float:
        """Of the moments that no pause hides, the share within half of `width` of a start."""
        seen = self.length - self.hidden(width / 2)
        return min(1.0, self.near(width) / seen) if seen > 0 else 1.0


class Comb(NamedTuple):
    """Moments at equal distances: any one of them, and how well the distance is known (one standard error)."""

    period: float
    phase: float
    error: float = 0.0


@dataclass(frozen=True)
class Series:
    """Gaps in phase: how many periods were hit, of those where that could be seen."""

    period: float
    hits: int
    slots: int
    members: tuple[int, ...]  # indexes of starts: the one nearest to each moment
    phase: float  # the moment that the periods share
    error: float = 0.0  # of the period: one standard error
    window: float = WINDOWS[0]  # of the period: so early and so late one may be
    is_thin: bool = False


def evidence(hits: int, slots: int, chance: float) -> float:
    """Minus the logarithm of a bound on the chance of so many hits; 0 where they are no more than expected."""
    share = hits / slots if slots else 0.0
    if share <= chance or chance <= 0.0:
        return inf if share > chance else 0.0
    missed = (1 - share) * log((1 - share) / (1 - chance)) if share < 1 else 0.0
    return slots * (share * log(share / chance) + missed)


def wanted(slots: int, window: float, spread: float = 1.0) -> float:
    """The evidence that a period needs that was picked among all phases, and all periods within `spread`."""
    return log(len(WINDOWS) * max(1.0, spread * slots / window) * (1 / window) / _ERROR)


def can_be_seen(looked: Looked, period: float, window: float, spread: float = 1.0) -> bool:
    """Whether a gap in every period would be more than chance: not among gaps that are too dense."""
    slots = floor(looked.length / period)
    least = wanted(slots, window, spread)
    return slots >= LEAST_PERIODS and evidence(slots, slots, looked.chance(2 * window * period)) > least


def fullest(starts: Sequence[float], period: float, bins: int = 50) -> tuple[int, float]:
    """How many periods have a gap around their common phase, roughly, and that phase."""
    scale = bins / period
    counts = Counter([place % bins for place in {int(start * scale) for start in starts}])
    heaps = ((counts[(index - 1) % bins] + count, index) for index, count in list(counts.items()))
    best, index = max(heaps, default=(0, 0))
    return best, index / scale


def in_phase(looked: Looked, guess: float, spread: float = 1.0, least: float = COVERAGE) -> Series | None:
    """The series with about this period, where there is one. Over the whole length `guess` is off by few windows.

    `spread`, a share of the period, says among how many it was picked: 1 for any, less for a known one.
    """
    period = guess
    for window in WINDOWS:
        if not can_be_seen(looked, guess, window, min(spread, 1 / max(1.0, looked.length / guess))):
            continue
        roughly, phase = fullest(looked.starts, period, ceil(1 / window))
        slots = floor((looked.length - looked.hidden(0.0)) / guess)
        if roughly < least * slots * 0.8:
            continue
        if evidence(roughly, slots, looked.chance(2 * window * period)) < _WORTH * wanted(slots, window, spread):
            continue
        comb = fitted(looked.starts, period, phase, window)
        if comb is None or abs(comb.period - guess) > spread * guess / 2:
            continue
        if series := judged(looked, comb, window, spread, least):
            return series
        period = comb.period
    return None


def fitted(starts: Sequence[float], period: float, phase: float, window: float) -> Comb | None:
    """Period and phase by least squares over the gaps near the phase, three times nearer; None for too few."""
    comb = Comb(period, phase)
    for reach in (_FIT * window, window, window):
        slots, offsets = _offsets(starts, comb, reach * period)
        if len(slots) < LEAST_HITS or slots[0] == slots[-1]:
            return None
        middle, mean = fmean(slots), fmean(offsets)
        spread = sum((slot - middle) ** 2 for slot in slots)
        slope = sum((slot - middle) * offset for slot, offset in zip(slots, offsets, strict=True)) / spread
        rests = [offset - mean - slope * (slot - middle) for slot, offset in zip(slots, offsets, strict=True)]
        rest = fmean(map(abs, rests)) * 1.25 / spread**0.5
        comb = Comb(comb.period + slope, comb.phase + mean + median(rests) - slope * middle, rest)
    return comb


def refined(starts: Sequence[float], series: Series) -> Comb:
    """The same comb by those of its gaps that are nearest, as long as these are most of them."""
    comb = Comb(series.period, series.phase, series.error)
    least = COVERAGE * len(_offsets(starts, comb, series.window * comb.period)[0])
    for window in WINDOWS[WINDOWS.index(series.window) :]:
        nearer = fitted(starts, comb.period, comb.phase, window)
        if nearer is None or len(_offsets(starts, nearer, window * comb.period)[0]) < least:
            break
        comb = nearer
    return comb


def _offsets(starts: Sequence[float], comb: Comb, reach: float) -> tuple[list[int], list[float]]:
    """Of each gap within `reach` of a moment: which moment, and how far off."""
    slots, offsets = [], []
    for start in starts:
        slot = round((start - comb.phase) / comb.period)
        offset = start - comb.phase - slot * comb.period
        if abs(offset) <= reach:
            slots.append(slot)
            offsets.append(offset)
    return slots, offsets


def _slots(looked: Looked, period: float, phase: float) -> range:
    return range(ceil(-phase / period), floor((looked.length - phase) / period) + 1)


def nearest(looked: Looked, period: float, phase: float, window: float) -> dict[int, tuple[float, int]]:
    """Each period with a gap in this window: how far the nearest one is from the phase, as a share, and its index."""
    slots = _slots(looked, period, phase)
    found: dict[int, tuple[float, int]] = {}
    for index, start in enumerate(looked.starts):
        at = (start - phase) / period
        slot = round(at)
        off = abs(at - slot)
        if off <= window and slot in slots and off < found.get(slot, (inf, 0))[0]:
            found[slot] = (off, index)
    return found


def seen_slots(looked: Looked, period: float, phase: float, hit: set[int]) -> int:
    """How many periods have a moment that was hit, or that no pause hid."""
    slots, hits = _slots(looked, period, phase), sorted(hit)
    seen, upto = len(slots), slots.start
    for start, end in looked.pauses:
        first = max(upto, ceil((start - phase) / period))
        upto = max(first, min(slots.stop, floor((end - phase) / period) + 1))
        seen -= upto - first - (bisect_left(hits, upto) - bisect_left(hits, first))
    return seen


def judged(looked: Looked, comb: Comb, window: float, spread: float = 1.0, least: float = COVERAGE) -> Series | None:
    """The series on this comb, where gaps in this window prove it: at this share of its moments, beyond chance."""
    period, phase = comb.period, comb.phase
    whole = floor(looked.length / period)
    if whole < LEAST_PERIODS:
        return None
    near = nearest(looked, period, phase, max(window, WINDOWS[0]))
    hit = {slot for slot, (off, _) in near.items() if off <= window}
    slots = seen_slots(looked, period, phase, hit)
    hits = min(len(hit), whole)
    chance = looked.chance(2 * window * period)
    if hits < LEAST_HITS or hits / slots - chance < least * (1 - chance):
        return None
    if evidence(len(hit), slots, chance) <= wanted(slots, window, spread):
        return None
    is_thin = hits / slots - chance < COVERAGE * (1 - chance)
    if is_thin and any(is_regular(hit, divisor) for divisor in (2, 3, 5)):
        return None
    members = tuple(index for _, index in near.values())
    return Series(period, hits, max(hits, min(slots, whole)), members, phase, comb.error, window, is_thin)


def is_regular(hit: set[int], divisor: int) -> bool:
    """Is it every second moment that was hit, or two of each five? Chance leaves out moments of any rank."""
    ranks = Counter(slot % divisor for slot in hit).values()
    return sum(hits > len(hit) / (4 * divisor) for hits in ranks) <= divisor / 2
