"""Does the probe see what it should? Interruptions made on purpose, held against the gaps that it recorded. Pure.

`injecting` has them made and recorded; what that gave is judged here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median_high
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tunectl import shapes
from tunectl.probe.explain import ARRIVALS, GAPS
from tunectl.probe.jitter_warnings import CONSERVED_PPM
from tunectl.probe.lengths import Lengths
from tunectl.probe.raw import Clock, Cpu, conservation_ppm, read_raw
from tunectl.shapes import Count
from tunectl.wording import nanoseconds, ppm

SCHEMA = "tunectl.probe.selftest/1"
_SHORTFALL_NS = 50
_STOP_ERROR_NS = 1_000_000

Gap = tuple[int, int]  # begin and end, in ticks


class Phase(msgspec.Struct, frozen=True):
    """One kind of interruption. What a phase that did not run lacks is empty."""

    name: str
    kind: str
    asked_ns: int
    injected: int
    error: str = ""  # why it did not run
    recorded: Cpu | None = None  # of the CPU that was interrupted; None where it did not run
    truths: list[Gap] = []
    stopped_ticks: Gap = (0, 0)  # how long the stop took at least, and at most, but for waited_ns
    waited_ns: int = 0


class Spread(msgspec.Struct, frozen=True):
    """A gap's length less the known one: the ways in and out of the kernel, and whatever else came meanwhile."""

    min: int
    median: int
    max: int


class JudgedPhase(msgspec.Struct, frozen=True, kw_only=True):
    """A phase, and which of its interruptions were found. Of one that did not run, and of a stop, much is left out."""

    name: str
    kind: Annotated[
        str,
        Meta(
            description="preemption: a SCHED_FIFO thread takes the CPU for asked_ns. ipi: membarrier(2) from another "
            "CPU. count: many short preemptions in a row. loss: more of them than the list of gaps has room for. "
            "stop: the whole process is stopped and continued.",
            extra_json_schema={"enum": ["preemption", "ipi", "count", "loss", "stop"]},
        ),
    ]
    asked_ns: Annotated[Count, Meta(description="Each interruption is at least so long; 0: as short as they come.")]
    injected: Count
    outcome: Literal["passed", "failed", "not-run"]
    reason: Annotated[str, Meta(description="Why it did not pass; else empty.")]
    found: Annotated[Count | UnsetType, Meta(description="In a listed gap.")] = UNSET
    missed: Annotated[Count | UnsetType, Meta(description="In none, though the list had room.")] = UNSET
    counted_as_lost: Annotated[Count | UnsetType, Meta(description="After the list was full.")] = UNSET
    gaps_with_them: Annotated[
        Count | UnsetType, Meta(description="Fewer than found where the CPU did not come back between two.")
    ] = UNSET
    gaps_total: Count | UnsetType = UNSET
    gaps_lost: Count | UnsetType = UNSET
    shortest_gap_ns: Count | UnsetType = UNSET
    shortfall_ns: Annotated[
        Count | UnsetType, Meta(description="The most that a gap left out of a known interruption; the bar is 50 ns.")
    ] = UNSET
    length_error_ns: Spread | UnsetType = UNSET
    account_is_exact: Annotated[
        bool | UnsetType, Meta(description="Recorder and loop, which share no variable, agree on every turn and tick.")
    ] = UNSET
    conservation_ppm: Annotated[
        float | UnsetType | None,
        Meta(description="Loops and gaps against the run's length on CLOCK_MONOTONIC_RAW; the bar is 1000."),
    ] = UNSET
    truth_ns: Annotated[Count | UnsetType, Meta(description="How long the process was stopped at least.")] = UNSET
    max_ns: Count | UnsetType = UNSET
    max_error_ns: Annotated[
        Count | UnsetType, Meta(description="The longest gap lies so far outside of the stop; the bar is 1 ms.")
    ] = UNSET
    percentile_error_ns: Annotated[
        Count | UnsetType, Meta(description="The same, the worst of all percentiles of gaps and arrivals.")
    ] = UNSET


class Selftest(msgspec.Struct, frozen=True, kw_only=True):
    """What `tunectl probe selftest` found of interruptions of known length at known times."""

    cpu: Annotated[Count, Meta(description="The one that was interrupted.")]
    threshold_ns: Annotated[Count, Meta(description="The shortest gap that counts, as in tunectl.probe.jitter/1.")]
    clock: shapes.Clock
    passed: Annotated[bool, Meta(description="Every phase passed. A phase that could not run is no pass.")]
    vouched_ns: Annotated[
        int | None, Meta(description="From this length on every known interruption was found; null for none.")
    ]
    phases: Annotated[list[JudgedPhase], Meta(min_length=1)]


