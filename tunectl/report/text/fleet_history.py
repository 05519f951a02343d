"""`tunectl fleet history HOST`: a line a session, and what was not as before."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from tunectl.report.escape import printable
from tunectl.report.fleets import word, written
from tunectl.report.text.layout import VERDICT_STYLES, columns, heading, line, prose
from tunectl.report.text.sheet import Sheet

_SHOWN = ("max_ns", "p99_9_ns", "interruptions_per_s", "stolen_ppm")


def render(body: Mapping[str, Any], sheet: Sheet) -> None:
    """Prints a tunectl.fleet.history/1 body."""
    line(sheet, (printable(body["name"]), "bold"), f" in {len(body['sessions'])} sessions")
    sheet.line()
    rows = [_row(one) for one in body["sessions"]]
    header = ("session", "verdict", "longest", "P99.9", "rate", "stolen")
    columns(sheet, rows, indent=2, right=(2, 3, 4, 5), header=header)
    for one in body["sessions"]:
        if one["changed"] or one["reasons"]:
            heading(sheet, one["session"]["name"], ": ", (word(one["verdict"]), VERDICT_STYLES.get(one["verdict"], "")))
        for text in one["changed"]:
            prose(sheet, text, indent=2, label="changed: ", style="yellow")
        for text in one["reasons"] if sheet.verbose else one["reasons"][:1]:
            prose(sheet, text, indent=2, label="- ")
        if not sheet.verbose and len(one["reasons"]) > 1:
            prose(sheet, f"and {len(one['reasons']) - 1} more reasons: -v shows them", indent=4, style="dim")
    if body["compare"]:
        heading(sheet, "The last two side by side")
        line(sheet, "  tunectl compare ", " ".join(shlex.quote(path) for path in body["compare"]))


def _row(one: Mapping[str, Any]) -> list[str]:
    measured = one["measured"] or {}
    return [one["session"]["name"], word(one["verdict"]), *(written(name, measured.get(name)) for name in _SHOWN)]
