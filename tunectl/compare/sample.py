"""A run, or one CPU of it, as the statistics want it: lengths of gaps, whole and in slices of time. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tunectl.probe.lengths import Lengths
from tunectl.shapes import Cpu, Jitter

# Interruptions come in bursts; slices longer than a burst are nearly independent of each other. Fewer slices would
# judge the spread poorly, more would cut bursts apart.
SLICES = 30
PARTS = 120  # as fine as the course of a run is looked at; a multiple of SLICES
_FEWEST_INTERVALS = 8  # of a series; fewer say too little about spread


@dataclass(frozen=True)
class Sample:
    """Gaps above the threshold. `parts` are PARTS equal times of the first `covered` of the run; none where unknown."""

    run_ns: float  # of all its CPUs together
    whole: Lengths
    slices: tuple[Lengths, ...]  # SLICES of the same time
    covered: float  # share of the run that the slices are of
    intervals: tuple[tuple[float, float], ...]  # (gaps, stolen ns) of equal times; empty where there is no series
    parts: tuple[tuple[float, ...], ...] = ()

    @property
    def sliced(self) -> bool:
        """Do slices cover all of it?"""
        return self.covered == 1 and bool(self.slices)


def span_ns(result: Jitter, cpu: Cpu) -> float:
    """How long this CPU was measured."""
    return float(cpu.duration_ns) or result.duration_s * 1e9


def sample(result: Jitter, cpus: Sequence[Cpu], threshold_ns: float) -> Sample:
    """These CPUs of a result as one: a moment is one of theirs. Gaps of at most the threshold are left out."""
    covered = min(_covered(result, cpu) for cpu in cpus)
    cut = [_cut(result, cpu, threshold_ns, covered) for cpu in cpus] if covered else []
    parts = tuple(tuple(ns for part in same for ns in part) for same in zip(*cut, strict=True))
    step = PARTS // SLICES
    return Sample(
        run_ns=sum(span_ns(result, cpu) for cpu in cpus),
        whole=Lengths(group for cpu in cpus for group in _groups(result, cpu, threshold_ns)),
        slices=tuple(
            Lengths((ns, 1) for part in parts[at : at + step] for ns in part) for at in range(0, len(parts), step)
        ),
        covered=covered,
        intervals=_intervals(cpus) if threshold_ns <= result.threshold_ns else (),  # it counts shorter gaps, too
        parts=parts,
    )


def _complete(cpu: Cpu) -> bool:
    return len(cpu.events) == cpu.interruptions


def _groups(result: Jitter, cpu: Cpu, threshold_ns: float) -> Iterable[tuple[float, int]]:
    """Each gap by itself where all are listed, else the histogram's buckets by their middle."""
    if _complete(cpu):
        ns = 1e9 / result.clock.hz
        pairs: Iterable[tuple[float, int]] = (((end - start) * ns, 1) for start, end, _ in cpu.events)
    else:
        pairs = ((min((low + high) / 2, cpu.max_ns), count) for low, high, count in cpu.histogram)
    return [pair for pair in pairs if pair[0] > threshold_ns]


def _covered(result: Jitter, cpu: Cpu) -> float:
    """The share of the run in which every gap is listed with its time: the list ends where it was full."""
    if _complete(cpu):
        return 1.0
    run_ticks = span_ns(result, cpu) * result.clock.hz / 1e9
    if not cpu.events_lost or len(cpu.events) < SLICES or not run_ticks:
        return 0.0
    return min((cpu.events[-1][1] - cpu.tsc_start) / run_ticks, 1.0) if cpu.tsc_start else 0.0


def _cut(result: Jitter, cpu: Cpu, threshold_ns: float, covered: float) -> list[list[float]]:
    ns = 1e9 / result.clock.hz
    part_ns = span_ns(result, cpu) * covered / PARTS
    parts: list[list[float]] = [[] for _ in range(PARTS)]
    if not part_ns:
        return parts
    first = cpu.tsc_start or (cpu.events[0][0] if cpu.events else 0)
    for start, end, _ in cpu.events:
        place = int((start - first) * ns / part_ns)
        if (length := (end - start) * ns) > threshold_ns and place <= PARTS:
            parts[max(min(place, PARTS - 1), 0)].append(length)
    return parts


def _intervals(cpus: Sequence[Cpu]) -> tuple[tuple[float, float], ...]:
    """The series of all CPUs, added up, in at most PARTS intervals; without the last one, which the end cuts."""
    series = [cpu.series.intervals if cpu.series else [] for cpu in cpus]
    whole = min(map(len, series)) - 1
    if whole < _FEWEST_INTERVALS:
        return ()
    added = [tuple(sum(of[at][which] for of in series) for which in (0, 1)) for at in range(whole)]
    return tuple(zip(*(gathered([one[which] for one in added], PARTS) for which in (0, 1)), strict=True))


def gathered(values: Sequence[float], most: int) -> list[float]:
    """Neighbours added up, so many at a time that at most `most` sums are left; what is over at the end is left out."""
    width = -(-len(values) // most) or 1
    return [sum(values[at : at + width]) for at in range(0, len(values) - width + 1, width)]
