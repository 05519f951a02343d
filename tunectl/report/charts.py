"""What the charts of every format draw: a run in equal slices of time, and a logarithmic scale. Pure.

Each slice has its longest gap and the share of it that was stolen. They come from the list of gaps where that is whole,
otherwise from the series of intervals, otherwise from what is listed. A slice beyond the end of a full list is None.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tunectl.shapes import Cpu, FeedSeries, Jitter

MAX_SPARKLINES = 16  # CPUs, those with the longest gaps


class Slice(NamedTuple):
    """What happened in one slice of time."""

    longest_ns: float
    stolen: float  # share, 0 to 1


class Level(NamedTuple):
    """What the messages of one slice of time took."""

    longest_ns: float
    mean_ns: float


def levels(series: FeedSeries, slices: int) -> list[Level | None]:
    """At most `slices` slices of the run, each of as many whole intervals; None where no message of it has come."""
    rows = series.intervals
    per = -(-len(rows) // slices) or 1
    found: list[Level | None] = []
    for at in range(0, len(rows), per):
        counts, totals, longest = zip(*rows[at : at + per], strict=True)
        found.append(Level(max(longest), sum(totals) / sum(counts)) if any(counts) else None)
    return found


def timeline(result: Jitter, cpu: Cpu, slices: int) -> list[Slice | None]:
    """At most `slices` slices of the run; an empty list where the times of the gaps were not recorded."""
    events, whole, run_ns = cpu.events, len(cpu.events) == cpu.interruptions, result.seconds(cpu) * 1e9
    if cpu.series and cpu.series.intervals and not whole:
        return _from_series(cpu.series.intervals, cpu.series.interval_s * 1e9, slices, run_ns)
    if not run_ns or (not events and not whole):
        return []
    begin, tick = cpu.tsc_start or (events[0][0] if events else 0), 1e9 / result.clock.hz
    gaps = [((start - begin) * tick, (end - start) * tick) for start, end, _ in events]
    known = slices if whole else min(int(result.complete_ns(cpu) / run_ns * slices), slices)
    return _from_gaps(gaps, slices, run_ns, known)


def _from_gaps(gaps: Sequence[tuple[float, float]], slices: int, length: float, known: int) -> list[Slice | None]:
    """A gap is shown in every slice of which it took any time, and its time is split among them."""
    width = length / slices
    longest, stolen = [0.0] * slices, [0.0] * slices
    for start, ns in gaps:
        first = min(max(int(start / width), 0), slices - 1)
        last = min(int((start + ns) / width), slices - 1)
        for at in range(first, max(first, last) + 1):
            taken = min(start + ns, (at + 1) * width) - max(start, at * width)
            stolen[at] += max(taken, 0.0)
            if at == first or taken > 0:
                longest[at] = max(longest[at], ns)
    made = [Slice(ns, min(took / width, 1.0)) for ns, took in zip(longest, stolen, strict=True)]
    return [one if at < known else None for at, one in enumerate(made)]


def _from_series(
    intervals: Sequence[Sequence[float]], interval_ns: float, slices: int, length: float
) -> list[Slice | None]:
    """Whole intervals, (gaps, stolen ns, longest ns), as many in a slice as needed; the run's end may cut the last."""
    whole = list(intervals)
    if len(whole) > 1 and length - (len(whole) - 1) * interval_ns < interval_ns / 2:
        # a very short last interval would be drawn as wide as the others
        gaps, stolen, longest = whole.pop()
        whole[-1] = (whole[-1][0] + gaps, whole[-1][1] + stolen, max(whole[-1][2], longest))
    per = -(-len(whole) // slices)
    made: list[Slice | None] = []
    for at in range(0, len(whole), per):
        part = whole[at : at + per]
        end = length if at + per >= len(whole) else (at + per) * interval_ns
        width = max(end - at * interval_ns, 1.0)
        taken = sum(ns for _, ns, _ in part)
        made.append(Slice(max(longest for _, _, longest in part), min(taken / width, 1.0)))
    return made


@dataclass(frozen=True)
class LogScale:
    """From `low` at `start` to `high` at `end`, in the plot's units; whole decades."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def over(cls, least: float, most: float, start: float, end: float) -> LogScale:
        """The decades that hold both values; at least one."""
        low = 10.0 ** math.floor(math.log10(least) + 1e-9)
        high = 10.0 ** math.ceil(math.log10(max(most, least)) - 1e-9)
        return cls(low, max(high, low * 10), start, end)

    def at(self, value: float) -> float:
        """The position of `value`; a value beyond the axis is put at its end."""
        share = math.log10(max(value, self.low) / self.low) / math.log10(self.high / self.low)
        return round(self.start + min(share, 1.0) * (self.end - self.start), 1)

    def decades(self) -> list[float]:
        """The powers of ten on the axis."""
        first, last = round(math.log10(self.low)), round(math.log10(self.high))
        return [10.0**power for power in range(first, last + 1)]


_LEAST_OF_LIMIT = 1e-3  # a bar is not drawn below it


def limit_axis(shares: Iterable[float | None], start: float, end: float) -> LogScale:
    """The one axis of figures in their limits: all limits stand one above the other, at 1."""
    known = [share for share in shares if share is not None and math.isfinite(share)]
    return LogScale.over(_LEAST_OF_LIMIT, max([9.0, *known]), start, end)
