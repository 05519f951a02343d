"""The gap that ended a run (--until): when, for how long, what held the CPU in it, and what happened elsewhere. Pure.

Of the other CPUs their gaps at that time are told. Without a trace of the kernel the story says what it lacks.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter

from tunectl.cpulist import named_cpus
from tunectl.probe.attribution import Attributed, Traced
from tunectl.probe.causes import Event, Happening, Lost, State, Switch, join
from tunectl.probe.raw import Run
from tunectl.shapes import Attribution, Elsewhere, Until, WaitedFor

BEFORE = 16  # events before the gap
WITHIN = 240  # events in it: the first half and the last
_PAGES_BEFORE = 2  # a page holds some fifty events and more
Stamps = tuple[int, int]


def ended_by(run: Run) -> str:
    """What ended the run: "until", "signal" or "duration"."""
    if run.until and run.until.reached:
        return "until"
    return "signal" if run.interrupted else "duration"


def story_of(run: Run, attributed: Attributed, traced: Traced | None) -> Until | None:
    """`until` of a run whose gaps have their causes: what was asked for, and the gap; None if nothing was."""
    if run.until is None:
        return None
    if not run.until.reached:
        return Until(run.until.least_ns)
    cpu, start, end = run.until.reached
    traced = None if traced is None or traced.reason else traced
    seen = {cpu.cpu: _Seen(run, attributed, place, traced) for place, cpu in enumerate(run.cpus)}
    own, others = seen.pop(cpu, None), list(seen.values())
    begun = min((cpu.series.tsc_start for cpu in run.cpus), default=start)
    happened = own.happened(start, end) if own else []
    within = [row for row in happened if row[0] >= 0]
    gap = WaitedFor(
        cpu=cpu,
        tsc_start=start,
        tsc_end=end,
        at_ns=run.ns(max(start - begun, 0)),
        length_ns=run.ns(end - start),
        cause=own.cause((start, end)) if own else "",
        before=[row for row in happened if row[0] < 0][-BEFORE:],
        events=within if len(within) <= WITHIN else within[: WITHIN // 2] + within[-WITHIN // 2 :],
        events_left_out=max(len(within) - WITHIN, 0),
        others=[
            Elsewhere(other.cpu.cpu, list(other.gaps_at(start, end))) for other in others if other.measured(start, end)
        ],
        unseen=list(_unseen(run.until.reached, attributed.method, own, others)),
    )
    return Until(run.until.least_ns, gap)


class _Seen:
    """The gaps of one CPU, and its trace where there is one."""

    def __init__(self, run: Run, attributed: Attributed, place: int, traced: Traced | None) -> None:
        self.cpu = cpu = run.cpus[place]
        self._run, self._labels, self._listed = run, attributed.labels, attributed.gaps[place].events
        self._kernel = traced.kernel if traced else None
        self._trace = traced.cpus[cpu.cpu] if traced else None

    def cause(self, gap: Stamps) -> str:
        """As the result says; of a gap that is not listed, as the trace says; "" without one."""
        at = bisect_left(self._listed, gap[0], key=itemgetter(0))
        if at < len(self._listed) and self._listed[at][0] == gap[0]:
            return self._labels[self._listed[at][2]]
        if self._trace is None:
            return ""
        events, moved = self._around(*gap), not self.cpu.never_moved
        error, hz = self._trace.error_ticks, self._run.clock.hz
        return join([gap], events, self._trace.thread, hz, has_moved=moved, error_ticks=error).causes[0].label

    def happened(self, start: int, end: int) -> list[tuple[int, str]]:
        """What the trace has of this CPU shortly before that gap, and in it."""
        own = self._trace.thread if self._trace else 0
        return [(self._since(start, at), _said(what, own)) for at, what in self._around(start, end)]

    def gaps_at(self, start: int, end: int) -> Iterator[tuple[int, int, str]]:
        """(ns from the begin of that gap, length in ns, cause) of each gap of this CPU that has any of its time."""
        listed = [(one[0], one[1]) for one in self._listed[bisect_right(self._listed, start, key=itemgetter(1)) :]]
        for gap in sorted([*listed, *self.cpu.latest]):
            if gap[0] < end and gap[1] > start:
                yield self._since(start, gap[0]), self._run.ns(gap[1] - gap[0]), self.cause(gap)

    def measured(self, start: int, end: int) -> bool:
        """At any of that time."""
        return self.cpu.tsc_start < end and self.cpu.tsc_end > start

    def has_forgotten(self, start: int) -> bool:
        """Was the list full by then, and is what came after it not kept any more?"""
        kept = self.cpu.latest
        return self.cpu.events_lost > len(kept) and (not kept or kept[0][0] > start)

    def _around(self, start: int, end: int) -> list[Event]:
        if self._trace is None or self._kernel is None:
            return []
        trace, last = self._trace, end + self._trace.error_ticks
        stamps = [trace.at(int.from_bytes(page[:8], "little")) for page in trace.pages]
        first = max(bisect_right(stamps, start) - 1 - _PAGES_BEFORE, 0)
        pages = trace.pages[first : bisect_right(stamps, last)]
        return [event for event in trace.events(self._kernel, pages) if event[0] <= last]

    def _since(self, start: int, at: int) -> int:
        """Whole ns; below 0 for what was before."""
        return self._run.ns(at - start) if at >= start else -max(self._run.ns(start - at), 1)


_LEFT = {
    State.READY: "{} has the CPU",
    State.STOPPED: "a signal stops the probe, and {} has the CPU",
    State.ASLEEP: "the probe sleeps, and {} has the CPU",
}


def _said(what: Happening, own: int) -> str:
    """An event in words."""
    if isinstance(what, Lost):
        return "events of the trace were lost before this"
    if not isinstance(what, Switch):
        return what.cause.name
    if what.next == own:
        return "the probe has the CPU again"
    who = what.cause.name if what.next else "nobody"
    return _LEFT[what.state if what.left == own else State.READY].format(who)


def _unseen(
    reached: Sequence[int], method: Attribution | None, own: _Seen | None, others: Sequence[_Seen]
) -> Iterator[str]:
    cpu, start, end = reached
    if method is None:
        yield "what held the CPU was not traced: --attribute, as root, shows each event of the kernel in the gap"
    elif method.method != "trace":
        yield f"what held the CPU is not known: {method.reason}"
    if own is None:
        yield f"CPU {cpu} was then left to somebody else, and its figures with it"
    if not others:
        yield "no other CPU was probed: what happened there at that time is not seen (--cpus)"
    if absent := [other.cpu.cpu for other in others if other.cpu.tsc_start > start or other.cpu.tsc_end < end]:
        yield f"{named_cpus(absent)} did not measure for all of that time"
    if forgotten := [other.cpu.cpu for other in others if other.has_forgotten(start)]:
        yield f"the gaps of {named_cpus(forgotten)} at that time are not kept any more (--events)"
