"""What follows from the facts of a run: Python says it, so that it can be tested on values.

The native program measures and writes raw facts. Each step here takes types and gives types; no step reads the host.
"""

from typing import Any

from msgspec.structs import replace

from tunectl.probe import raw
from tunectl.probe.attribution import Attributed, Gaps, Traced, attributed
from tunectl.probe.counter import shown_clock
from tunectl.probe.jitter_warnings import shared, unfit, warnings_of
from tunectl.probe.lengths import buckets_ns
from tunectl.probe.periods import THROTTLED, Found, Short, find_periods, pauses_warning
from tunectl.probe.raw import Run
from tunectl.probe.stops import stops_of
from tunectl.probe.story import ended_by, story_of
from tunectl.shapes import Clock, CoreClock, Counters, Cpu, Jitter, LoopNs, Series, Switches, plain, typed

SCHEMA = "tunectl.probe.jitter/1"
GAPS = {"50": 0.5, "99": 0.99, "99.9": 0.999, "99.99": 0.9999}  # the percentiles of a result, and their shares
ARRIVALS = {**GAPS, "99.999": 0.99999}
_BUCKET_PPM = 7813  # how wide a bucket of the histogram is at most, against the values in it


def explained(document: dict[str, Any], traced: Traced | None = None) -> dict[str, Any]:
    """The tunectl.probe.jitter/1 document of what `tunectl-probe jitter` wrote; any other document as it is."""
    if document.get("schema") != raw.SCHEMA:
        return document
    result: dict[str, Any] = plain(explain(document, traced))
    return result


def explain(document: dict[str, Any], traced: Traced | None = None) -> Jitter:
    """The result of a run of `tunectl-probe jitter`; TunectlError, naming the place, for a document that is none.

    `traced` is what the kernel was asked for beside that run; None where causes were not asked for. A result stays one.
    """
    if document.get("schema") == SCHEMA:
        return typed(document, Jitter, SCHEMA)
    run = raw.read_raw(document)
    traced = traced.on_counter(run) if traced else None
    found = attributed(run, traced)
    cpus = [_cpu(run, cpu, gaps, found) for cpu, gaps in zip(run.cpus, found.gaps, strict=True)]
    throttled = [cpu.cpu for cpu in cpus if any(period.name == THROTTLED for period in cpu.periods)]
    paused = throttled if run.fifo_priority else []
    return Jitter(
        tunectl_version=run.tunectl_version,
        host=run.host,
        at=run.at,
        threshold_ns=run.threshold_ns,
        default_threshold_ns=run.default_threshold_ns,
        duration_s=round(max((run.seconds(cpu) for cpu in run.cpus), default=0.0), 6),
        duration_requested_s=run.duration_requested_s,
        interrupted=run.interrupted,
        ended_by=ended_by(run),
        fifo_priority=run.fifo_priority,
        clock=typed(shown_clock(document["clock"]), Clock, raw.SCHEMA),
        warnings=[*warnings_of(run), *found.warnings, *([pauses_warning(paused)] if paused else [])],
        irq_descriptions=run.irq_descriptions,
        throttled_ns=None if run.facts.throttled_us is None else run.facts.throttled_us * 1000,
        attribution=found.method,
        labels=list(found.labels),
        cpus=cpus,
        not_measured=run.not_measured,
        until=story_of(run, found, traced),
        simultaneous_stops=stops_of(run, found),
    )


