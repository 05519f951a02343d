"""A Board as tunectl.monitor/1: what `--once` prints and the live view draws. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tunectl.cpulist import format_cpulist
from tunectl.model import Finding, Outcome
from tunectl.monitor.cpurows import cpu_rows
from tunectl.monitor.model import Alert, Board, Condition, Health, Look, Verdict

_OUTCOMES = {
    Verdict.BAD: Outcome.DRIFTED,
    Verdict.GOOD: Outcome.COMPLIANT,
    Verdict.BETWEEN: Outcome.COMPLIANT,
    Verdict.UNKNOWN: Outcome.UNREADABLE,
}
MAX_REASONS = 4  # of one source; a host of 256 CPUs has one reason 256 times, or a few


def monitor_body(
    board: Board,
    before: Look | None,
    judged: tuple[str, list[str]],
    notes: Iterable[str] = (),
) -> dict[str, Any]:
    """The fields of tunectl.monitor/1; `before` is the look before the board's, from which rises are counted.

    `judged` is the verdict and its reasons.
    """
    verdict, reasons = judged
    return {
        "verdict": verdict,
        "reasons": reasons,
        "watched_s": round(board.look.monotonic_s - before.monotonic_s, 3) if before else 0.0,
        "isolated": format_cpulist(board.isolated),
        "housekeeping": format_cpulist(board.housekeeping),
        "cpus": cpu_rows(board, before),
        "zones": list(_zones(board.look)),
        "alerts": [alert_body(alert) for alert in board.firing],
        "recent": [alert_body(alert) for alert in board.recent],
        "sources": sources_of(board.look),
        "own": {name: round(value, 6) for name, value in board.own.items()},
        "findings": findings_of(board.conditions),
        "notes": list(notes),
    }


def findings_of(conditions: Iterable[Condition]) -> list[Finding]:
    """Every condition as a finding, so that the formats which know nothing of alerts can show it."""
    return [
        Finding(
            one.rule,
            one.subject,
            _OUTCOMES[one.verdict],
            one.observed,
            one.expected,
            one.summary,
            one.fix,
        )
        for one in conditions
    ]


def alert_body(alert: Alert) -> dict[str, Any]:
    """An alert's fields, and its identity."""
    return {"identity": alert.identity, **alert._asdict()}


def sources_of(look: Look) -> list[dict[str, Any]]:
    """What each source had to say: how many samples of each health, and why some are not fresh."""
    rows: dict[str, dict[str, Any]] = {}
    for sample in look.samples:
        row = rows.setdefault(
            sample.source, {"name": sample.source, "fresh": 0, "stale": 0, "no_data": 0, "absent": 0, "reasons": []}
        )
        row[sample.health.value.replace("-", "_")] += 1
        if sample.health is not Health.FRESH and sample.reason and len(row["reasons"]) < MAX_REASONS:
            said = f"{sample.quantity}: {sample.reason}"
            if said not in row["reasons"]:
                row["reasons"].append(said)
    return list(rows.values())


def _zones(look: Look) -> Iterator[dict[str, Any]]:
    """The thermal zones that can be read in peace, in thousandths of a degree Celsius."""
    trips = {one.subject: one.value for one in look.of("trip_mc")}
    for one in look.of("temperature_mc"):
        yield {
            "zone": one.subject,
            "temperature_mc": one.value,
            "trip_mc": trips.get(one.subject),
            "health": one.health.value,
            "kind": one.reason,
        }
