"""Does something happen each P, in phase? One period judged on the starts of gaps. Pure; times in ns.

The run is cut into periods. A period is hit when a gap begins within a window around a phase that all of them share.
By chance, the gaps of one period may lie anywhere in it, whatever the periods around it hold: the chance of a hit is
the share of the period that lies within half a window of its gaps. This stays true for bursts and for rates that
drift, since no density is carried from one period to another. The hits add up to a Poisson binomial variable. Its
upper tail is at most that of the binomial variable with the same mean (Hoeffding, 1956,
doi:10.1214/aoms/1177728178), which is below exp(-n KL(hits / n, mean)). So the mean over all periods is enough.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, repeat
from math import ceil, floor, inf, log
from statistics import median

LEAST_PERIODS = 12
COVERAGE = 0.7  # of the periods, beyond what chance covers: a period that is mostly left out is none
WINDOWS = (0.03, 0.01, 0.003)  # of the period, to either side: a tick comes late behind another interruption
LEAST_HITS = 6  # where pauses hide the other periods
_ERROR = 1e-4  # false periods for each octave of periods, over all phases and windows
_BINS = 50
_FITS = (0.03, 0.015, 0.006)


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

    def hidden(self, reach: float) -> float:
        """How much of the time lies in a pause, further than `reach` from its start."""
        found = upto = 0.0
        for start, end in self.pauses:
            found += max(0.0, end - max(start + reach, upto))
            upto = max(upto, end)
        return found

    def chance(self, width: float) -> float:
        """Of the moments that no pause hides, the share within half of `width` of a start."""
        seen = self.length - self.hidden(width / 2)
        return min(1.0, self.near(width) / seen) if seen > 0 else 1.0


@dataclass(frozen=True)
class Series:
    """Gaps in phase: how many periods were hit, of those where that could be seen."""

    period: float
    hits: int
    slots: int
    members: tuple[int, ...]  # indexes of starts: the one nearest to each moment
    phase: float  # the moment that the periods share


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


def can_be_seen(looked: Looked, period: float, window: float = WINDOWS[-1]) -> bool:
    """Whether a gap in every period would be more than chance: not among gaps that are too dense."""
    slots = floor(looked.length / period)
    least = wanted(slots, window, 1 / max(1, slots))
    return slots >= LEAST_PERIODS and evidence(slots, slots, looked.chance(2 * window * period)) > least


def fullest(starts: Sequence[float], period: float) -> tuple[int, float]:
    """How many periods have a gap around their common phase, roughly, and that phase."""
    counts, last = [0] * _BINS, [-1] * _BINS
    scale = _BINS / period
    for start in starts:
        slot, offset = divmod(start, period)
        index = int(offset * scale) % _BINS
        if last[index] != slot:
            last[index] = int(slot)
            counts[index] += 1
    best, index = max((counts[index - 1] + counts[index], index) for index in range(_BINS))
    return best, index / scale


def in_phase(looked: Looked, guess: float, spread: float = 1.0) -> Series | None:
    """The series with about this period, where there is one. Over the whole length `guess` is off by few windows.

    `spread`, a share of the period, says among how many it was picked: 1 for any, less for a known one.
    """
    if not can_be_seen(looked, guess):
        return None
    roughly, phase = fullest(looked.starts, guess)
    if roughly < COVERAGE * (looked.length - looked.hidden(0.0)) / guess * 0.8:
        return None
    period, phase = _fitted(looked.starts, guess, phase)
    return judged(looked, period, phase, spread) if abs(period - guess) <= spread * guess / 2 else None


def _fitted(starts: Sequence[float], period: float, phase: float) -> tuple[float, float]:
    """Period and phase by least squares over the gaps near the phase, in ever smaller windows; zeros for too few."""
    for reach in _FITS:
        slots, offsets = [], []
        for start in starts:
            slot = round((start - phase) / period)
            offset = start - phase - slot * period
            if abs(offset) <= reach * period:
                slots.append(slot)
                offsets.append(offset)
        if len(slots) < LEAST_HITS or slots[0] == slots[-1]:
            return 0.0, 0.0
        middle, mean = sum(slots) / len(slots), sum(offsets) / len(slots)
        spread = sum((slot - middle) ** 2 for slot in slots)
        slope = sum((slot - middle) * offset for slot, offset in zip(slots, offsets, strict=True)) / spread
        offset = median(offset - mean - slope * (slot - middle) for slot, offset in zip(slots, offsets, strict=True))
        phase += mean + offset - slope * middle
        period += slope
    return period, phase


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


def seen_slots(looked: Looked, period: float, phase: float, hit: set[int], window: float) -> int:
    """How many periods have a moment that was hit, or that no pause hid."""
    slots, hits = _slots(looked, period, phase), sorted(hit)
    seen, upto = len(slots), slots.start
    for start, end in looked.pauses:
        first = max(upto, ceil((start - phase) / period - window))
        upto = max(first, min(slots.stop, floor((end - phase) / period) + 1))
        seen -= upto - first - (bisect_left(hits, upto) - bisect_left(hits, first))
    return seen


def judged(looked: Looked, period: float, phase: float, spread: float = 1.0) -> Series | None:
    """The series with this period and phase in the widest window that proves it."""
    whole = floor(looked.length / period)
    if whole < LEAST_PERIODS:
        return None
    near = nearest(looked, period, phase, WINDOWS[0])
    for window in WINDOWS:
        hit = {slot for slot, (off, _) in near.items() if off <= window}
        slots = seen_slots(looked, period, phase, hit, window)
        hits = min(len(hit), whole)
        chance = looked.chance(2 * window * period)
        if hits < LEAST_HITS or hits / slots - chance < COVERAGE * (1 - chance):
            continue
        if evidence(len(hit), slots, chance) > wanted(slots, window, spread):
            return Series(period, hits, max(hits, min(slots, whole)), tuple(index for _, index in near.values()), phase)
    return None