def is_exact(cpu: Cpu) -> bool:
    """The recorder's account against the loop's own, which share no variable.

    Every turn that was no quiet one is a gap, or part of one, and all ticks but those of quiet turns are in gaps. A gap
    lost without being counted breaks both.
    """
    return (
        cpu.turns - cpu.quiet_turns == cpu.interruptions + cpu.turns_merged + cpu.steps_back
        and cpu.run_ticks == cpu.quiet_ticks + cpu.stolen_ticks
        and cpu.interruptions == len(cpu.events) + cpu.events_lost
    )


@dataclass
class Recall:
    """What became of the known interruptions. Lengths in ticks."""

    found: int = 0  # in a listed gap
    beyond: int = 0  # after the list of gaps was full, and gaps were counted as lost
    missed: int = 0  # neither
    gaps: int = 0  # listed gaps that hold any of them
    shortest: int = 0  # gap with a known interruption in it
    shortfall: int = 0  # the most that a gap left out of the truth
    errors: list[int] = field(default_factory=list)  # the gap's length less the truth's, ascending


def judged(document: dict[str, Any], cpu: int, phases: Sequence[Phase]) -> dict[str, Any]:
    """The tunectl.probe.selftest/1 document of these phases, and of what the program wrote in one of them."""
    clock = read_raw(document).clock
    found = [_phase(phase, clock) for phase in phases]
    passed = [phase for phase in found if phase.outcome == "passed" and phase.kind in ("ipi", "preemption")]
    # The shortest interruption of which this run found every one.
    vouched = (int(phase.shortest_gap_ns or 0) if phase.kind == "ipi" else phase.asked_ns for phase in passed)
    selftest = Selftest(
        cpu=cpu,
        threshold_ns=document["threshold_ns"],
        clock=document["clock"],
        passed=all(phase.outcome == "passed" for phase in found),
        vouched_ns=next(vouched, None),
        phases=found,
    )
    kept = {name: document[name] for name in ("tunectl_version", "host", "at")}
    return {"schema": SCHEMA, **kept, **shapes.fields_of(selftest)}


def _phase(phase: Phase, clock: Clock) -> JudgedPhase:
    head: Any = {"name": phase.name, "kind": phase.kind, "asked_ns": phase.asked_ns, "injected": phase.injected}
    if phase.recorded is None:
        return JudgedPhase(**head, outcome="not-run", reason=phase.error)
    judge = _stop if phase.kind == "stop" else _injected
    figures, reason = judge(phase, phase.recorded, clock)
    return JudgedPhase(**head, outcome="failed" if reason else "passed", reason=reason, **figures)


def _injected(phase: Phase, cpu: Cpu, clock: Clock) -> tuple[dict[str, Any], str]:
    tick_ns = 1e9 / clock.hz
    gaps = [(start, end) for start, end, _ in cpu.events]
    found = recall(phase.truths, gaps, cpu.events_lost, cpu.complete_until)
    conserved = conservation_ppm(cpu, clock.hz)
    figures: dict[str, Any] = {
        "found": found.found,
        "missed": found.missed,
        "counted_as_lost": found.beyond,
        "gaps_with_them": found.gaps,
        "gaps_total": cpu.interruptions,
        "gaps_lost": cpu.events_lost,
        "shortest_gap_ns": round(found.shortest * tick_ns),
    }
    if phase.kind != "ipi":  # the truth of an interrupt from another CPU is a bracket around it, and no length
        errors = found.errors or [0]
        figures["shortfall_ns"] = round(found.shortfall * tick_ns)
        spread = errors[0], median_high(errors), errors[-1]
        figures["length_error_ns"] = Spread(*(round(ticks * tick_ns) for ticks in spread))
    figures["account_is_exact"] = is_exact(cpu)
    figures["conservation_ppm"] = None if clock.is_the_kernels else round(conserved, 3)
    reasons = _wrong(phase, cpu, found, tick_ns, 0.0 if clock.is_the_kernels else conserved)
    return figures, next(reasons, "")


