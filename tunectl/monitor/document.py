"""A Status as tunectl.monitor/1: what `--once` prints and the live view draws. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tunectl.cpulist import format_cpulist, parse_shown
from tunectl.model import Finding, Outcome
from tunectl.monitor.model import Alert, AlertFields, Condition, Freshness, Health, Sample, Snapshot, Status, Verdict
from tunectl.monitor.rules.history import History
from tunectl.monitor.rules.subjects import members
from tunectl.monitor.rules.thermal import throttled
from tunectl.shapes import Amount, Count, Cpulist, Findings, Maybe, Unconfirmed, Waits, fields_of

OUTCOMES = {
    Health.BAD: Outcome.DRIFTED,
    Health.GOOD: Outcome.COMPLIANT,
    Health.BETWEEN: Outcome.COMPLIANT,
    Health.UNKNOWN: Outcome.UNREADABLE,
}
MAX_REASONS = 4  # of one source; a host of 256 CPUs has one reason 256 times, or a few
Number = float | None


class CpuRow(msgspec.Struct, frozen=True, kw_only=True):
    """A CPU of the host."""

    cpu: Count
    role: Literal["housekeeping", "isolated"]
    package: int | None
    frequency_khz: Annotated[Number, Meta(description="The best there is to know; see frequency_health.")]
    frequency_from: Annotated[
        str, Meta(description="measured (by the probe), sysfs, the package whose sentinel stands for it, or empty.")
    ]
    frequency_health: Annotated[Freshness, Meta(description="Stale: the number says nothing about now.")]
    frequency_reason: str
    base_khz: Number
    limit_khz: Annotated[
        Number, Meta(description="The lowest of bios_limit, scaling_max_freq and what max_perf_pct permits.")
    ]
    throttles: Annotated[Number, Meta(description="Of its core and its package, since boot.")]
    throttles_new: Annotated[Number, Meta(description="Since the look before.")]
    ticks_per_s: Number
    calls_per_s: Number
    reschedules_per_s: Number
    interrupts: Annotated[list[str], Meta(description="Device interrupts that came to it since the look before.")]
    alerts: Annotated[list[str], Meta(description="Identities of what fires because of it.")]


class ZoneRow(msgspec.Struct, frozen=True):
    """A thermal zone that can be read without interrupting a CPU, in thousandths of a degree Celsius."""

    zone: str
    temperature_mc: Number
    trip_mc: Number
    health: Freshness
    kind: str


class LatencyRow(msgspec.Struct, frozen=True, kw_only=True):
    """Who sends latencies."""

    subject: Annotated[str, Meta(description="application or sentinel")]
    p99_9_ns: Annotated[Number, Meta(description="The worst of the windows that ended since the look before.")]
    max_ns: Annotated[Number, Meta(description="The longest in these windows.")]
    count: Annotated[Number, Meta(description="Latencies, or gaps, in the last window.")]
    missed: Annotated[
        Number,
        Meta(
            description="Messages longer than [monitor.sla] p99_9_ns in the worst window and a tenth; null where "
            "nothing is promised."
        ),
    ]
    allowed: Annotated[Number, Meta(description="How many of them may be.")]
    missed_per_day: Annotated[Number, Meta(description="Misses in a day, at the rate of that window.")]
    bad_input: Annotated[Number, Meta(description="Words that were no latency, so far.")]
    bad_pairs: Annotated[Number, Meta(description="Pairs that were done before they were due, so far.")]
    dropped: Annotated[Number, Meta(description="Datagrams that the kernel dropped, so far.")]
    health: Freshness
    reason: str


class AlertRow(AlertFields, frozen=True):
    """An alert, with what makes two alerts the same cause."""

    identity: str


class SourceRow(msgspec.Struct):
    """How many samples a source had of each health, and why some are not fresh."""

    name: str
    fresh: Count = 0
    stale: Count = 0
    no_data: Count = 0
    absent: Count = 0
    reasons: list[str] = []


class MonitorBody(msgspec.Struct, frozen=True, kw_only=True):
    """What `tunectl monitor --once` sees: two looks, judged without hysteresis."""

    verdict: Verdict
    reasons: list[str]
    watched_s: Annotated[Amount, Meta(description="Between the two looks.")]
    isolated: Cpulist
    housekeeping: Cpulist
    cpus: list[CpuRow]
    zones: list[ZoneRow]
    latency: Annotated[
        list[LatencyRow],
        Meta(description="Empty where nobody sends any; --once and --watch leave that to the daemon: a stale row."),
        Maybe,
    ] = []
    alerts: Annotated[list[AlertRow], Meta(description="What fires now.")]
    recent: Annotated[list[AlertRow], Meta(description="The last edges, newest first.")]
    sources: list[SourceRow]
    own: Annotated[dict[str, float], Meta(description="About the monitor itself.")]
    findings: Annotated[
        Findings,
        Meta(description="Every rule's judgement of every subject: drifted is bad, unreadable is no fresh data."),
    ]
    unconfirmed: Waits = UNSET
    notes: Annotated[list[str], Meta(description="What could not be seen, and why.")]


def monitor_body(
    status: Status,
    before: Snapshot | None,
    judged: tuple[Verdict, list[str]],
    notes: Iterable[str] = (),
    unconfirmed: Unconfirmed | UnsetType = UNSET,
) -> dict[str, Any]:
    """The fields of tunectl.monitor/1; `before` is the snapshot before that of the status: rises are counted from it.

    `judged` is the verdict and its reasons.
    """
    verdict, reasons = judged
    body = MonitorBody(
        verdict=verdict,
        reasons=reasons,
        watched_s=round(status.snapshot.monotonic_s - before.monotonic_s, 3) if before else 0.0,
        isolated=format_cpulist(status.isolated),
        housekeeping=format_cpulist(status.housekeeping),
        cpus=cpu_rows(status, before),
        zones=list(_zones(status.snapshot)),
        latency=list(_latency(status.snapshot)),
        alerts=list(map(_alert_row, status.firing)),
        recent=list(map(_alert_row, status.recent)),
        sources=sources_of(status.snapshot),
        own={name: round(value, 6) for name, value in status.own.items()},
        findings=findings_of(status.conditions),
        unconfirmed=unconfirmed,
        notes=list(notes),
    )
    fields: dict[str, Any] = fields_of(body)
    return fields


def findings_of(conditions: Iterable[Condition]) -> list[Finding]:
    """Every condition as a finding, so that the formats which know nothing of alerts can show it."""
    return [
        Finding(each.rule, each.subject, OUTCOMES[each.health], each.observed, each.expected, each.summary, each.fix)
        for each in conditions
    ]


def _alert_row(alert: Alert) -> AlertRow:
    return AlertRow(alert.identity, **alert.fields())


def sources_of(snapshot: Snapshot) -> list[SourceRow]:
    """What each source had to say."""
    rows: dict[str, SourceRow] = {}
    for sample in snapshot.samples:
        row = rows.setdefault(sample.source, SourceRow(sample.source))
        health = sample.freshness.value.replace("-", "_")
        setattr(row, health, getattr(row, health) + 1)
    # What could not be read is named before what is not there.
    for sample in sorted(snapshot.samples, key=lambda sample: sample.freshness is Freshness.ABSENT):
        row = rows[sample.source]
        if sample.freshness is not Freshness.FRESH and sample.reason and len(row.reasons) < MAX_REASONS:
            about = sample.subject if isinstance(sample.seen, Finding) else sample.quantity  # a knob's name says more
            said = f"{about}: {sample.reason}"
            if said not in row.reasons:
                row.reasons.append(said)
    return list(rows.values())


def _zones(snapshot: Snapshot) -> Iterator[ZoneRow]:
    trips: dict[str, Any] = {sample.subject: sample.value for sample in snapshot.of("trip_mc")}
    for sample in snapshot.of("temperature_mc"):
        celsius: Any = sample.value  # a number, where there is one
        yield ZoneRow(
            sample.subject, celsius, trips.get(sample.subject), sample.freshness, sample.reason or sample.kind
        )


_OF_A_WINDOW = tuple(name for name in LatencyRow.__struct_fields__ if name not in ("subject", "health", "reason"))


def _latency(snapshot: Snapshot) -> Iterator[LatencyRow]:
    """Who sends latencies: the application, the sentinel. Empty where nobody does."""
    by_name = {(sample.quantity, sample.subject): sample for sample in snapshot.samples}
    for sample in snapshot.of("latency_max_ns"):
        if sample.freshness is not Freshness.ABSENT:
            values = {name: number_of(by_name.get((f"latency_{name}", sample.subject))) for name in _OF_A_WINDOW}
            yield LatencyRow(subject=sample.subject, **values, health=sample.freshness, reason=sample.reason)


_LIMITS = ("bios_limit_khz", "max_khz", "max_perf_khz")
# The clock of a CPU, the best reading first: what it measured itself, its own file, its package's sentinel.
_CLOCKS = ("core_khz", "frequency_khz", "sentinel_khz")
_NO_CLOCK = Sample("", "", None, "", Freshness.ABSENT)
_PER_SECOND = {"ticks_per_s": "timer_ticks", "calls_per_s": "function_calls", "reschedules_per_s": "reschedules"}


def cpu_rows(status: Status, before: Snapshot | None) -> list[CpuRow]:
    """One row a CPU of the host, ascending."""
    history = History()
    for snapshot in filter(None, (before, status.snapshot)):
        history.add(snapshot)
    seconds = status.snapshot.monotonic_s - before.monotonic_s if before else 0.0
    of_cpu = _by_cpu(status.snapshot)
    landed = _landed(history)
    since_boot, since_before = _most_throttled(status.snapshot), throttled(history)
    alerts = _alerts(status)
    rows = []
    for cpu in sorted(status.isolated | status.housekeeping | of_cpu.keys()):
        mine = of_cpu.get(cpu, {})
        rates: Any = {name: _rate(history, mine.get(quantity), seconds) for name, quantity in _PER_SECOND.items()}
        rows.append(
            CpuRow(
                cpu=cpu,
                role="isolated" if cpu in status.isolated else "housekeeping",
                package=_package(mine),
                **_clock(mine),
                base_khz=number_of(mine.get("base_khz")),
                limit_khz=min((khz for name in _LIMITS if (khz := number_of(mine.get(name)))), default=None),
                throttles=_throttles(mine, since_boot),
                throttles_new=_throttles(mine, since_before),
                **rates,
                interrupts=landed.get(cpu, []),
                alerts=alerts.get(cpu, []),
            )
        )
    return rows


def _by_cpu(snapshot: Snapshot) -> Mapping[int, Mapping[str, Sample]]:
    """The samples of each CPU by quantity."""
    of_cpu: dict[int, dict[str, Sample]] = defaultdict(dict)
    for sample in snapshot.samples:
        if sample.quantity != "interrupts":  # of a device: _landed has these
            for cpu in members(sample):
                of_cpu[cpu][sample.quantity] = sample
    return of_cpu


def _clock(mine: Mapping[str, Sample]) -> dict[str, Any]:
    """The best one: a fresh reading before a stale one, a stale one before no data."""
    clocks = [mine[name] for name in _CLOCKS if name in mine]
    ranks = list(Freshness)
    best = min(clocks, key=lambda clock: ranks.index(clock.freshness), default=_NO_CLOCK)
    return {
        "frequency_khz": number_of(best),
        "frequency_from": {"core_khz": "measured", "frequency_khz": "sysfs"}.get(best.quantity, best.subject),
        "frequency_health": best.freshness,
        "frequency_reason": best.reason,
    }


def _package(mine: Mapping[str, Sample]) -> int | None:
    wholes = (sample.whole or sample.subject for sample in mine.values())
    names = {whole for whole in wholes if whole.startswith("package")}
    numbers = [int(name.removeprefix("package")) for name in names if name.removeprefix("package").isdecimal()]
    return min(numbers, default=None)


def _most_throttled(snapshot: Snapshot) -> Mapping[str, float]:
    """By core and package how often it was throttled since boot: of its CPUs, the one that counted most."""
    most: dict[str, float] = {}
    for sample in snapshot.of("core_throttles", "package_throttles"):
        if (count := number_of(sample)) is not None:
            most[sample.whole] = max(most.get(sample.whole, 0), count)
    return most


def _throttles(mine: Mapping[str, Sample], counts: Mapping[str, float]) -> float | None:
    """Of the core and of its package together: either slows the CPU. None where neither is known."""
    wholes = [mine[name].whole for name in ("core_throttles", "package_throttles") if name in mine]
    known = [counts[whole] for whole in wholes if whole in counts]
    return sum(known) if known else None


def _rate(history: History, sample: Sample | None, seconds: float) -> float | None:
    times = history.rise(sample) if sample and seconds > 0 else None
    return None if times is None else round(times / seconds, 1)


def _landed(history: History) -> Mapping[int, list[str]]:
    """Device interrupts that came to each isolated CPU since the snapshot before: `eth0-rx-1 +3`."""
    found: dict[int, list[str]] = defaultdict(list)
    for sample in history.get("interrupts").values():
        if times := history.rise(sample):
            for cpu in sample.cpus:
                found[cpu].append(f"{sample.kind or sample.whole} +{times:g}")
    return found


def _alerts(status: Status) -> Mapping[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for alert in status.firing:
        for cpu in parse_shown(alert.cpus):
            found[cpu].append(alert.identity)
    return found


def number_of(sample: Sample | None) -> float | None:
    """A sample's number; None where it has none that may be shown."""
    if sample is None or sample.freshness in (Freshness.NO_DATA, Freshness.ABSENT):
        return None
    return None if isinstance(sample.value, str) else sample.value
