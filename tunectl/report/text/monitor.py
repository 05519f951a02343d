"""`tunectl monitor`: what fires, every CPU's clock and what disturbs it, the temperatures, what could not be read."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tunectl.cpulist import format_cpulist
from tunectl.model import Outcome
from tunectl.report.escape import printable, shown
from tunectl.report.text.charts import spark
from tunectl.report.text.page import TextPage, banner, cell_len, columns, heading, line, prose
from tunectl.report.text.screen import by_family, clipped, ending
from tunectl.report.urgency import findings_in
from tunectl.wording import few, plural, seconds_of

MAX_ROWS = 8  # with more CPUs, those that look alike share a row: alerts stand below, on the same screen
MAX_ALERTS = 5
MAX_FAMILIES = 3
MAX_OF_RULE = 2
MAX_INTERRUPTS = 2
MAX_PAST = 16  # samples of a trend
DRIFT = "KnobDrift"
_HOT_MC = 100_000  # a full bar where a zone names no trip
_SEVERITIES = {"critical": "bold red", "warning": "yellow", "info": "cyan"}
_HEALTHS = {"fresh": "", "stale": "stale", "no-data": "no data", "absent": "unknown"}
_HEADER = ("", "CPU", "role", "GHz", "base %", "seen by", "throttled", "tick/s", "IPI/s", "interrupts")
_LIVE = ("", "CPU", "GHz", "base %", "", "int/s", "", "throttled", "", "interrupts")
_LIVE_STYLES = ("red", "", "", "", "cyan", "", "cyan", "", "cyan")
_ROOMY = 100  # cells; on a narrower page "housekeeping" would leave no room for the interrupts' names

Row = Mapping[str, Any]


def monitor(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.monitor/1 body. That of the live view has `past`: the CPUs and zones of its last samples."""
    firing, past = alerts_of(body, page.verbose), body.get("past") or ()
    banner(page, str(body["verdict"]), _said(body, len(firing)))
    isolated = f"isolated {body['isolated']}" if body["isolated"] else "none is isolated"
    sets = f"{isolated}; housekeeping {body['housekeeping']}" if body["housekeeping"] else isolated
    heading(page, "CPUs", (f"   {sets}", "dim"))
    if past:
        rows = list(_live(body["cpus"], past, page.width))
        kept = len(_LIVE) - (not any(row[-1] for row in rows))  # without the names of interrupts where there are none
        rows = [row[:kept] for row in rows]
        columns(page, rows, right=(2, 3, 5), header=_LIVE[:kept], styles=_LIVE_STYLES)
    else:
        rows = [_cells(group, len(body["cpus"]) > MAX_ROWS, page.width < _ROOMY) for group in _groups(body["cpus"])]
        kept = len(_HEADER) - (not any(row[-1] for row in rows))
        rows, header = [row[:kept] for row in rows], _HEADER[:kept]
        columns(page, rows, right=(3, 4, 7, 8), header=header, styles=("red", "", "dim", "", "", "dim"))
    _zones(page, body["zones"], past)
    _alerts(page, "Firing", firing, fixes=True)
    _seen_once(page, body)
    shown_above = {_edge(alert) for alert in body["alerts"]}
    others = [alert for alert in body["recent"] if _edge(alert) not in shown_above]
    _alerts(page, "Last alerts", others, fixes=False)
    _sources(page, body)
    ending(page, body["notes"])


def alerts_of(body: Mapping[str, Any], verbose: int) -> list[Row]:
    """What fires, the worst first. Settings that differ are one alert, the last of its severity; with -v one each."""
    drift = [alert for alert in body["alerts"] if alert["rule"] == DRIFT]
    firing = list(body["alerts"])
    if len(drift) > MAX_OF_RULE and not verbose:
        since = min(str(alert["since"]) for alert in drift)
        whole = {**drift[0], "identity": f"{len(drift)} settings differ", "since": since, "settings": drift}
        firing = [*(alert for alert in firing if alert["rule"] != DRIFT), whole]
    ranks = {severity: rank for rank, severity in enumerate(_SEVERITIES)}
    return sorted(firing, key=lambda alert: ranks.get(alert["severity"], 0))