def _wrong(phase: Phase, cpu: Cpu, found: Recall, tick_ns: float, conserved_ppm: float) -> Iterator[str]:
    """What is wrong first is the reason."""
    shortfall_ns = found.shortfall * tick_ns
    if not is_exact(cpu):
        yield "the recorder's account differs from the loop's: gaps went missing without being counted"
    if abs(conserved_ppm) > CONSERVED_PPM:
        yield f"loops and gaps miss the run's length by {ppm(conserved_ppm)}"
    if found.missed:
        yield f"{found.missed} of {len(phase.truths)} were not found"
    if phase.kind != "ipi" and shortfall_ns > _SHORTFALL_NS:
        yield f"a gap was {nanoseconds(shortfall_ns)} shorter than the truth"
    if phase.kind in ("preemption", "ipi") and found.beyond:
        yield "this host interrupts so often that the list of gaps was full before the end"
    if phase.kind == "loss" and not cpu.events_lost:
        yield "the list of gaps was never full: nothing had to be counted as lost"


def recall(truths: Sequence[Gap], gaps: Sequence[Gap], lost: int, complete_until: int = 0) -> Recall:
    """Each truth against the listed gap that overlaps it most, in order of time; `lost` gaps are beyond the list.

    All gaps before `complete_until` are listed; 0: the list was cut behind its last one.
    """
    result = Recall()
    listed_until = complete_until or (gaps[-1][1] if gaps else 0)
    at, last = 0, -1
    for truth in truths:
        while at < len(gaps) and gaps[at][1] <= truth[0]:
            at += 1
        place = _best(truth, gaps, at)
        if place is None:
            is_beyond = bool(lost) and truth[0] >= listed_until
            result.beyond += is_beyond
            result.missed += not is_beyond
            continue
        length = gaps[place][1] - gaps[place][0]
        result.found += 1
        result.gaps += place != last
        result.shortest = min(result.shortest or length, length)
        result.shortfall = max(result.shortfall, truth[1] - truth[0] - _overlap(truth, gaps[place]))
        result.errors.append(length - (truth[1] - truth[0]))
        last = place
    result.errors.sort()
    return result


def _best(truth: Gap, gaps: Sequence[Gap], at: int) -> int | None:
    best = None
    while at < len(gaps) and gaps[at][0] < truth[1]:
        if best is None or _overlap(truth, gaps[at]) > _overlap(truth, gaps[best]):
            best = at
        at += 1
    return best


def _overlap(one: Gap, other: Gap) -> int:
    return max(min(one[1], other[1]) - max(one[0], other[0]), 0)


def _stop(phase: Phase, cpu: Cpu, clock: Clock) -> tuple[dict[str, Any], str]:
    """One stop of known length: how far are the longest gap, and each percentile, from what it explains?"""
    tick_ns = 1e9 / clock.hz
    least_ns, most_ns = phase.stopped_ticks[0] * tick_ns, phase.stopped_ticks[1] * tick_ns + phase.waited_ns
    max_ns = cpu.max_ticks * tick_ns
    max_error = _outside(max_ns, least_ns, most_ns)
    percentile_error = max(_percentile_errors(cpu, tick_ns, least_ns, most_ns), default=0.0)
    named = {"truth_ns": least_ns, "max_ns": max_ns, "max_error_ns": max_error, "percentile_error_ns": percentile_error}
    figures = {name: round(value) for name, value in named.items()}
    if max_error > _STOP_ERROR_NS:
        return figures, f"the longest gap is {nanoseconds(max_error)} off"
    if percentile_error > _STOP_ERROR_NS:
        return figures, f"a percentile is {nanoseconds(percentile_error)} off"
    return figures, ""


def _percentile_errors(cpu: Cpu, tick_ns: float, least_ns: float, most_ns: float) -> Iterator[float]:
    """A single gap of length L dominates: P(wait > x) = (L - x) / run as long as x is longer than every other gap.

    So each percentile of arrivals is L less the share of the run that may wait longer. Of the gaps' own percentiles,
    those whose rank is the last are L itself.
    """
    run_ns = cpu.run_ticks * tick_ns
    ticks = sorted(end - start for start, end, _ in cpu.events)
    lengths = Lengths((length * tick_ns, 1) for length in ticks)
    second_ns = max((length for length in ticks if length != cpu.max_ticks), default=0) * tick_ns
    for share in GAPS.values():
        if lengths.is_last(share):
            yield _outside(lengths.percentile(share), least_ns, most_ns)
    for share in ARRIVALS.values():
        shorter_ns = run_ns * (1 - share)
        if least_ns - shorter_ns > second_ns:
            wait_ns = lengths.arrival_percentile(share, run_ns)
            yield _outside(wait_ns, least_ns - shorter_ns, most_ns - shorter_ns)


def _outside(value: float, low: float, high: float) -> float:
    return max(low - value, value - high, 0.0)
