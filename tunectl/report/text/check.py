"""`tunectl check`: the verdict of the behavioural checks, then their findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tunectl.report.summary import brief
from tunectl.report.text.findings import compliant, findings, parsed
from tunectl.report.text.layout import banner
from tunectl.report.text.notes import notes
from tunectl.report.text.sheet import Sheet


def render(body: Mapping[str, Any], sheet: Sheet) -> None:
    """Prints a tunectl.check/1 body."""
    found = parsed(body["findings"])
    banner(sheet, str(body["verdict"]), brief(found))
    findings(sheet, found)
    compliant(sheet, found)
    notes(sheet, body.get("notes", ()))