def _seen_once(page: TextPage, body: Mapping[str, Any]) -> None:
    """What is wrong, or a setting that is not known, and that no alert is about: settings by name."""
    firing = {(alert["rule"], alert["subject"]) for alert in body["alerts"]}
    silent = [finding for finding in findings_in(body) if (finding.knob, finding.instance) not in firing]
    for outcome, title in ((Outcome.DRIFTED, "Wrong"), (Outcome.UNREADABLE, "Not known")):
        found = [finding for finding in silent if finding.outcome is outcome]
        others = [finding for finding in found if finding.knob != DRIFT and outcome is Outcome.DRIFTED]
        knobs = [printable(finding.instance) for finding in found if finding.knob == DRIFT]
        if others or knobs:
            heading(page, title)
        for finding in others:
            clipped(page, finding.reason, indent=2, label=f"{printable(str(finding.target))}  ")
        if knobs:
            prose(page, ", ".join(knobs), indent=2, label=f"{DRIFT} {len(knobs):>4,}  ")


def _said(body: Mapping[str, Any], firing: int) -> str:
    parts = [plural(firing, "alert") + " firing"] if firing else []
    found = findings_in(body)
    drift = sum(finding.knob == DRIFT and finding.outcome is Outcome.DRIFTED for finding in found)
    if not parts:
        # By name alone: what is wrong is said below.
        named = dict.fromkeys(str(reason).partition(": ")[0] for reason in body["reasons"])
        parts = [few(name for name in named if not name.startswith(DRIFT))] if len(named) > drift else []
        parts += [f"{plural(drift, 'setting')} {'differ' if drift > 1 else 'differs'}"] if drift else []
    parts = parts or ["nothing is wrong that could be seen"]
    if unknown := sum(finding.outcome is Outcome.UNREADABLE for finding in found):
        parts.append(f"{unknown} not known")
    own = body["own"]
    if "cycle_seconds" in own:
        parts.append(f"a cycle takes {seconds_of(own['cycle_seconds'])}")
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


