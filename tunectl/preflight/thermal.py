"""The thermal state of the host, as preflight judges it: two samples, and what changed between them. Pure.

What throttled is told by counters that only rise; scaling_cur_freq is not a measurement on a CPU without a tick
(arch/x86/kernel/cpu/aperfmperf.c discards samples older than 20 ms), so it is shown and never judged.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from tunectl.cpulist import named_cpus
from tunectl.fix import APPLY, Fix, in_turn, to_decide
from tunectl.host.counters import THROTTLES, rises
from tunectl.host.thermal import (
    ADVICE,
    SLOWING_COOLERS,
    Base,
    Cooling,
    Limits,
    ThermalSample,
    cooling_advice,
    injects_idle,
    is_hot,
)
from tunectl.model import Finding, Match, Outcome, Severity

Core = tuple[float | None, float | None]  # the probe's core_khz: before and after its run

# Only these would show a throttled CPU. A permitted maximum is not a speed, and TRM counts nothing where the firmware
# keeps thermal events to itself.
_CAN_SEE = frozenset({"thermal.throttle", "thermal.bios_limit", "thermal.clock", "thermal.zone", "thermal.cooling"})
NAMES = _CAN_SEE | {"thermal.interrupts", "thermal.max_frequency"}  # of all findings here


class _Judge(NamedTuple):
    before: ThermalSample
    after: ThermalSample
    base: Mapping[int, Base]
    min_ratio: float
    core_khz: Mapping[int, Core] | None


def judge_thermal(
    before: ThermalSample,
    after: ThermalSample,
    *,
    base_khz_override: int | None = None,
    min_ratio: float = 0.9,
    probe_core_khz: Mapping[int, Core] | None = None,
) -> dict[str, Any]:
    """{"verdict": "ok"|"throttled"|"unknown", "reason", "findings", "evidence"} for the time between two samples.

    `min_ratio` is the least share of the base frequency that is no throttling; `probe_core_khz` the clock that the
    probe measured on each CPU, before and after its run. No data is no "ok"; what is absent is unsupported.
    """
    base = dict(after.base)
    if base_khz_override:
        judged = {*base, *after.limits, *(probe_core_khz or {})}
        base = {cpu: Base(base_khz_override, "the host file") for cpu in sorted(judged)}
    judge = _Judge(before, after, base, min_ratio, probe_core_khz)
    parts: tuple[Callable[[_Judge], Iterator[Finding]], ...] = (_throttle, _trm, _limits, _clock, _zones, _cooling)
    findings = [finding for part in parts for finding in part(judge)]
    verdict, reason = _verdict(findings)
    return {"verdict": verdict, "reason": reason, "findings": findings, "evidence": _evidence(judge)}


def _verdict(findings: list[Finding]) -> tuple[str, str]:
    bad = [finding for finding in findings if finding.outcome == Outcome.DRIFTED]
    if bad:
        return "throttled", "; ".join(finding.reason for finding in bad)
    if any(finding.knob in _CAN_SEE and finding.outcome == Outcome.COMPLIANT for finding in findings):
        return "ok", ""
    return "unknown", "this host shows nothing that would tell a throttled CPU (common for a virtual machine)"


def _found(knob: str, instance: str, outcome: Outcome, reason: str = "", **fields: Any) -> Finding:
    """Heat costs the clock; `fields` say what costs more."""
    return Finding(knob, instance, outcome, reason=reason, **{"severity": Severity.SLOWER, **fields})


def _throttle(judge: _Judge) -> Iterator[Finding]:
    """Each physical core and each package once: SMT siblings all count the event of the core they share."""
    largest: dict[str, int] = {}
    for (whose, cpu), count in rises(judge.before.throttles, judge.after.throttles, THROTTLES).items():
        place = judge.after.places[cpu]
        name = f"cpu{place.core}" if whose == "core" else f"package{place.package}"
        largest[name] = max(largest.get(name, 0), count)
    for name, count in largest.items():
        if count:
            what = f"the core of {name}" if name.startswith("cpu") else name
            reason = f"{what} was throttled for heat {count} times while it was watched"
            yield _found("thermal.throttle", name, Outcome.DRIFTED, reason, observed=count, desired=0, fix=ADVICE)
    if not largest:
        reason = "this CPU has no throttle counters (Intel's only, and not in most virtual machines)"
        yield _found("thermal.throttle", "", Outcome.UNSUPPORTED, reason)
    elif not any(largest.values()):
        reason = f"none of {len(largest)} cores and packages was throttled"
        yield _found("thermal.throttle", "", Outcome.COMPLIANT, reason, observed=0, desired=0)


def _trm(judge: _Judge) -> Iterator[Finding]:
    earlier = judge.before.thermal_interrupts
    counts = rises(earlier, judge.after.thermal_interrupts)
    hit = {cpu: count for cpu, count in counts.items() if count}
    if hit:
        reason = f"thermal event interrupts arrived on {named_cpus(hit)}"
        count = sum(hit.values())
        yield _found("thermal.interrupts", "", Outcome.DRIFTED, reason, observed=count, desired=0, fix=ADVICE)
    elif not counts or not judge.after.throttles:
        yield _found("thermal.interrupts", "", Outcome.UNSUPPORTED, "this host counts no thermal event interrupts")
    else:
        yield _found("thermal.interrupts", "", Outcome.COMPLIANT, observed=0, desired=0)


def _limits(judge: _Judge) -> Iterator[Finding]:
    yield from _limit(
        judge,
        "thermal.bios_limit",
        lambda limits: limits.bios_khz,
        "the firmware",
        to_decide(f"the firmware holds it down: {ADVICE}"),
    )
    yield from _limit(
        judge,
        "thermal.max_frequency",
        lambda limits: limits.max_khz,
        "scaling_max_freq",
        in_turn(to_decide("see who lowered it (thermald, a cooling device, a profile)"), APPLY),
    )


def _limit(judge: _Judge, knob: str, of: Callable[[Limits], int | None], who: str, fix: Fix) -> Iterator[Finding]:
    # A limit that stood at either moment stood while the host was watched.
    limits = {cpu: khz for cpu in judge.after.limits if (khz := _lowest(judge, cpu, of))}
    if not limits:
        yield _found(knob, "", Outcome.UNSUPPORTED, f"{who} sets no limit that this host shows (no cpufreq)")
    for cpu, khz in limits.items():
        base = judge.base.get(cpu)
        yield _against(judge, knob, cpu, khz, base, f"{who} permits CPU {cpu} no more than", fix)


def _lowest(judge: _Judge, cpu: int, of: Callable[[Limits], int | None]) -> int | None:
    seen = [sample.limits[cpu] for sample in (judge.before, judge.after) if cpu in sample.limits]
    return min((khz for limit in seen if (khz := of(limit))), default=None)


def _against(judge: _Judge, knob: str, cpu: int, khz: int, base: Base | None, what: str, fix: Fix) -> Finding:
    if base is None:
        reason = f"{what} {khz} kHz, and the base frequency is unknown: set thermal.base_frequency_khz in the host file"
        return _found(knob, str(cpu), Outcome.UNREADABLE, reason, observed=khz)
    least = round(judge.min_ratio * base.khz)
    if khz >= least:
        return _found(knob, str(cpu), Outcome.COMPLIANT, observed=khz, desired=least, match=Match.AT_LEAST)
    reason = f"{what} {khz} kHz, {khz / base.khz:.0%} of its base frequency of {base.khz} kHz ({base.source})"
    return _found(knob, str(cpu), Outcome.DRIFTED, reason, observed=khz, desired=least, fix=fix, match=Match.AT_LEAST)


def _clock(judge: _Judge) -> Iterator[Finding]:
    """The clock the probe measured itself, against the TSC: the one true frequency of an isolated CPU."""
    knob = "thermal.clock"
    advice = cooling_advice({name: cooling.kind for name, cooling, _ in _at_work(judge) if injects_idle(cooling.kind)})
    for cpu, both in sorted((judge.core_khz or {}).items()):
        measured = [khz for khz in both if khz]
        if measured:
            what = f"under the spinner CPU {cpu} ran at"
            yield _against(judge, knob, cpu, round(min(measured)), judge.base.get(cpu), what, advice)
        else:
            reason = f"the probe could not measure the clock of CPU {cpu}"
            yield _found(knob, str(cpu), Outcome.UNREADABLE, reason)


def _zones(judge: _Judge) -> Iterator[Finding]:
    zones = {name: zone for name, zone in judge.after.zones.items() if zone.temp_mc is not None and zone.trip_mc}
    if not zones:
        yield _found(
            "thermal.zone",
            "",
            Outcome.UNSUPPORTED,
            "no thermal zone with a trip can be read without interrupting a CPU",
        )
    for name, zone in zones.items():
        earlier = judge.before.zones.get(name, zone).temp_mc
        hottest, trip = max(zone.temp_mc or 0, earlier or 0), zone.trip_mc or 0
        observed, desired = f"{hottest / 1000:g} C", f"below {trip / 1000:g} C"
        if hottest < trip:
            yield _found("thermal.zone", name, Outcome.COMPLIANT, observed=observed, desired=desired)
        else:
            reason = f"{name} ({zone.kind}) is at {observed}, its trip that slows the CPUs at {trip / 1000:g} C"
            yield _found("thermal.zone", name, Outcome.DRIFTED, reason, observed=observed, desired=desired, fix=ADVICE)


def _cooling(judge: _Judge) -> Iterator[Finding]:
    slowing = {
        name: cooling for name, cooling in judge.after.cooling.items() if cooling.kind.startswith(SLOWING_COOLERS)
    }
    if not slowing:
        yield _found("thermal.cooling", "", Outcome.UNSUPPORTED, "no cooling device that would slow the CPUs")
    at_work = {name: state for name, _, state in _at_work(judge)}
    hot = is_hot([*judge.before.zones.values(), *judge.after.zones.values()])
    for name, cooling in slowing.items():
        if state := at_work.get(name):
            how = "keeps CPUs idle by force, hot or not" if injects_idle(cooling.kind) else "cools by slowing CPUs"
            reason = f"{name} ({cooling.kind}) {how}: state {state} of {cooling.max_state}"
            fix = cooling_advice({name: cooling.kind}, hot=hot)
            cost = Severity.STALL if injects_idle(cooling.kind) else Severity.SLOWER
            yield _found(
                "thermal.cooling", name, Outcome.DRIFTED, reason, observed=state, desired=0, fix=fix, severity=cost
            )
        else:
            yield _found("thermal.cooling", name, Outcome.COMPLIANT, observed=cooling.state, desired=0)


def _at_work(judge: _Judge) -> Iterator[tuple[str, Cooling, int]]:
    """The cooling devices that slowed CPUs at either moment, with the higher of the two states."""
    for name, cooling in judge.after.cooling.items():
        state = max(cooling.state, judge.before.cooling.get(name, cooling).state)
        if cooling.kind.startswith(SLOWING_COOLERS) and state > 0:  # powerclamp says -1 while it is off
            yield name, cooling, state


def _evidence(judge: _Judge) -> dict[str, Any]:
    """What was read, for the report: units stand in the names, CPUs are the keys."""
    after = judge.after
    return {
        "base_khz": {str(cpu): {"khz": base.khz, "source": base.source} for cpu, base in judge.base.items()},
        "min_ratio": judge.min_ratio,
        "bios_limit_khz": {str(cpu): limit.bios_khz for cpu, limit in after.limits.items() if limit.bios_khz},
        "scaling_max_khz": {str(cpu): limit.max_khz for cpu, limit in after.limits.items() if limit.max_khz},
        # Information only: a tick's sample, or a fallback that looks like one.
        "housekeeping_khz": {str(cpu): khz for cpu, khz in after.housekeeping_khz.items()},
        "core_khz": {str(cpu): {"before": a, "after": b} for cpu, (a, b) in (judge.core_khz or {}).items()},
        "zones": {n: {"type": z.kind, "temp_mc": z.temp_mc, "trip_mc": z.trip_mc} for n, z in after.zones.items()},
        "cooling": {n: {"type": c.kind, "state": c.state, "max_state": c.max_state} for n, c in after.cooling.items()},
    }
