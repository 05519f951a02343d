"""A run as a sample of gaps, and what it says about its host, with bounds: quantiles, rates, the longest gap. Pure.

One idea is behind all of them: the bounds depend on the number of *independent* observations. Interruptions come in
bursts. So the variation of their number from slice to slice is compared with the variation that independent
interruptions would have, and the count is divided by that ratio (the design effect; Korn & Graubard 1998, with their
correction for few slices).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tunectl.compare.chance import Interval, binomial_range, normal_deviate, poisson_interval, student_deviate
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
    """The share of the run in which every gap is listed with its time: until the list was full."""
    if _complete(cpu):
        return 1.0
    run_ns = span_ns(result, cpu)
    if not cpu.events_lost or len(cpu.events) < SLICES or not run_ns:
        return 0.0
    return min(result.complete_ns(cpu) / run_ns, 1.0)


def _cut(result: Jitter, cpu: Cpu, threshold_ns: float, covered: float) -> list[list[float]]:
    ns = 1e9 / result.clock.hz
    part_ns = span_ns(result, cpu) * covered / PARTS
    parts: list[list[float]] = [[] for _ in range(PARTS)]
    if not part_ns:
        return parts
    first = cpu.tsc_start or (cpu.events[0][0] if cpu.events else 0)
    for start, end, _ in cpu.events:
        place = int((start - first) * ns / part_ns)
        if (length := (end - start) * ns) > threshold_ns and place < PARTS:
            parts[max(place, 0)].append(length)
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


def gap_percentile(sample: Sample, share: float, confidence: float) -> Interval | None:
    """The length that `share` of the gaps exceed (nearest rank); None without a gap."""
    whole = sample.whole
    if not whole.count:
        return None
    value = whole.nth_longest(whole.count - math.ceil(round(whole.count * (1 - share), 6)) + 1)
    # Order statistics: how many of `draws` independent gaps exceed the true percentile is binomial.
    draws = max(int(whole.count / _gap_effect(sample, value, confidence)), 1)
    few, many = binomial_range(draws, share, confidence)
    scale = whole.count / draws  # from a rank among the independent gaps to a rank among all gaps
    high = whole.nth_longest(max(math.floor(few * scale), 1)) if few else math.inf
    low = whole.nth_longest(math.ceil(many * scale) + 1)
    return Interval(value, min(low, value), max(high, value))


def _gap_effect(sample: Sample, ns: float, confidence: float) -> float:
    """The design effect on the share of gaps longer than `ns`."""
    longer = [part.longer(ns) for part in sample.slices]
    gaps = [part.count for part in sample.slices]
    if not sum(longer) or sum(longer) == sum(gaps):
        return _widened(1.0, sample.slices, confidence)
    share = sum(longer) / sum(gaps)
    varied = _varied([above - share * all_ for above, all_ in zip(longer, gaps, strict=True)])
    return _widened(varied / (sum(gaps) * share * (1 - share)), sample.slices, confidence)


def arrival_percentile(sample: Sample, share: float, confidence: float) -> Interval:
    """The wait that `share` of randomly timed arrivals exceed: each gap counts by its length."""
    whole, budget = sample.whole, share * sample.run_ns
    value = whole.wait_exceeded(budget)
    waited = whole.waited(value)
    deciding = independent_waits(sample, value, confidence) * budget / waited if waited else 0.0
    if not deciding:  # one gap as long as a year leaves nothing of the others
        return Interval(value, 0.0, math.inf)
    few, many = binomial_range(max(int(deciding / share), 1), share, confidence)
    high = whole.wait_exceeded(budget * few / deciding) if few else math.inf
    low = whole.wait_exceeded(budget * many / deciding)
    return Interval(value, min(low, value), max(high, value))


def independent_waits(sample: Sample, ns: float, confidence: float) -> float:
    """How many independent gaps of equal length would make the time spent in waits beyond `ns` equally uncertain."""
    waited, squares = sample.whole.waited(ns), sample.whole.waited_squares(ns)
    if not squares:
        return 0.0
    alone = sum(part.waited_squares(ns) for part in sample.slices)
    varied = _varied([part.waited(ns) for part in sample.slices])
    return waited**2 / squares / _widened(varied / alone if alone else 1.0, sample.slices, confidence)


def interruptions_per_s(sample: Sample, confidence: float) -> Interval:
    """Gaps in a second of one CPU's time."""
    counts: Sequence[float] = _by_interval(sample, 0) or [part.count for part in sample.slices]
    effect = _widened(_varied(counts) / sum(counts) if sum(counts) else 1.0, counts, confidence)
    return _scaled(sample.whole.count, sample.whole.count / effect, sample.run_ns / 1e9, confidence)


def stolen_ppm(sample: Sample, confidence: float) -> Interval:
    """The share of the run's time that gaps took."""
    stolen = sample.whole.waited(0)
    if not stolen:  # a gap that was not seen may be of any length
        return Interval(0.0, 0.0, math.inf)
    deciding = independent_waits(sample, 0, confidence)
    if parts := _by_interval(sample, 1):
        varied = _varied(parts)
        squares = sample.whole.waited_squares(0)
        if varied and squares:
            deciding = min(stolen**2 / squares, sum(parts) ** 2 / varied) / _widened(1.0, parts, confidence)
    interval = _scaled(stolen, deciding, sample.run_ns / 1e6, confidence)
    return interval._replace(high=min(interval.high, 1e6))


def _by_interval(sample: Sample, which: int) -> list[float]:
    """A column of the series, as slices, where the list of gaps is not whole; empty without a series."""
    return [] if sample.sliced else gathered([interval[which] for interval in sample.intervals], SLICES)


def _scaled(total: float, deciding: float, over: float, confidence: float) -> Interval:
    """A sum over a time, with the relative uncertainty of a count of `deciding` events."""
    if not over:
        return Interval(0.0, 0.0, math.inf)
    if not total or not deciding:
        return Interval(0.0, 0.0, poisson_interval(0, confidence).high / over)
    bounds = poisson_interval(deciding, confidence)
    return Interval(total / over, total / over * bounds.low / deciding, total / over * bounds.high / deciding)


def _varied(slices: Sequence[float]) -> float:
    """Variance of a sum over slices, from how the slices deviate from their mean."""
    count = len(slices)
    if count < 2:
        return 0.0
    mean = sum(slices) / count
    deviations = [value - mean for value in slices]
    return sum(deviation * deviation for deviation in deviations) * count / (count - 1)


def _widened(effect: float, parts: Sequence[object], confidence: float) -> float:
    """A design effect, never below 1, and increased because it is estimated from few slices."""
    if len(parts) < 2:
        return 1.0
    few = student_deviate(confidence, len(parts) - 1) / normal_deviate(confidence)
    return max(effect, 1.0) * few**2


def longest_streak(before: Sample, after: Sample) -> tuple[bool, int, float]:
    """The longest gaps of both runs: (are they all from `before`?, on how many occasions, the chance of that).

    If nothing had changed, each would be from the first run with the probability of that run's share of the time. Gaps
    of one slice are one occasion. The chance is that all are from the same run, whichever it is.
    """
    first = before.whole.longest >= after.whole.longest
    winner, loser = (before, after) if first else (after, before)
    limit = loser.whole.longest
    times = sum(part.longest > limit for part in winner.slices) if winner.sliced else winner.whole.longer(limit)
    share = winner.run_ns / (winner.run_ns + loser.run_ns)
    return first, times, min(2 * share**times, 1.0)