def _live(cpus: Sequence[Row], past: Sequence[Row], width: int) -> Iterator[tuple[str, ...]]:
    """The rows of _LIVE: each figure with its trend, of several CPUs that of the worst."""
    past = past[-max(4, (width - 58) // 3) :]
    most, heat = (
        max([known for seen in past for row in seen["cpus"] if (known := of(row))], default=0.0)
        for of in (_interruptions, _throttled)
    )
    for group in _groups(cpus):
        mark, names, _, ghz, share, witness, throttled, _, _, landed = _cells(group, len(cpus) > MAX_ROWS, True)
        clock = spark(_trend(past, group, _of_base, min), 1.0) or witness
        rates = spark(_trend(past, group, _interruptions, max), most, log=True)
        heats = spark(_trend(past, group, _throttled, max), heat, log=True)
        each = _range([_interruptions(row) for row in group], 1, 0)
        yield mark, names, ghz, share, clock, each, rates, throttled, heats, landed


def _trend(
    past: Sequence[Row],
    group: Sequence[Row],
    of: Callable[[Row], float | None],
    worst: Callable[[Sequence[float]], float],
) -> list[float | None]:
    """The worst value of these CPUs in each sample; None where none was known."""
    names = {row["cpu"] for row in group}
    each = ([known for row in seen["cpus"] if row["cpu"] in names and (known := of(row)) is not None] for seen in past)
    return [worst(known) if known else None for known in each]


def _of_base(row: Row) -> float | None:
    known = row["frequency_health"] == "fresh" and row["frequency_khz"] and row["base_khz"]
    return row["frequency_khz"] / row["base_khz"] if known else None


def _interruptions(row: Row) -> float | None:
    known = [row[key] for key in ("ticks_per_s", "calls_per_s", "reschedules_per_s") if row[key] is not None]
    return sum(known) if known else None


def _throttled(row: Row) -> float | None:
    new: float | None = row["throttles_new"]
    return new


def _speed(group: Sequence[Row]) -> tuple[str, str]:
    """The clock and its share of the base frequency; where it was not measured, the highest that is permitted."""
    if group[0]["frequency_health"] == "fresh":
        key, sign = "frequency_khz", ""
    else:
        key, sign = "limit_khz", "<="
    shares = [row[key] / row["base_khz"] if row[key] and row["base_khz"] else None for row in group]
    said = _range([row[key] for row in group], 1e6, 2), _range(shares, 0.01, 0)
    return said if said[0] == "-" else (sign + said[0], said[1] if said[1] == "-" else sign + said[1])


def _witness(row: Row, tight: bool) -> str:
    """What measured the clock, or why nothing did: `package0`, `sysfs: stale`."""
    name, state = printable(str(row["frequency_from"])), _HEALTHS.get(row["frequency_health"], "?")
    if not name or row["frequency_health"] == "absent":
        return "nobody"
    if not state:
        return name
    return state if tight else f"{name}: {state}"


def _range(values: Sequence[float | None], unit: float, digits: int) -> str:
    """`3.50`, `1.20-3.50`, `-` without any value; `3.50?` where only some have a value."""
    known = [value / unit for value in values if isinstance(value, int | float)]
    if not known:
        return "-"
    ends = list(dict.fromkeys(f"{value:.{digits}f}" for value in (min(known), max(known))))
    return "-".join(ends) + ("?" if len(known) < len(values) else "")


def _zones(page: TextPage, zones: Sequence[Row], past: Sequence[Row]) -> None:
    zones = [zone for zone in zones if zone["health"] != "absent"]
    if not zones:
        return
    hottest = sorted(zones, key=lambda zone: -(zone["temperature_mc"] or 0))[:4]
    parts = []
    for zone in hottest:
        earlier = [row["temperature_mc"] for seen in past for row in seen["zones"] if row["zone"] == zone["zone"]]
        trend = spark(earlier, zone["trip_mc"] or _HOT_MC)
        trip = f" of {_celsius(zone['trip_mc'])}" if zone["trip_mc"] else ""
        name = zone["kind"] or zone["zone"]
        parts.append(f"{name} {_celsius(zone['temperature_mc'])}{trip}{' ' if trend else ''}{trend}")
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
        beside = cell_len(f"  {head[0]}  {printable(alert['identity'])}  {when}") <= page.width
        line(page, "  ", head, "  ", (alert["identity"], "bold"), "  ", (when if beside else "", "dim"))
        if not beside:
            prose(page, when, indent=4, style="dim")
        if fixes:
            _evidence(page, alert)
    left = Counter(alert["rule"] for alert in alerts if alert not in kept)
    if left:
        said = "; ".join(f"{count} more {printable(rule)}" for rule, count in left.items())
        prose(page, f"and {said}", indent=2)


def _evidence(page: TextPage, alert: Row) -> None:
    if settings := alert.get("settings"):
        _by_family(page, settings)
        return
    observed, expected = shown(alert["observed"]), shown(alert["expected"])
    is_word = isinstance(alert["observed"], str) and len(observed) + len(expected) < 60
    values = f"; {observed} → {expected}" if is_word else ""  # the summary has every number, with its unit
    clipped(page, f"{alert['summary']}{values}", indent=4)
    if alert["fix"]:
        prose(page, alert["fix"], indent=4, label="fix  ")


def _by_family(page: TextPage, alerts: Sequence[Row]) -> None:
    """What mends most of them, then a line for each family of settings: how many, and `observed → desired`."""
    fix, mends = Counter(alert["fix"] for alert in alerts).most_common(1)[0]
    prose(page, fix, indent=4, label="fix  " if mends == len(alerts) else f"fix of {mends}  ")
    families: dict[str, list[tuple[str, int, str]]] = {}
    for alert in alerts:
        name = printable(str(alert["subject"]))
        said = name, 1, f"{shown(alert['observed'])} → {shown(alert['expected'])}"
        families.setdefault(name.partition(".")[0], []).append(said)
    most = len(families) if page.verbose or len(families) <= MAX_FAMILIES + 1 else MAX_FAMILIES
    by_family(page, [row for rows in [*families.values()][:most] for row in rows], indent=4)
    if others := ", ".join(f"{family} {len(rows)}" for family, rows in [*families.items()][most:]):
        prose(page, f"and {others}: -v", indent=4)


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
    brief: list[str] = []
    for row in blind:
        counts = [f"{row[key]} {word}" for key, word in (("stale", "stale"), ("no_data", "no data")) if row[key]]
        why = "; ".join(map(str, row["reasons"]))
        said = ", ".join(counts) or "this host has none"
        if page.verbose or row["no_data"]:  # what should be there and could not be read is said, and why
            text = f"{said}: {why}" if why else said
            clipped(page, text, indent=2, label=f"{printable(row['name'])}  ", style="dim", lines=3)
        else:
            brief.append(f"{row['name']} ({said})" if counts else row["name"])
    if brief:
        prose(page, f"{', '.join(brief)}: -v says why", indent=2, style="dim")
