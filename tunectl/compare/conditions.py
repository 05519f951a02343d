"""What else differs between two runs, or makes the comparison weaker: sentences for people. Pure."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tunectl.compare.tables import NAMES
from tunectl.cpulist import format_cpulist, named_cpus
from tunectl.shapes import CaseTable, Feed, Jitter, Wake
from tunectl.wording import nanoseconds, seconds_of

_FIGURE = re.compile(r"(?<!CPU )(?<!CPUs )(?<!\d[-,])\b\d[\d.,]*")
_LONGER = 1.1  # with a larger ratio of lengths the runs have different chances of a rare gap


def common_conditions(before: Jitter | CaseTable, after: Jitter | CaseTable) -> Iterator[str]:
    """The host, the kernel, the order."""
    if before.at and after.at and before.at > after.at:
        yield f"`before` was measured later ({before.at}) than `after` ({after.at}): are the files in this order?"
    for name in ("hostname", "kernel", "machine"):
        yield from _differs(name, getattr(before.host, name), getattr(after.host, name))
    yield from _differs("tunectl", before.tunectl_version, after.tunectl_version)


def _differs(name: str, before: Any, after: Any, *, names: tuple[str, str] = NAMES) -> Iterator[str]:
    if before != after:
        yield f"another {name}: {before or 'unknown'} {names[0]}, {after or 'unknown'} {names[1]}"


def other_warnings(before: Sequence[Jitter] | CaseTable, after: Sequence[Jitter] | CaseTable) -> Iterator[str]:
    """Warnings that only one side's runs gave. Two that differ in their figures alone are one; a CPU is no figure."""
    first, second = _warnings(before), _warnings(after)
    for side, own, other in (("before", first, second), ("after", second, first)):
        yield from (f"only {side}: {text}" for kind, text in own.items() if kind not in other)


def _warnings(side: Sequence[Jitter] | CaseTable) -> dict[str, str]:
    """By what is left without their figures."""
    runs: Sequence[Jitter | CaseTable] = [side] if isinstance(side, CaseTable) else side
    return {_FIGURE.sub("N", text): text for run in reversed(runs) for text in run.warnings}


def load_condition(before: Jitter, after: Jitter) -> Iterator[str]:
    """Two runs beside other loads."""
    loads = ["+".join(result.load.names) if result.load else "none" for result in (before, after)]
    yield from _differs("load", *loads)


def jitter_conditions(before: Jitter, after: Jitter, names: tuple[str, str] = NAMES) -> Iterator[str]:
    """Threshold, CPUs, length, clock, priority; which gaps are not listed."""
    if before.threshold_ns != after.threshold_ns:
        larger = max(before.threshold_ns, after.threshold_ns)
        each = f"{nanoseconds(before.threshold_ns)} {names[0]}, {nanoseconds(after.threshold_ns)} {names[1]}"
        yield f"another threshold: {each}; only gaps over {nanoseconds(larger)} are compared"
    yield from _cpus(before, after, names)
    shorter, longer = sorted((before.duration_s, after.duration_s))
    if longer > shorter * _LONGER:
        lengths = f"{seconds_of(before.duration_s)} {names[0]}, {seconds_of(after.duration_s)} {names[1]}"
        yield f"another length: {lengths}; the longer run had more chance of a rare, long gap"
    yield from _differs("clock", before.clock.source, after.clock.source, names=names)
    first, second = (result.fifo_priority or "ordinary" for result in (before, after))
    yield from _differs("scheduling priority", first, second, names=names)
    for side, result in zip(names, (before, after), strict=True):
        yield from _unseen(side, result)


def set_conditions(side: str, runs: Sequence[Jitter]) -> Iterator[str]:
    """Runs of one side that are not alike, and those that ended early."""
    ways: tuple[tuple[str, Callable[[Jitter], Any]], ...] = (
        ("kernel", lambda run: run.host.kernel),
        ("host", lambda run: run.host.hostname),
        ("CPUs", lambda run: format_cpulist(cpu.cpu for cpu in run.cpus)),
        ("threshold", lambda run: nanoseconds(run.threshold_ns)),
        ("load", lambda run: "+".join(run.load.names) if run.load else "none"),
        ("length", lambda run: f"{run.duration_s:.2g} s"),
    )
    for name, of in ways:
        if len(found := dict.fromkeys(map(of, runs))) > 1:
            yield f"the runs of {side} differ in {name}: {', '.join(found)}"
    if early := sum(run.interrupted for run in runs[1:]):
        yield f"{side}: {early} more runs were interrupted before their time"
    if early := sum(run.ended_by == "until" for run in runs[1:]):
        yield f"{side}: {early} more runs were ended by a gap (--until)"


def _cpus(before: Jitter, after: Jitter, names: tuple[str, str]) -> Iterator[str]:
    sets = [{cpu.cpu for cpu in result.cpus} for result in (before, after)]
    if sets[0] == sets[1]:
        return
    each = f"{format_cpulist(sets[0])} {names[0]}, {format_cpulist(sets[1])} {names[1]}"
    common = format_cpulist(sets[0] & sets[1])
    yield f"other CPUs: {each}; " + (f"only {common} are compared" if common else "none is the same")


