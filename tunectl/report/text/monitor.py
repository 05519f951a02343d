"""`tunectl monitor`: what fires, every CPU's clock and what disturbs it, the temperatures, what could not be read."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tunectl.cpulist import format_cpulist
from tunectl.model import Outcome
from tunectl.report.escape import printable, shown
from tunectl.report.text.page import TextPage, banner, columns, heading, line, notes, prose
from tunectl.report.urgency import findings_in
from tunectl.wording import plural

MAX_ROWS = 8  # with more CPUs, those that look alike share a row: alerts stand below, on the same screen
MAX_ALERTS = 5
MAX_OF_RULE = 2
MAX_INTERRUPTS = 2
_SEVERITIES = {"critical": "bold red", "warning": "yellow", "info": "cyan"}
_HEALTHS = {"fresh": "", "stale": "stale", "no-data": "no data", "absent": "unknown"}
_HEADER = ("", "CPU", "role", "GHz", "base", "seen by", "throttled", "tick/s", "IPI/s", "interrupts")
_ROOMY = 100  # cells; on a narrower page "housekeeping" would leave no room for the interrupts' names

Row = Mapping[str, Any]


def monitor(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.monitor/1 body."""
    banner(page, str(body["verdict"]), _said(body))
    ranks = {severity: rank for rank, severity in enumerate(_SEVERITIES)}
    firing = sorted(body["alerts"], key=lambda alert: ranks.get(alert["severity"], 0))
    isolated = f"isolated {body['isolated']}" if body["isolated"] else "none is isolated"
    sets = f"{isolated}; housekeeping {body['housekeeping']}" if body["housekeeping"] else isolated
    heading(page, "CPUs", (f"   {sets}", "dim"))
    rows = [_cells(group, len(body["cpus"]) > MAX_ROWS, page.width < _ROOMY) for group in _groups(body["cpus"])]
    columns(page, rows, right=(3, 4, 7, 8), header=_HEADER, styles=("red", "", "dim", "", "", "dim"))
    _zones(page, body["zones"])
    _alerts(page, "Firing", firing, fixes=True)
    _seen_once(page, body)
    shown_above = {_edge(alert) for alert in firing}
    _alerts(page, "Last alerts", [alert for alert in body["recent"] if _edge(alert) not in shown_above], fixes=False)
    _sources(page, body)
    notes(page, body["notes"])


def _seen_once(page: TextPage, body: Mapping[str, Any]) -> None:
    """Every setting that is wrong or not known, and that no alert is about, by name."""
    firing = {(alert["rule"], alert["subject"]) for alert in body["alerts"]}
    drift = [finding for finding in findings_in(body) if finding.knob == "KnobDrift"]
    silent = [finding for finding in drift if (finding.knob, finding.instance) not in firing]
    for outcome, title in ((Outcome.DRIFTED, "Wrong"), (Outcome.UNREADABLE, "Not known")):
        if knobs := [printable(finding.instance) for finding in silent if finding.outcome is outcome]:
            heading(page, title)
            prose(page, ", ".join(knobs), indent=2, label=f"KnobDrift {len(knobs):>4,}  ")


def _said(body: Mapping[str, Any]) -> str:
    parts = [plural(len(body["alerts"]), "alert") + " firing"] if body["alerts"] else []
    if not parts:
        parts = [str(body["reasons"][0])] if body["reasons"] else ["nothing is wrong that could be seen"]
        parts += [f"and {len(body['reasons']) - 1} more"] if len(body["reasons"]) > 1 else []
    if unknown := sum(finding.outcome is Outcome.UNREADABLE for finding in findings_in(body)):
        parts.append(f"{unknown} not known")
    own = body["own"]
    if "cycle_seconds" in own:
        parts.append(f"a cycle takes {own['cycle_seconds'] * 1000:.1f} ms")
    return "; ".join(parts)


def _edge(alert: Row) -> tuple[Any, ...]:
    return alert["identity"], alert["since"], alert["status"]


def _groups(cpus: Sequence[Row]) -> list[list[Row]]:
    """Few CPUs: one in each group. Many CPUs: those that a person would look at in the same way are one group."""
    alike: dict[Any, list[Row]] = {}
    for cpu in cpus:
        key = (
            cpu["role"],
            cpu["package"],
            cpu["frequency_health"],
            cpu["frequency_from"],
            bool(cpu["throttles_new"]),
            tuple(cpu["alerts"]),
            tuple(cpu["interrupts"]),
        )
        alike.setdefault(key if len(cpus) > MAX_ROWS else cpu["cpu"], []).append(cpu)
    return list(alike.values())


def _cells(group: Sequence[Row], gathered: bool, tight: bool) -> tuple[str, ...]:
    first = group[0]
    throttles = _range([row["throttles"] for row in group], 1, 0)
    new = max(row["throttles_new"] or 0 for row in group)
    pairs = [[row[key] for key in ("calls_per_s", "reschedules_per_s") if row[key] is not None] for row in group]
    landed = list(dict.fromkeys(name for row in group for name in row["interrupts"]))
    more = [f"and {len(landed) - MAX_INTERRUPTS} more"] if len(landed) > MAX_INTERRUPTS else []
    return (
        "!" if any(row["alerts"] for row in group) else "",
        format_cpulist(row["cpu"] for row in group) if gathered else str(first["cpu"]),
        "house" if tight and first["role"] == "housekeeping" else printable(first["role"]),
        *_speed(group),
        _witness(first, tight),
        f"{throttles} +{new:g}" if new else throttles,
        _range([row["ticks_per_s"] for row in group], 1, 0),
        _range([sum(pair) if pair else None for pair in pairs], 1, 0),
        ", ".join([*landed[:MAX_INTERRUPTS], *more]),
    )


