"""The thermal state of the host: what the monitor's rules say of two looks, as preflight's findings. Pure.

What was bad at either look was bad while the host was watched; what is good or unknown is so at the later one, for only
there a rise is known. scaling_cur_freq is not a measurement on a CPU without a tick (arch/x86/kernel/cpu/aperfmperf.c
discards samples older than 20 ms): it is shown and never judged.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tunectl.fix import NOTHING
from tunectl.host.plausible import FREQUENCY, problem
from tunectl.host.thermal import injects_idle
from tunectl.model import Finding, Match, Outcome, Severity
from tunectl.monitor.document import OUTCOMES
from tunectl.monitor.model import Condition, Freshness, Health, Sample, Snapshot
from tunectl.monitor.rules.clocks import KINDS, Fact, facts
from tunectl.monitor.rules.history import History, Limits, number
from tunectl.monitor.rules.thermal import judge_cooling, judge_throttling, judge_zones, mended, rises

Core = tuple[float | None, float | None]  # the probe's core_khz: before and after its run


class _Kind(NamedTuple):
    """One kind of finding: whose samples it is made of, and what these are of."""

    source: str
    quantities: tuple[str, ...]


_KINDS = {
    "thermal.throttle": _Kind("throttle", ("package_throttles",)),
    "thermal.interrupts": _Kind("interrupts", ("thermal_interrupts",)),
    "thermal.bios_limit": _Kind("limits", ("bios_limit_khz",)),
    "thermal.max_frequency": _Kind("limits", ("max_khz", "max_perf_khz")),
    "thermal.clock": _Kind("probe", ("core_khz",)),
    "thermal.zone": _Kind("thermal", ("temperature_mc", "trip_mc")),
    "thermal.cooling": _Kind("thermal", ("cooling_state",)),
}
NAMES = frozenset(_KINDS)  # of all findings here
# Only these would show a throttled CPU. A permitted maximum is not a speed, and TRM counts nothing where the firmware
# keeps thermal events to itself.
_CAN_SEE = NAMES - {"thermal.interrupts", "thermal.max_frequency"}
_CLOCKS = {
    quantity: name
    for name in ("thermal.bios_limit", "thermal.max_frequency", "thermal.clock")
    for quantity in _KINDS[name].quantities
}
_WORST_FIRST = (Health.BAD, Health.UNKNOWN, Health.BETWEEN, Health.GOOD)


def judge_thermal(
    before: Snapshot, after: Snapshot, limits: Limits, clocks: Mapping[int, Core] | None = None
) -> tuple[list[Finding], dict[str, Any]]:
    """The findings of the time between two looks, and what was read at the later one.

    `clocks` is what the probe measured on each CPU, before and after its run. What is absent is unsupported.
    """
    measured = tuple(_measured(cpu, both) for cpu, both in sorted((clocks or {}).items()))
    history = History(limits)
    history.add(before)
    history.add(after._replace(samples=(*after.samples, *measured)))
    findings = list(_worse(_judged(history.without_newest()), _judged(history)))
    findings += _silent(history, {finding.knob for finding in findings})
    return findings, _evidence(history, clocks or {})


def verdict_of_heat(findings: Sequence[Finding]) -> tuple[str, str]:
    """ok, throttled or unknown, and why it is not ok; what is waived does not count, and no data is no "ok"."""
    bad = [finding.reason for finding in findings if finding.outcome is Outcome.DRIFTED]
    if bad:
        return "throttled", "; ".join(bad)
    seeing = [finding for finding in findings if finding.knob in _CAN_SEE]
    dark = dict.fromkeys(finding.reason for finding in seeing if finding.outcome is Outcome.UNREADABLE)
    if dark:
        return "unknown", "; ".join(dark)
    if any(finding.outcome is Outcome.COMPLIANT for finding in seeing):
        return "ok", ""
    return "unknown", "this host shows nothing that would tell a throttled CPU (common for a virtual machine)"


def _measured(cpu: int, both: Core) -> Sample:
    """The clock the probe measured itself, against the TSC: the one true frequency of an isolated CPU."""
    subject, cpus = f"cpu{cpu}", frozenset({cpu})
    known = [round(khz) for khz in both if khz]
    wrong = problem(min(known), FREQUENCY) if known else f"the probe could not measure the clock of CPU {cpu}"
    if wrong:
        return Sample("core_khz", subject, None, "probe", Freshness.NO_DATA, wrong, cpus)
    return Sample("core_khz", subject, min(known), "probe", cpus=cpus)


def _worse(earlier: Iterator[Finding], later: Iterator[Finding]) -> Iterator[Finding]:
    """Each target once: as it is at the later look, unless it was bad at the earlier one alone."""
    bad = {finding.target: finding for finding in earlier if finding.outcome is Outcome.DRIFTED}
    for finding in later:
        was_bad = bad.pop(finding.target, finding)
        yield finding if finding.outcome is Outcome.DRIFTED else was_bad
    yield from bad.values()


def _judged(history: History) -> Iterator[Finding]:
    """What the rules say at one look."""
    heats = history.once(rises)
    for condition in judge_throttling(history):
        heat = heats[condition.subject]
        if heat.has_counter or heat.count:
            yield _finding("thermal.throttle" if heat.has_counter else "thermal.interrupts", condition)
    for fact in _clocks(history):
        yield _of_clock(fact, history)
    for condition in judge_zones(history):
        finding = _finding("thermal.zone", condition)
        if finding.outcome is not Outcome.UNREADABLE:
            hot, trip = (f"{float(value or 0) / 1000:g} C" for value in (finding.observed, finding.desired))
            finding = finding._replace(observed=hot, desired=f"below {trip}")
        yield finding
    for condition in judge_cooling(history):
        forced = injects_idle(history.get("cooling_state")[condition.subject].kind)
        yield _finding("thermal.cooling", condition)._replace(severity=Severity.STALL if forced else Severity.SLOWER)


def _finding(knob: str, condition: Condition) -> Finding:
    """Heat costs the clock, unless the caller knows that it costs more."""
    outcome, seen = OUTCOMES[condition.health], (condition.observed, condition.expected)
    said = ("", NOTHING) if outcome is Outcome.COMPLIANT else (condition.summary, condition.fix)
    return Finding(knob, condition.subject, outcome, *seen, *said, severity=Severity.SLOWER)


def _clocks(history: History) -> Iterable[Fact]:
    """One of each name and CPU: of the two limits that software sets, the worse one is in force."""
    worst: dict[tuple[str, int | None], Fact] = {}
    for fact in facts(history, tuple(kind for kind in KINDS if kind.quantity in _CLOCKS)):
        key = _CLOCKS[fact.kind.quantity], fact.cpu
        worst[key] = min(worst.get(key, fact), fact, key=lambda each: (_WORST_FIRST.index(each.health), each.khz))
    return worst.values()


def _of_clock(fact: Fact, history: History) -> Finding:
    name, outcome = _CLOCKS[fact.kind.quantity], OUTCOMES[fact.health]
    instance = "" if fact.cpu is None else str(fact.cpu)
    khz, severity = round(fact.khz) or None, Severity.SLOWER
    if outcome is Outcome.UNREADABLE:
        return Finding(name, instance, outcome, khz, reason=fact.why, severity=severity)
    least = round(history.limits.min_ratio * fact.base_khz)
    finding = Finding(name, instance, outcome, khz, least, severity=severity, match=Match.AT_LEAST)
    if outcome is Outcome.COMPLIANT:
        return finding
    reason = f"{fact.kind.said.format(cpus=f'CPU {fact.cpu}')} {fact.said('its')}"
    return finding._replace(reason=reason, fix=mended(fact.kind.fix, history))


def _silent(history: History, spoken: set[str]) -> Iterator[Finding]:
    """What no rule speaks of: this host has no such thing, or its source could not be read."""
    for name, kind in _KINDS.items():
        failed = history.get("source").get(kind.source)
        samples = (sample for quantity in kind.quantities for sample in history.get(quantity).values())
        mute = failed or next((sample for sample in samples if sample.freshness is not Freshness.FRESH), None)
        if mute and name not in spoken:
            outcome = Outcome.UNSUPPORTED if mute.freshness is Freshness.ABSENT else Outcome.UNREADABLE
            yield Finding(name, "", outcome, reason=mute.reason, severity=Severity.SLOWER)


def _evidence(history: History, clocks: Mapping[int, Core]) -> dict[str, Any]:
    """What was read at the later look, for the report: units stand in the names, CPUs are the keys."""
    trips = history.get("trip_mc")
    return {
        "base_khz": {
            sample.subject.removeprefix("cpu"): {"khz": sample.value, "source": sample.reason}
            for sample in history.get("base_khz").values()
            if number(sample)
        },
        "min_ratio": history.limits.min_ratio,
        "bios_limit_khz": _by_cpu(history, "bios_limit_khz"),
        "scaling_max_khz": _by_cpu(history, "max_khz"),
        "housekeeping_khz": _by_cpu(history, "frequency_khz"),  # information only
        "core_khz": {str(cpu): {"before": before, "after": after} for cpu, (before, after) in clocks.items()},
        "zones": {
            name: {"type": sample.kind, "temp_mc": number(sample), "trip_mc": number(trips[name])}
            for name, sample in history.get("temperature_mc").items()
            if name in trips
        },
        "cooling": {
            name: {"type": sample.kind, "state": number(sample)}
            for name, sample in history.get("cooling_state").items()
            if sample.kind
        },
    }


def _by_cpu(history: History, quantity: str) -> dict[str, float]:
    numbers = {subject.removeprefix("cpu"): number(sample) for subject, sample in history.get(quantity).items()}
    return {cpu: khz for cpu, khz in numbers.items() if khz}
