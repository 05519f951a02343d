"""Simultaneous stops: times at which all probed CPUs were away together, and for nothing in the kernel. Pure; in ns.

An SMI stops all CPUs, and so does a hypervisor that stops its guest. But gaps also meet by chance: of two CPUs with ten
thousand gaps a second many do. So each CPU is judged against what all others have in common: two that stop together
beside a third that is often away are no stop of all. By chance, a gap may lie anywhere near where it does; the chance
that it meets the others is the share of that time in which it would. This stays true for bursts and for rates that
drift. Gaps that crowd count once, and the bound is that of `phase.evidence`.

Short gaps are many and meet often, long ones are few: what is judged are the gaps of a least length, the shortest
that leaves to chance no more than a tenth of what is found.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import log
from statistics import median

from msgspec.structs import replace

from tunectl.probe.attribution import Attributed
from tunectl.probe.phase import evidence
from tunectl.probe.raw import Run
from tunectl.shapes import Event, Stops

Gap = tuple[float, float]  # begin and end

LEAST_STOPS = 3
LOOKED_AT = 4096  # of each CPU: its longest gaps
_ERROR = 1e-4  # false claims, over all lengths
_BY_CHANCE = 0.1  # of what is found, at most
_NEAR = 128  # a gap may lie within so many times the usual lengths
_CROWD = 16  # gaps within so many count once


def find_stops(gaps: Sequence[Sequence[Gap]], length: float) -> Stops | None:
    """Of the gaps of at least two CPUs, each in the order of time, from 0 to `length`; None where chance is enough."""
    if len(gaps) < 2 or not all(gaps):
        return None
    levels = list(_levels(gaps))
    for level in levels:
        kept = [[gap for gap in own if gap[1] - gap[0] >= level] for own in gaps]
        others = _others(kept)
        together = common(kept[0], others[0])
        if len(together) < LEAST_STOPS:
            return None
        found = [_judged(own, other, length) for own, other in zip(kept, others, strict=True)]
        by_chance = max(expected for _, expected in found)
        if by_chance <= _BY_CHANCE * len(together) and min(found)[0] > log(len(levels) / _ERROR):
            lengths = [end - start for start, end in together]
            return Stops(len(lengths), int(sum(lengths)), int(max(lengths)), int(level), round(by_chance, 3))
    return None


def common(some: Sequence[Gap], others: Sequence[Gap]) -> list[Gap]:
    """The times that are in a gap of either."""
    found = []
    at = 0
    for start, end in some:
        while at < len(others) and others[at][1] <= start:
            at += 1
        upto = at
        while upto < len(others) and others[upto][0] < end:
            found.append((max(start, others[upto][0]), min(end, others[upto][1])))
            upto += 1
    return found


def _levels(gaps: Sequence[Sequence[Gap]]) -> Iterator[float]:
    """The least lengths to look at, ascending: 1, 2, 5, 10, ..., from where each CPU has few enough gaps."""
    ordered = [sorted((end - start for start, end in own), reverse=True) for own in gaps]
    least = max(lengths[: LOOKED_AT + 1][-1] for lengths in ordered)
    most = min(lengths[0] for lengths in ordered)
    decade = 1.0
    while decade <= most:
        yield from (step * decade for step in (1, 2, 5) if least <= step * decade <= most)
        decade *= 10


def _others(kept: Sequence[Sequence[Gap]]) -> list[Sequence[Gap]]:
    """For each CPU what all others have in common."""
    before: list[Sequence[Gap]] = list(accumulate(kept, common))
    behind: list[Sequence[Gap]] = list(accumulate(reversed(kept), common))
    behind.reverse()
    between = [common(one, two) for one, two in zip(before, behind[2:], strict=False)]
    return [behind[1], *between, before[-2]]


def _judged(own: Sequence[Gap], others: Sequence[Gap], length: float) -> tuple[float, float]:
    """The evidence that these gaps meet the others for a reason, and how many would by chance."""
    usual = median(end - start for start, end in own) + median(end - start for start, end in others)
    chances = list(_chances(own, others, min(_NEAR * usual, length), length))
    slots: dict[int, float] = {}
    for (start, _), chance in zip(own, chances, strict=True):
        slot = int(start / (_CROWD * usual))
        slots[slot] = min(1.0, slots.get(slot, 0.0) + chance)
    ends = [end for _, end in others]
    hit = set()
    for start, end in own:
        at = bisect_right(ends, start)
        if at < len(others) and others[at][0] < end:  # it meets another one
            hit.add(int(start / (_CROWD * usual)))
    return evidence(len(hit), len(slots), sum(slots.values()) / len(slots)), sum(chances)


def _chances(own: Sequence[Gap], others: Sequence[Gap], near: float, length: float) -> Iterator[float]:
    """For each gap the chance that it meets another one: an upper bound, as if no two of those were close."""
    starts, ends = [start for start, _ in others], [end for _, end in others]
    sums = [0.0, *accumulate(end - start for start, end in others)]
    for start, end in own:
        begin = min(max((start + end - near) / 2, 0.0), length - near)
        first, last = bisect_right(ends, begin), bisect_left(starts, begin + near)
        covered = sums[last] - sums[first] + (last - first) * (end - start) if last > first else 0.0
        yield min(1.0, covered / near)


def stops_of(run: Run, attributed: Attributed) -> Stops:
    """`simultaneous_stops` of a run whose gaps have their causes; `count` is None where nobody can tell."""
    if reason := _not_seen(run, attributed):
        return Stops(reason=reason)
    # Where a list was full: the long ones in the whole run before all of those until then.
    classes = (run.long_ticks, 0) if run.long_ticks and any(cpu.events_lost for cpu in run.cpus) else (0,)
    found = (_stops(run, attributed, least) for least in classes)
    stops = next((stops for stops in found if stops), None)
    if stops is None:
        return Stops(count=0)
    if not run.machine.is_virtual:
        return replace(stops, explanation="an SMI or the hardware")
    stolen = sum(run.steal_ms(cpu.cpu) for cpu in run.cpus)
    account = f"by whose account it kept these CPUs for {stolen:,} ms in all (steal)"
    return replace(stops, explanation=f"the hypervisor, {account}, or the machine below it")


def _stops(run: Run, attributed: Attributed, least: int) -> Stops | None:
    """Of the gaps of `least` ticks and more, as far as all CPUs have these listed."""
    begin, tick = max(cpu.tsc_start for cpu in run.cpus), 1e9 / run.clock.hz
    end = min(run.listed_until(cpu, least) for cpu in run.cpus)

    def outside(events: Sequence[Event]) -> list[Gap]:
        listed = ((start, stop) for start, stop, label in events if label in attributed.outside)
        asked = ((start, stop) for start, stop in listed if begin <= start < end and stop - start >= least)
        return [((start - begin) * tick, (stop - begin) * tick) for start, stop in asked]

    return find_stops([outside(cpu.events) for cpu in attributed.gaps], max((end - begin) * tick, 1.0))


def _not_seen(run: Run, attributed: Attributed) -> str:
    """Why nobody can tell whether all CPUs stopped together; "" where somebody can."""
    if len(run.cpus) < 2:
        return "it takes two probed CPUs to see one"
    if not run.machine.has_stable_tsc:
        return "the counters of two CPUs need not agree"
    if not attributed.method:
        return "only --attribute tells in which gaps the kernel had no part"
    return "" if attributed.is_traced else attributed.method.reason