def _unseen(side: str, result: Jitter) -> Iterator[str]:
    if result.interrupted:
        yield f"{side} was interrupted before its time"
    if result.load and not result.load.ran:
        yield f"{side}: the load did not run: {result.load.reason}"
    if result.ended_by == "until":
        yield f"{side} was ended by a gap (--until): rates and shares are higher than the host's"
    partial = [cpu for cpu in result.cpus if len(cpu.events) != cpu.interruptions]
    if not partial:
        return
    cpus = named_cpus(cpu.cpu for cpu in partial)
    what = f"{side} does not list every gap of {cpus}, so lengths are good to a histogram's bucket"
    if all(not cpu.events and not cpu.series for cpu in partial):
        yield f"{what}, and the bounds assume that interruptions are independent: bursts make them too narrow"
    else:
        yield f"{what}, and how they come in bursts is judged from the part that is, or from the series"


_ASSUMED = {
    "wake": "messages are independent of each other",
    "feed": "messages are independent of each other; those of one burst, or of one stop, are not, and then the bounds "
    "are too narrow",
    "hedge": "requests are independent of each other; those that wait in one queue are not, and then the bounds are "
    "too narrow",
    "contention": "buffers are independent of each other; those that wait for one lock are not, and then the bounds "
    "are too narrow",
}


def case_conditions(before: CaseTable, after: CaseTable) -> Iterator[str]:
    """Cases that only one run has, or that ran on other CPUs; what was asked for; what the bounds assume."""
    yield from _alone(before, after)
    yield from _differs("scheduling priority", *(result.fifo_priority or "ordinary" for result in (before, after)))
    # Round trips by way of different hosts. Without one, messages stayed where they were: those are other cases.
    if isinstance(before, Wake | Feed) and isinstance(after, Wake | Feed) and before.peer and after.peer:
        yield from _differs("host at the other end", before.peer.address, after.peer.address)
    if isinstance(before, Wake) and isinstance(after, Wake):
        sides = (before, after)
        yield from _differs("size of messages", *(f"{wake.bytes} bytes" for wake in sides))
        yield from _differs("set of descriptors", *(f"{wake.fds} descriptors" for wake in sides))
        yield from _differs("working set", *(f"{wake.dirty_kib} KiB" if wake.dirty_kib else "none" for wake in sides))
        yield from _differs("sender", *("warm" if wake.has_warm_sender else "cold" for wake in sides))
    if isinstance(before, Feed) and isinstance(after, Feed):
        replays = [feed.replay for feed in (before, after)]
        named = [f"{replay.file} at speed {replay.speed:.4g}" if replay else "none" for replay in replays]
        yield from _differs("replayed capture", *named)
    yield from _unusable(before, after)
    if isinstance(before, Feed) and isinstance(after, Feed):
        yield from _other_stamps(before, after)
    yield f"the bounds assume that {_ASSUMED[before.kind]}"


def _other_stamps(before: Feed, after: Feed) -> Iterator[str]:
    """Cases that only one run stamped, or that something else stamped."""
    stamped = {case.key: case.stamped_by for case in before.cases if case.n}
    for case in after.cases:
        sides = {stamped.get(case.key, case.stamped_by): "before", case.stamped_by: "after"} if case.n else {}
        if "nobody" in sides and len(sides) > 1:
            (side,) = (side for who, side in sides.items() if who != "nobody")
            yield f"{case.name}: only {side} has time stamps: on the other side kernel contains wire"
        elif len(sides) > 1:
            each = ", ".join(f"{who}'s {side}" for who, side in sides.items())
            yield f"{case.name}: time stamps of two kinds, {each}: wire and kernel are not the same on both sides"


def _alone(before: CaseTable, after: CaseTable) -> Iterator[str]:
    """Cases that only one run has."""
    for side, own, other in (("before", before, after), ("after", after, before)):
        keys = {case.key for case in other.cases}
        alone = [case.name for case in own.cases if case.key not in keys]
        if alone:
            yield f"only {side}: {'; '.join(alone)}"


def _unusable(before: CaseTable, after: CaseTable) -> Iterator[str]:
    """Runs that are not whole, cases that are void, and cases that ran on other CPUs."""
    for side, result in (("before", before), ("after", after)):
        if result.interrupted:
            yield f"{side} was interrupted before its time"
        yield from (f"{side}: {case.name}: {case.reason}" for case in result.cases if case.is_void)
    later = {case.key: case.cpus for case in after.cases}
    for case in before.cases:
        if later.get(case.key, case.cpus) != case.cpus:
            each = " before, ".join("-".join(map(str, cpus)) for cpus in (case.cpus, later[case.key]))
            yield f"{case.name}: other CPUs: {each} after"
