"""What a trace of the kernel adds to a run of the probe: each gap's cause, the table, how it was done. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from tunectl.cpulist import named_cpus
from tunectl.probe.causes import Beyond, Joined, Row, join, table
from tunectl.probe.tracepages import Kernel, events


class CpuTrace(NamedTuple):
    """Of one CPU: the thread that measured there, the pages of the trace buffer, and what never reached them."""

    thread: int
    pages: Sequence[bytes]
    events_lost: int
    is_cut: bool  # what was lost came last
    is_late: bool = False  # the first pages were let go, to keep the last ones


class Traced(NamedTuple):
    """What was traced beside a run; with a `reason` nothing was."""

    reason: str = ""
    kernel: Kernel = Kernel("", {}, "")
    cpus: Mapping[int, CpuTrace] = {}
    buffer_kib: int = 0
    event_cost_ticks: int | None = None  # what tracing adds to an event, caches warm
    left_behind: str = ""  # the instance, where it could not be removed


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
    cost = traced.event_cost_ticks
    return {
        "method": "trace",
        "reason": "",
        "clock": "x86-tsc",
        "buffer_kib": traced.buffer_kib,
        "event_cost_ns": None if cost is None else round(cost * 1e9 / raw["clock"]["hz"], 1),
        "events": list(traced.kernel.formats),
    }


def _explained(
    raw: Mapping[str, Any], cpu: dict[str, Any], traced: Traced, labels: dict[str, int], has_moved: bool
) -> dict[str, Any]:
    """One CPU with the causes of its gaps. `labels` are those of the document so far; new ones are added."""
    trace, gaps = traced.cpus[cpu["cpu"]], cpu["events"]
    joined = join(
        gaps,
        events(trace.pages, traced.kernel),
        trace.thread,
        raw["clock"]["hz"],
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
