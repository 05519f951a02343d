"""What a trace of the kernel adds to a run of the probe: each gap's cause, the table, how it was done. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tunectl.cpulist import named_cpus
from tunectl.probe.causes import Beyond, Event, Joined, Row, join, table
from tunectl.probe.raw import Run
from tunectl.probe.traceclock import COUNTER, RAW, Line, line_of, problem
from tunectl.probe.tracepages import Kernel, events


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

    def events(self, kernel: Kernel, pages: Sequence[bytes]) -> Iterator[Event]:
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
            cpus={cpu: one._replace(line=lines[cpu]) for cpu, one in self.cpus.items() if cpu in lines}
        )


def attributed(raw: dict[str, Any], traced: Traced, still: Collection[int] = ()) -> dict[str, Any]:
    """The same document with `attribution`, `labels`, `causes` and `trace` of each CPU, and warnings.

    `still` are the CPUs whose thread was never moved, as the kernel counted.
    """
    method = _method(raw, traced)
    warnings = [*raw["warnings"], *_warnings(raw, traced)]
    if traced.reason:
        return {**raw, "attribution": method, "warnings": warnings}
    labels: dict[str, int] = {}
    cpus = [_explained(raw, cpu, traced, labels, cpu["cpu"] not in still) for cpu in raw["cpus"]]
    return {**raw, "attribution": method, "warnings": warnings, "labels": list(labels) or [""], "cpus": cpus}


def _method(raw: Mapping[str, Any], traced: Traced) -> dict[str, Any]:
    if traced.reason:
        return {"method": "counters", "reason": traced.reason}
    cost, hz = traced.event_cost_ticks, raw["clock"]["hz"]
    return {
        "method": "trace",
        "reason": "",
        "clock": traced.clock,
        "clock_error_ns": round(max((one.error_ticks for one in traced.cpus.values()), default=0) * 1e9 / hz, 1),
        "buffer_kib": traced.buffer_kib,
        "event_cost_ns": None if cost is None else round(cost * 1e9 / hz, 1),
        "events": list(traced.kernel.formats),
    }


def _explained(
    raw: Mapping[str, Any], cpu: dict[str, Any], traced: Traced, labels: dict[str, int], has_moved: bool
) -> dict[str, Any]:
    """One CPU with the causes of its gaps. `labels` are those of the document so far; new ones are added."""
    trace, gaps = traced.cpus[cpu["cpu"]], cpu["events"]
    joined = join(
        gaps,
        trace.events(traced.kernel, trace.pages),
        trace.thread,
        raw["clock"]["hz"],
        error_ticks=trace.error_ticks,
        is_fifo=bool(raw["fifo_priority"]),
        is_cut=trace.is_cut,
        has_moved=has_moved,
    )
    number = [labels.setdefault(cause.label, len(labels)) for cause in joined.causes]
    rows = table(
        gaps, joined, raw["clock"]["hz"], cpu["stolen_ns"], Beyond(cpu["events_lost"], cpu["events_lost_max_ns"])
    )
    return {
        **cpu,
        "events": [[gap[0], gap[1], number[cause]] for gap, cause in zip(gaps, joined.of_gap, strict=True)],
        "causes": [_row(row) for row in rows],
        "trace": _trace(joined, trace),
    }


def _row(row: Row) -> dict[str, Any]:
    first = row.cause.first
    return {
        "cause": row.cause.label,
        "kind": first.kind.value,
        "name": first.name,
        "count": row.count,
        "total_ns": row.total_ns,
        "max_ns": row.max_ns,
    }


def _trace(joined: Joined, trace: CpuTrace) -> dict[str, int]:
    return {"events": joined.events, "events_apart": joined.apart, "events_lost": trace.events_lost}


def _warnings(raw: Mapping[str, Any], traced: Traced) -> list[str]:
    found = []
    if traced.reason:
        found.append(
            f"single interruptions have no named cause: {traced.reason}; only the kernel's counters tell what happened "
            "meanwhile"
        )
    if lost := [cpu["cpu"] for cpu in raw["cpus"] if cpu["cpu"] in traced.cpus and traced.cpus[cpu["cpu"]].events_lost]:
        found.append(
            f"events of the trace were lost on {named_cpus(lost)}: the causes of interruptions meanwhile are not known"
        )
    if late := [cpu["cpu"] for cpu in raw["cpus"] if cpu["cpu"] in traced.cpus and traced.cpus[cpu["cpu"]].is_late]:
        found.append(
            f"only the last part of the trace of {named_cpus(late)} was kept: the causes of earlier interruptions are "
            "not known"
        )
    if traced.left_behind:
        found.append(
            f"{traced.left_behind} could not be removed (does somebody read it?); the next probe will try again, or "
            "rmdir it"
        )
    return found
