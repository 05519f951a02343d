"""What follows from the facts of a run: Python says it, so that it can be tested on values.

The native program measures and writes raw facts. Each step here takes plain values out of them, and gives plain values
back; no step reads the host.
"""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from tunectl.probe import raw
from tunectl.probe.attribution import Traced, attributed
from tunectl.probe.counter import shown_clock
from tunectl.probe.jitter_warnings import shared, unfit, warnings_of
from tunectl.probe.lengths import buckets_ns
from tunectl.probe.periods import THROTTLED, find_periods, pauses_warning
from tunectl.probe.raw import Cpu, Run
from tunectl.probe.stops import stops_of
from tunectl.probe.story import ended_by, story_of

SCHEMA = "tunectl.probe.jitter/1"
GAPS = {"50": 0.5, "99": 0.99, "99.9": 0.999, "99.99": 0.9999}  # the percentiles of a result, and their shares
ARRIVALS = {**GAPS, "99.999": 0.99999}
_BUCKET_PPM = 7813  # how wide a bucket of the histogram is at most, against the values in it


def explained(document: dict[str, Any], traced: Traced | None = None) -> dict[str, Any]:
    """The tunectl.probe.jitter/1 document of what `tunectl-probe jitter` wrote; any other document as it is.

    `traced` is what the kernel was asked for beside that run; None where causes were not asked for.
    """
    if document.get("schema") != raw.SCHEMA:
        return document
    run = raw.read_raw(document)
    told = _told(run, document)
    still = {cpu.cpu for cpu in run.cpus if cpu.never_moved}
    traced = traced.on_counter(run) if traced else None
    told = attributed(told, traced, still) if traced else told
    told |= {"until": story_of(run, told, traced), "simultaneous_stops": stops_of(run, told)}
    return _with_periods(run, told)


def _told(run: Run, document: dict[str, Any]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "tunectl_version": run.tunectl_version,
        "host": run.host,
        "at": run.at,
        "threshold_ns": run.threshold_ns,
        "default_threshold_ns": run.default_threshold_ns,
        "duration_s": round(max((run.seconds(cpu) for cpu in run.cpus), default=0.0), 6),
        "duration_requested_s": run.duration_requested_s,
        "interrupted": run.interrupted,
        "ended_by": ended_by(run),
        "fifo_priority": run.fifo_priority,
        "clock": shown_clock(document["clock"]),
        "warnings": warnings_of(run),
        "budget": {"limits": {}, "verdict": "not-judged", "broken": []},
        "irq_descriptions": run.irq_descriptions,
        "throttled_ns": run.facts.throttled_us * 1000,
        "attribution": None,
        "labels": [""],
        "cpus": [_cpu(run, cpu) for cpu in run.cpus],
        "not_measured": document["not_measured"],
    }


def _cpu(run: Run, cpu: Cpu) -> dict[str, Any]:
    lengths = cpu.lengths()
    return {
        "cpu": cpu.cpu,
        "duration_ns": run.ns(cpu.run_ticks),
        "tsc_start": cpu.tsc_start,
        "tsc_end": cpu.tsc_end,
        "loops": cpu.quiet_turns + cpu.interruptions,
        "loop_ns": _loop_ns(run, cpu),
        "interruptions": cpu.interruptions,
        "stolen_ns": run.ns(cpu.stolen_ticks),
        "stolen_ppm": round(cpu.stolen_ticks * 1e6 / cpu.run_ticks, 3) if cpu.run_ticks else 0.0,
        "max_ns": run.ns(cpu.max_ticks),
        "gap_ns": {name: run.ns(lengths.percentile(share)) for name, share in GAPS.items()},
        "arrival_ns": {
            name: run.ns(lengths.arrival_percentile(share, cpu.run_ticks)) for name, share in ARRIVALS.items()
        },
        "percentile_error_ppm": _BUCKET_PPM if cpu.events_lost else 0,
        "conservation_ppm": None if run.clock.is_the_kernels else round(raw.conservation_ppm(cpu, run.clock.hz), 3),
        "core_khz": _core_khz(run, cpu),
        "unfit": unfit(run, cpu),
        "shared": shared(run, cpu),
        "counters": _counters(run, cpu),
        "histogram": list(buckets_ns((row[:3] for row in cpu.histogram), run.ns)),
        "events_lost": cpu.events_lost,
        "events_lost_max_ns": run.ns(cpu.events_lost_max_ticks),
        "series": _series(run, cpu),
        "events": [list(event) for event in cpu.events],
    }


def _with_periods(run: Run, told: dict[str, Any]) -> dict[str, Any]:
    """What returns, with the causes that its gaps have by now."""
    labels = told["labels"]
    for cpu in told["cpus"]:
        cpu |= _periods(run, cpu, labels)
    paused = [cpu["cpu"] for cpu in told["cpus"] if any(one["name"] == THROTTLED for one in cpu["periods"])]
    if run.fifo_priority and paused:
        told["warnings"].append(pauses_warning(paused))
    return told


def _periods(run: Run, cpu: dict[str, Any], labels: list[str]) -> dict[str, Any]:
    """In the time that the list of events covers, and how far of that was searched."""
    events = [(start, end, labels[label]) for start, end, label in cpu["events"]]
    is_cut = bool(events and cpu["events_lost"])
    begin, end, hz = cpu["tsc_start"], events[-1][0] if is_cut else cpu["tsc_end"], run.clock.hz
    found = find_periods(events, begin, end, hz, run.fifo_priority > 0)
    is_short = found.searched_ns is None and is_cut
    return {
        "periods": to_builtins(found.periods),
        "periods_searched_ns": run.ns(end - begin) if is_short else found.searched_ns,
    }


def _loop_ns(run: Run, cpu: Cpu) -> dict[str, float]:
    """The core's clock may rise after the step was measured; a mean below it is then the better bound.

    Where one gap took the whole run, no turn of it was quiet: the step is all that is known.
    """
    tick_ns = 1e9 / run.clock.hz
    quiet_ticks = cpu.run_ticks - cpu.stolen_ticks
    mean = quiet_ticks / cpu.quiet_turns if cpu.quiet_turns else cpu.step_ticks
    named = {"mean": mean, "min": min(mean, cpu.step_ticks), "recording": cpu.recording_ticks}
    return {name: round(ticks * tick_ns, 3) for name, ticks in named.items()}


def _core_khz(run: Run, cpu: Cpu) -> dict[str, int]:
    named = {"before": cpu.cycles_per_tick_before, "after": cpu.cycles_per_tick_after}
    return {name: int(cycles * run.clock.hz / 1e3) for name, cycles in named.items()}


def _counters(run: Run, cpu: Cpu) -> dict[str, Any]:
    counted = cpu.counters
    switches = counted.context_switches
    return {
        "irq": run.counted.moved("irq", cpu.cpu),
        "softirq": run.counted.moved("softirq", cpu.cpu),
        "context_switches": {"voluntary": switches.voluntary, "involuntary": switches.involuntary},
        "page_faults": counted.page_faults,
        "steal_ns": run.steal_ms(cpu.cpu) * 1_000_000,
    }


def _series(run: Run, cpu: Cpu) -> dict[str, Any]:
    series = cpu.series
    intervals = [[gaps, run.ns(stolen), run.ns(longest)] for gaps, stolen, longest in series.intervals]
    return {"tsc_start": series.tsc_start, "interval_s": series.interval_s, "intervals": intervals}
