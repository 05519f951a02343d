"""`tunectl service`: the unit files as they are, or what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tunectl.report.escape import printable
from tunectl.report.text.layout import columns, line, prose
from tunectl.report.text.notes import notes
from tunectl.report.text.sheet import Sheet

_STYLES = {"written": "green", "removed": "green", "foreign": "red", "outdated": "yellow"}


def render(body: Mapping[str, Any], sheet: Sheet) -> None:
    """Prints a tunectl.service/1 body."""
    if body["action"] == "show":
        _units(sheet, body)
    else:
        columns(sheet, [(unit["state"], printable(unit["path"])) for unit in body["units"]])
        for argv in body["ran"]:
            prose(sheet, " ".join(map(str, argv)), label="ran  ")
    notes(sheet, body["notes"])


def _units(sheet: Sheet, body: Mapping[str, Any]) -> None:
    for number, unit in enumerate(body["units"]):
        if number:
            sheet.line()
        line(
            sheet, (f"# {printable(unit['path'])} ({unit['state']})", f"bold {_STYLES.get(unit['state'], '')}".strip())
        )
        for text in unit["text"].splitlines():  # as it stands in the file: it may be copied from here
            line(sheet, text)
