"""What a trace of the kernel adds to a run of the probe: each gap's cause, the table, how it was done. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from tunectl.cpulist import named_cpus
from tunectl.probe.causes import OUTSIDE, Beyond, Joined, join, table
from tunectl.probe.causes import Event as Happened
from tunectl.probe.raw import Cpu, Run
from tunectl.probe.traceclock import COUNTER, RAW, Line, line_of, problem
from tunectl.probe.tracepages import Kernel, events
from tunectl.shapes import Attribution, Cause, Event, Trace


class CpuTrace(NamedTuple):
    """Of one CPU: the thread that measured there, the pages of the trace buffer, and what never reached them."""

    thread: int
    pages: Sequence[bytes]
    events_lost: int
    is_cut: bool  # what was lost came last
    is_late: bool = False  # the first pages were let go, to keep the last ones
    line: Line | None = None  # to the counter; None where the stamps are its own

    @property
    def error_ticks(self) -> int:
        """How far a stamp may be off."""
        return self.line.error_ticks if self.line else 0

    def at(self, stamp: int) -> int:
        """A stamp in ticks of the counter."""
        return self.line.at(stamp) if self.line else stamp

    def events(self, kernel: Kernel, pages: Sequence[bytes]) -> Iterator[Happened]:
        """Those of these pages, in ticks of the counter."""
        found = events(pages, kernel)
        return self.line.brought(found) if self.line else found


class Traced(NamedTuple):
    """What was traced beside a run; with a `reason` nothing was."""

    reason: str = ""
    kernel: Kernel = Kernel("", {}, "")
    cpus: Mapping[int, CpuTrace] = {}
    buffer_kib: int = 0
    event_cost_ticks: int | None = None  # what tracing adds to an event, caches warm
    left_behind: str = ""  # the instance, where it could not be removed
    clock: str = COUNTER  # of the stamps

    def on_counter(self, run: Run) -> Traced:
        """The same with what brings its stamps to the counter of this run; with the reason where nothing does."""
        if self.reason or self.clock != RAW:
            return self
        if why := problem(run.cpus, run.clock):
            return self._replace(reason=f"the trace cannot be compared with the probe's counter: {why}")
        lines = {cpu.cpu: line_of(cpu, run.clock) for cpu in run.cpus}
        return self._replace(
            cpus={cpu: cpu_trace._replace(line=lines[cpu]) for cpu, cpu_trace in self.cpus.items() if cpu in lines}
        )


class Gaps(NamedTuple):
    """What one CPU's gaps were for: each has the place of its cause among the labels of the run."""

    events: list[Event]
    causes: list[Cause] | UnsetType = UNSET  # where they were traced
    trace: Trace | UnsetType = UNSET


class Attributed(NamedTuple):
    """What a run's gaps were for, CPU by CPU; nothing but the gaps where nobody traced."""

    gaps: list[Gaps]
    method: Attribution | None = None
    labels: Sequence[str] = ("",)
    outside: frozenset[int] = frozenset()  # the labels of gaps that were not the kernel's, first of all
    warnings: Sequence[str] = ()

    @property
    def is_traced(self) -> bool:
        """Does each gap have a cause of its own?"""
        return self.method is not None and self.method.method == "trace"


def attributed(run: Run, traced: Traced | None) -> Attributed:
    """The cause of each gap of a run; `traced` is None where causes were not asked for."""
    if traced is None:
        return Attributed([Gaps(cpu.events) for cpu in run.cpus])
    warnings = list(_warnings(run, traced))
    if traced.reason:
        method = Attribution("counters", traced.reason)
        return Attributed([Gaps(cpu.events) for cpu in run.cpus], method, warnings=warnings)
    joined = [_joined(run, cpu, traced) for cpu in run.cpus]
    labels: dict[str, int] = {}
    named = {labels.setdefault(cause.label, len(labels)): cause for one in joined for cause in one.causes}
    outside = frozenset(place for place, cause in named.items() if cause.first == OUTSIDE.first)
    gaps = [_gaps(run, cpu, traced, one, labels) for cpu, one in zip(run.cpus, joined, strict=True)]
    cost, hz = traced.event_cost_ticks, run.clock.hz
    method = Attribution(
        method="trace",
        clock=traced.clock,
        clock_error_ns=round(max((cpu.error_ticks for cpu in traced.cpus.values()), default=0) * 1e9 / hz, 1),
        buffer_kib=traced.buffer_kib,
        event_cost_ns=None if cost is None else round(cost * 1e9 / hz, 1),
        events=list(traced.kernel.formats),
    )
    return Attributed(gaps, method, list(labels) or [""], outside, warnings)


def _joined(run: Run, cpu: Cpu, traced: Traced) -> Joined:
    trace = traced.cpus[cpu.cpu]
    return join(
        cpu.events,
        trace.events(traced.kernel, trace.pages),
        trace.thread,
        run.clock.hz,
        error_ticks=trace.error_ticks,
        is_fifo=bool(run.fifo_priority),
        is_cut=trace.is_cut,
        has_moved=not cpu.never_moved,
        is_guest=run.machine.is_virtual,
    )


def _gaps(run: Run, cpu: Cpu, traced: Traced, joined: Joined, labels: Mapping[str, int]) -> Gaps:
    number = [labels[cause.label] for cause in joined.causes]
    beyond = Beyond(cpu.events_lost, run.ns(cpu.events_lost_max_ticks))
    return Gaps(
        [(gap[0], gap[1], number[cause]) for gap, cause in zip(cpu.events, joined.of_gap, strict=True)],
        table(cpu.events, joined, run.clock.hz, run.ns(cpu.stolen_ticks), beyond),
        Trace(joined.events, joined.apart, traced.cpus[cpu.cpu].events_lost),
    )


def _warnings(run: Run, traced: Traced) -> Iterator[str]:
    if traced.reason:
        yield (
            f"single interruptions have no named cause: {traced.reason}; only the kernel's counters tell what happened "
            "meanwhile"
        )
    traces = {cpu.cpu: traced.cpus[cpu.cpu] for cpu in run.cpus if cpu.cpu in traced.cpus}
    if lost := [cpu for cpu, trace in traces.items() if trace.events_lost]:
        where = named_cpus(lost)
        yield f"events of the trace were lost on {where}: the causes of interruptions meanwhile are not known"
    if late := [cpu for cpu, trace in traces.items() if trace.is_late]:
        yield (
            f"only the last part of the trace of {named_cpus(late)} was kept: the causes of earlier interruptions are "
            "not known"
        )
    if traced.left_behind:
        yield (
            f"{traced.left_behind} could not be removed (does somebody read it?); the next probe will try again, or "
            "rmdir it"
        )
