"""`tunectl probe selftest`: which known interruptions the probe found, phase by phase."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tunectl.report.measures import nanoseconds
from tunectl.report.text.layout import columns, prose
from tunectl.report.text.sheet import Sheet

_HEADER = ("", "injected", "found", "as lost", "missed", "shortest", "too long by", "what")
_STYLES = {"passed": "green", "failed": "red", "not-run": "magenta"}


def render(body: Mapping[str, Any], sheet: Sheet) -> None:
    """Prints a tunectl.probe.selftest/1 body."""
    verdict = "every known interruption was found" if body["passed"] else "this is no pass"
    style = "bold green" if body["passed"] else "bold red"
    prose(sheet, f"CPU {body['cpu']}, gaps over {nanoseconds(body['threshold_ns'])}: {verdict}", style=style)
    if body.get("vouched_ns"):
        text = f"interruptions from {nanoseconds(body['vouched_ns'])} on are vouched for on this host"
    else:
        text = "no length is vouched for on this host"
    prose(sheet, text)
    sheet.line()
    columns(sheet, [_row(phase) for phase in body["phases"]], right=range(1, 7), header=_HEADER)
    for phase in body["phases"]:
        if phase["reason"]:
            prose(sheet, phase["reason"], label=f"{phase['name']}: ", style=_STYLES.get(phase["outcome"], ""))
    legend = "too long by: median of the gap less what was injected, the ways in and out of the kernel"
    prose(sheet, legend, style="dim")


def _row(phase: Mapping[str, Any]) -> tuple[str, ...]:
    figures: tuple[str, ...] = ("", "", "", "", "")
    if "max_error_ns" in phase:  # one long stop; the others count
        figures = ("", "", "", nanoseconds(phase["max_ns"], ""), nanoseconds(phase["max_error_ns"], ""))
    elif "found" in phase:
        error = (phase.get("length_error_ns") or {}).get("median")
        counts = (f"{phase[name]:,}" for name in ("found", "counted_as_lost", "missed"))
        figures = (*counts, nanoseconds(phase["shortest_gap_ns"], ""), nanoseconds(error, ""))
    return (phase["outcome"], f"{phase['injected']:,}", *figures, phase["name"])
