"""What else differs between two runs, or makes the comparison weaker: sentences for people. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tunectl.compare.tables import key_of
from tunectl.cpulist import format_cpulist
from tunectl.probe.shapes import Jitter, Wake

_LONGER = 1.1  # with a larger ratio of lengths the runs have different chances of a rare gap


def common_conditions(before: Jitter | Wake, after: Jitter | Wake) -> Iterator[str]:
    """The host, the kernel, the order."""
    if before.at and (before.at, before.host) == (after.at, after.host):
        yield "both are the same run: nothing differs"
    elif before.at and after.at and before.at > after.at:
        yield f"`before` was measured later ({before.at}) than `after` ({after.at}): are the files in this order?"
    for name in ("hostname", "kernel", "machine"):
        yield from _differs(name, getattr(before.host, name), getattr(after.host, name))
    yield from _differs("tunectl", before.tunectl_version, after.tunectl_version)
    yield from _only("before", before.warnings, after.warnings)
    yield from _only("after", after.warnings, before.warnings)


def _differs(name: str, before: Any, after: Any) -> Iterator[str]:
    if before != after:
        yield f"another {name}: {before or 'unknown'} before, {after or 'unknown'} after"


def _only(side: str, own: Iterable[str], other: Iterable[str]) -> Iterator[str]:
    """Warnings of one run that the other did not give."""
    missing = set(other)
    for text in own:
        if text not in missing:
            yield f"only {side}: {text}"


def jitter_conditions(before: Jitter, after: Jitter) -> Iterator[str]:
    """Threshold, CPUs, length, clock, priority; which gaps are not listed."""
    if before.threshold_ns != after.threshold_ns:
        larger = max(before.threshold_ns, after.threshold_ns)
        each = f"{before.threshold_ns} ns before, {after.threshold_ns} ns after"
        yield f"another threshold: {each}; only gaps over {larger} ns are compared"
    yield from _cpus(before, after)
    shorter, longer = sorted((before.duration_s, after.duration_s))
    if longer > shorter * _LONGER:
        lengths = f"{before.duration_s:.3g} s before, {after.duration_s:.3g} s after"
        yield f"another length: {lengths}; the longer run had more chance of a rare, long gap"
    yield from _differs("clock", before.clock.source, after.clock.source)
    priorities = [result.fifo_priority or "ordinary" for result in (before, after)]
    yield from _differs("scheduling priority", *priorities)
    for side, result in (("before", before), ("after", after)):
        yield from _unseen(side, result)


def _cpus(before: Jitter, after: Jitter) -> Iterator[str]:
    sets = [{cpu.cpu for cpu in result.cpus} for result in (before, after)]
    if sets[0] == sets[1]:
        return
    each = f"{format_cpulist(sets[0])} before, {format_cpulist(sets[1])} after"
    common = format_cpulist(sets[0] & sets[1])
    yield f"other CPUs: {each}; " + (f"only {common} are compared" if common else "none is the same")


def _unseen(side: str, result: Jitter) -> Iterator[str]:
    if result.interrupted:
        yield f"{side} was interrupted before its time"
    partial = [cpu for cpu in result.cpus if len(cpu.events) != cpu.interruptions]
    if not partial:
        return
    cpus = format_cpulist(cpu.cpu for cpu in partial)
    what = f"{side} does not list every gap of CPUs {cpus}, so lengths are good to a histogram's bucket"
    if all(not cpu.events and not cpu.series for cpu in partial):
        yield f"{what}, and the bounds assume that interruptions are independent: bursts make them too narrow"
    else:
        yield f"{what}, and how they come in bursts is judged from the part that is, or from the series"


def wake_conditions(before: Wake, after: Wake) -> Iterator[str]:
    """Cases that only one run has, or that ran on other CPUs."""
    cases = [{key_of(case): case for case in result.cases} for result in (before, after)]
    for side, own, other in (("before", cases[0], cases[1]), ("after", cases[1], cases[0])):
        alone = [case.name for key, case in own.items() if key not in other]
        if alone:
            yield f"only {side}: {'; '.join(alone)}"
    priorities = [result.fifo_priority or "ordinary" for result in (before, after)]
    yield from _differs("scheduling priority", *priorities)
    for side, result in (("before", before), ("after", after)):
        if result.interrupted:
            yield f"{side} was interrupted before its time"
    for key in (key for key in cases[0] if key in cases[1]):
        pair = cases[0][key], cases[1][key]
        if pair[0].cpus != pair[1].cpus:
            each = " before, ".join("-".join(map(str, case.cpus)) for case in pair)
            yield f"{pair[0].name}: other CPUs: {each} after"
    yield "the bounds assume that messages are independent of each other"