def _cpu(run: Run, cpu: raw.Cpu, gaps: Gaps, found: Attributed) -> Cpu:
    lengths, periods = cpu.lengths(), _periods(run, cpu, gaps, found)
    switches = cpu.counters.context_switches
    cycles, intervals = (cpu.cycles_per_tick_before, cpu.cycles_per_tick_after), cpu.series.intervals
    return Cpu(
        cpu=cpu.cpu,
        duration_ns=run.ns(cpu.run_ticks),
        tsc_start=cpu.tsc_start,
        tsc_end=cpu.tsc_end,
        loops=cpu.quiet_turns + cpu.interruptions,
        loop_ns=_loop_ns(run, cpu),
        interruptions=cpu.interruptions,
        stolen_ns=run.ns(cpu.stolen_ticks),
        stolen_ppm=round(cpu.stolen_ticks * 1e6 / cpu.run_ticks, 3) if cpu.run_ticks else 0.0,
        max_ns=run.ns(cpu.max_ticks),
        gap_ns={name: run.ns(lengths.percentile(share)) for name, share in GAPS.items()},
        arrival_ns={name: run.ns(lengths.arrival_percentile(share, cpu.run_ticks)) for name, share in ARRIVALS.items()},
        percentile_error_ppm=_BUCKET_PPM if cpu.events_lost else 0,
        conservation_ppm=None if run.clock.is_the_kernels else round(raw.conservation_ppm(cpu, run.clock.hz), 3),
        core_khz=CoreClock(*(int(per_tick * run.clock.hz / 1e3) for per_tick in cycles)),
        unfit=list(unfit(run, cpu)),
        shared=shared(run, cpu),
        counters=Counters(
            irq=run.counted.moved("irq", cpu.cpu),
            softirq=run.counted.moved("softirq", cpu.cpu),
            context_switches=Switches(switches.voluntary, switches.involuntary),
            page_faults=cpu.counters.page_faults,
            steal_ns=run.steal_ms(cpu.cpu) * 1_000_000,
        ),
        histogram=[(low, high, count) for low, high, count in buckets_ns((row[:3] for row in cpu.histogram), run.ns)],
        events_lost=cpu.events_lost,
        events_lost_max_ns=run.ns(cpu.events_lost_max_ticks),
        series=Series(
            tsc_start=cpu.series.tsc_start,
            interval_s=cpu.series.interval_s,
            intervals=[(count, run.ns(stolen), run.ns(longest)) for count, stolen, longest in intervals],
        ),
        complete_until_ns=run.ns(run.listed_until(cpu) - cpu.tsc_start) if cpu.events_lost else None,
        events=gaps.events,
        causes=gaps.causes,
        trace=gaps.trace,
        periods=periods.periods,
        periods_searched_ns=periods.searched_ns,
    )


def _periods(run: Run, cpu: raw.Cpu, gaps: Gaps, found: Attributed) -> Found:
    """In the time that the list of events covers, and how far of that was searched."""
    events = [(start, end, found.labels[label]) for start, end, label in gaps.events]
    begin, end = cpu.tsc_start, run.listed_until(cpu, run.long_ticks)
    short = Short(run.long_ticks, run.listed_until(cpu))
    periods = find_periods(events, begin, end, run.clock.hz, run.fifo_priority > 0, short)
    error = (run.clock.error_ppm or run.clock.initial_error_ppm) / 1e6
    known = [
        replace(period, error_ns=round(period.error_ns + error * period.period_ns, 3)) for period in periods.periods
    ]
    is_short = periods.searched_ns is None and end < cpu.tsc_end
    return Found(known, max(run.ns(end - begin), 1) if is_short else periods.searched_ns)


def _loop_ns(run: Run, cpu: raw.Cpu) -> LoopNs:
    """The core's clock may rise after the step was measured; a mean below it is then the better bound.

    Where one gap took the whole run, no turn of it was quiet: the step is all that is known.
    """
    tick_ns = 1e9 / run.clock.hz
    quiet_ticks = cpu.run_ticks - cpu.stolen_ticks
    mean = quiet_ticks / cpu.quiet_turns if cpu.quiet_turns else cpu.step_ticks
    named = {"mean": mean, "min": min(mean, cpu.step_ticks), "recording": cpu.recording_ticks}
    return LoopNs(**{name: round(ticks * tick_ns, 3) for name, ticks in named.items()})
