"""Simultaneous stops: times at which all probed CPUs were away together, and for nothing in the kernel. Pure; in ns.

An SMI stops all CPUs, and so does a hypervisor that stops its guest. But gaps also meet by chance: of two CPUs with ten
thousand gaps a second many do. So each CPU is judged against what all others have in common: two that stop together
beside a third that is often away are no stop of all. By chance, a gap may lie anywhere near where it does; the chance
that it meets the others is the share of that time in which it would. This stays true for bursts and for rates that
drift. Gaps that crowd count once, and the bound is that of `phase.evidence`.

Short gaps are many and meet often, long ones are few: what is judged are the gaps of a least length, the shortest
that leaves to chance no more than a tenth of what is found.

Without a trace nobody knows in which gaps the kernel had a part: it stops all CPUs, too (ticks, stop_machine). But it
counts how often it entered each, and so many of the stops, the longest ones, are left to it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import log
from statistics import median

from msgspec.structs import replace

from tunectl.probe.attribution import Attributed
from tunectl.probe.phase import evidence
from tunectl.probe.raw import Cpu, Run
from tunectl.shapes import Event, Stops
from tunectl.wording import nanoseconds

Gap = tuple[float, float]  # begin and end

LEAST_STOPS = 3
LOOKED_AT = 4096  # of each CPU: its longest gaps
_ERROR = 1e-4  # false claims, over all lengths
_BY_CHANCE = 0.1  # of what is found, at most
_NEAR = 128  # a gap may lie within so many times the usual lengths
_CROWD = 16  # gaps within so many count once


def find_stops(gaps: Sequence[Sequence[Gap]], length: float, entries: int = 0) -> Stops | None:
    """Of the gaps of at least two CPUs, each in the order of time, from 0 to `length`; None where chance is enough.

    The kernel entered no CPU more than `entries` times in gaps that may be its own: at least so many stops are not
    its. `count` is None where that leaves too few.
    """
    if len(gaps) < 2 or not all(gaps):
        return None
    levels = _levels(gaps)
    for level in levels:
        kept = [[gap for gap in own if gap[1] - gap[0] >= level] for own in gaps]
        others = _others(kept)
        together = common(kept[0], others[0])
        if len(together) < LEAST_STOPS:
            return None
        found = [_judged(own, other, length) for own, other in zip(kept, others, strict=True)]
        by_chance = max(expected for _, expected in found)
        if by_chance <= _BY_CHANCE * len(together) and min(found)[0] > log(len(levels) / _ERROR):
            lengths = sorted(_lengths(together, kept))
            if len(lengths) < LEAST_STOPS:
                return None
            lengths = lengths[: max(len(lengths) - entries, 0)]
            if len(lengths) < LEAST_STOPS or by_chance > _BY_CHANCE * len(lengths):
                return Stops()
            return Stops(len(lengths), int(sum(lengths)), int(max(lengths)), int(level), round(by_chance, 3))
    return None


def _lengths(together: Sequence[Gap], kept: Sequence[Sequence[Gap]]) -> Iterator[float]:
    """How long each stop was: what lies in one gap of any CPU is one."""
    begins = [[start for start, _ in own] for own in kept]
    before: list[int] = []
    length = 0.0
    for start, end in together:
        within = [bisect_right(own, start) for own in begins]
        if before and all(was != now for was, now in zip(before, within, strict=True)):
            yield length
            length = 0.0
        before, length = within, length + end - start
    yield length


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


def _levels(gaps: Sequence[Sequence[Gap]]) -> list[float]:
    """The least lengths to look at, ascending: 1, 2, 5, 10, ..., from where each CPU has few enough gaps.

    The first one keeps all of them, where they are few: on a quiet host nothing but the stops is left.
    """
    ordered = [sorted((end - start for start, end in own), reverse=True) for own in gaps]
    least = max(lengths[LOOKED_AT] if len(lengths) > LOOKED_AT else 0.0 for lengths in ordered)
    shortest, most = min(lengths[-1] for lengths in ordered), min(lengths[0] for lengths in ordered)
    levels = (step * 10.0**decade for decade in range(18) for step in (1, 2, 5))
    found = [level for level in levels if least <= level <= most]
    return found[max(bisect_right(found, shortest) - 1, 0) :]


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
    """`simultaneous_stops` of a run; `count` is None where nobody can tell."""
    if reason := _not_seen(run, attributed):
        return Stops(reason=reason)
    entries = 0 if attributed.is_traced else max(_entries(run, cpu) for cpu in run.cpus)
    # Where a list was full: the long ones in the whole run before all of those until then.
    classes = (run.long_ticks, 0) if run.long_ticks and any(cpu.events_lost for cpu in run.cpus) else (0,)
    found = (_stops(run, attributed, least, entries) for least in classes)
    stops = next((stops for stops in found if stops), None)
    if stops is None:
        return Stops(count=0)
    if stops.count is None:
        return Stops(reason=f"the kernel took a CPU {entries:,} times meanwhile, and {_untraced(attributed)}")
    if not run.machine.is_virtual:
        return replace(stops, explanation="firmware (an SMI) or hardware")
    stolen = sum(run.steal_ms(cpu.cpu) for cpu in run.cpus)
    account = f"by whose account it kept these CPUs for {nanoseconds(stolen * 1e6)} in all (steal)"
    return replace(stops, explanation=f"the hypervisor, {account}, or the machine below it")


def _entries(run: Run, cpu: Cpu) -> int:
    """How often the kernel took this CPU, at most: where it stops all of them, one of these comes on each."""
    switches = cpu.counters.context_switches
    came = sum(run.counted.moved("irq", cpu.cpu).values())
    return came + switches.voluntary + switches.involuntary + cpu.counters.page_faults


def _untraced(attributed: Attributed) -> str:
    why = attributed.method.reason if attributed.method else ""
    return "only --attribute tells in which gaps it had no part" + (f" ({why})" if why else "")


def _stops(run: Run, attributed: Attributed, least: int, entries: int) -> Stops | None:
    """Of the gaps of `least` ticks and more, as far as all CPUs have these listed."""
    begin, tick = max(cpu.tsc_start for cpu in run.cpus), 1e9 / run.clock.hz
    end = min(run.listed_until(cpu, least) for cpu in run.cpus)
    is_traced, outside = attributed.is_traced, attributed.outside

    def candidates(events: Sequence[Event]) -> list[Gap]:
        listed = ((start, stop) for start, stop, label in events if label in outside or not is_traced)
        asked = ((start, stop) for start, stop in listed if begin <= start < end and stop - start >= least)
        return [((start - begin) * tick, (stop - begin) * tick) for start, stop in asked]

    gaps = [candidates(cpu.events) for cpu in attributed.gaps]
    return find_stops(gaps, max((end - begin) * tick, 1.0), entries)


def _not_seen(run: Run, attributed: Attributed) -> str:
    """Why nobody can tell whether all CPUs stopped together; "" where somebody can."""
    if len(run.cpus) < 2:
        return "it takes two probed CPUs to see one"
    if not run.machine.is_virtual and all(cpu.cpu in {run.cpus[0].cpu, *run.cpus[0].siblings} for cpu in run.cpus):
        return "it takes CPUs of two cores to see one: what stalls a core stops each of its threads"
    if not run.machine.has_stable_tsc:
        return "the counters of two CPUs need not agree"
    if not attributed.is_traced and not run.counted.has_interrupts:
        return f"nobody knows how often the kernel took these CPUs, and {_untraced(attributed)}"
    return ""