def _speed(group: Sequence[Row]) -> tuple[str, str]:
    """The clock and its share of the base frequency; where it was not measured, the highest that is permitted."""
    if group[0]["frequency_health"] == "fresh":
        key, sign = "frequency_khz", ""
    else:
        key, sign = "limit_khz", "<="
    shares = [row[key] / row["base_khz"] if row[key] and row["base_khz"] else None for row in group]
    said = _range([row[key] for row in group], 1e6, 2), _range(shares, 0.01, 0, "%")
    return said if said[0] == "-" else (sign + said[0], said[1] if said[1] == "-" else sign + said[1])


def _witness(row: Row, tight: bool) -> str:
    """What measured the clock, or why nothing did: `package0`, `sysfs: stale`."""
    name, state = printable(str(row["frequency_from"])), _HEALTHS.get(row["frequency_health"], "?")
    if not name or row["frequency_health"] == "absent":
        return "nobody"
    if not state:
        return name
    return state if tight else f"{name}: {state}"


def _range(values: Sequence[float | None], unit: float, digits: int, suffix: str = "") -> str:
    """`3.50`, `1.20-3.50`, `-` without any value; `3.50?` where only some have a value."""
    known = [value / unit for value in values if isinstance(value, int | float)]
    if not known:
        return "-"
    ends = list(dict.fromkeys(f"{value:.{digits}f}" for value in (min(known), max(known))))
    return "-".join(ends) + ("?" if len(known) < len(values) else "") + suffix


def _zones(page: TextPage, zones: Sequence[Row]) -> None:
    zones = [zone for zone in zones if zone["health"] != "absent"]
    if not zones:
        return
    hottest = sorted(zones, key=lambda zone: -(zone["temperature_mc"] or 0))[:4]
    parts = [
        f"{zone['kind'] or zone['zone']} {_celsius(zone['temperature_mc'])}"
        + (f" of {_celsius(zone['trip_mc'])}" if zone["trip_mc"] else "")
        for zone in hottest
    ]
    parts += [f"and {len(zones) - len(hottest)} cooler"] if len(zones) > len(hottest) else []
    page.line()
    prose(page, ", ".join(parts), label="Temperature  ")


def _celsius(value: Any) -> str:
    return f"{value / 1000:g} C" if isinstance(value, int | float) else "unknown"


def _alerts(page: TextPage, title: str, alerts: Sequence[Row], *, fixes: bool) -> None:
    """At most MAX_ALERTS, and of one rule at most MAX_OF_RULE: forty drifted knobs must not hide a hot CPU. -v: all."""
    if not alerts:
        return
    heading(page, title)
    kept: list[Row] = []
    for alert in alerts:
        few = sum(one["rule"] == alert["rule"] for one in kept) < MAX_OF_RULE and len(kept) < MAX_ALERTS
        if few or page.verbose:
            kept.append(alert)
    for alert in kept:
        is_firing = alert["status"] == "firing"
        severity = (alert["severity"], _SEVERITIES.get(alert["severity"], ""))
        when = f"since {_clock(alert['since'])}" if is_firing else f"at {_clock(alert['at'])}"
        head = severity if is_firing else (alert["status"], "green")
        line(page, "  ", head, "  ", (alert["identity"], "bold"), "  ", (when, "dim"))
        if fixes:
            observed, expected = shown(alert["observed"]), shown(alert["expected"])
            is_short = alert["observed"] is not None and len(observed) + len(expected) < 60
            values = f"; {observed} → {expected}" if is_short else ""
            prose(page, f"{alert['summary']}{values}", indent=4)
        if fixes and alert["fix"]:
            prose(page, alert["fix"], indent=4, label="fix  ")
    left: dict[str, list[str]] = {}
    for alert in alerts:
        if alert not in kept:
            left.setdefault(alert["rule"], []).append(str(alert["subject"]))
    said = [f"{len(subjects)} more {printable(rule)}{_families(subjects)}" for rule, subjects in left.items()]
    if said:
        prose(page, f"and {'; '.join(said)}", indent=2)


def _families(subjects: Sequence[str]) -> str:
    """` (irq 12, mm 4)`: which settings they are of, where they are settings."""
    families = Counter(printable(subject.partition(".")[0]) for subject in subjects if "." in subject)
    return f" ({', '.join(f'{family} {count}' for family, count in families.most_common())})" if families else ""


def _clock(at: Any) -> str:
    """The time of day of an RFC 3339 time; any other text as it is."""
    text = str(at)
    return text[11:19] if len(text) >= 20 and text[10] == "T" else text


def _sources(page: TextPage, body: Mapping[str, Any]) -> None:
    """The sources without fresh samples, and why: what was not read must not look like what is well."""
    # The audit is about the monitor, not the host, and its samples are stale between two audits by design.
    rows = [row for row in body["sources"] if row["name"] != "audit"]
    blind = [row for row in rows if row["stale"] or row["no_data"] or not row["fresh"]]
    if not blind:
        return
    heading(page, "Not seen")
    for row in blind:
        counts = [f"{row[key]} {word}" for key, word in (("stale", "stale"), ("no_data", "no data")) if row[key]]
        why = "; ".join(map(str, row["reasons"]))
        said = ", ".join(counts) or "this host has none"
        prose(page, f"{said}: {why}" if why else said, indent=2, label=f"{printable(row['name'])}  ", style="dim")
