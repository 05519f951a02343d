"""`tunectl snapshot`: what was recorded, and what could not be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tunectl.report.escape import printable
from tunectl.report.text.findings import plural
from tunectl.report.text.layout import columns, heading, prose
from tunectl.report.text.sheet import Sheet

MAX_SKIPPED = 20


def render(body: Mapping[str, Any], sheet: Sheet) -> None:
    """Prints a tunectl.snapshot/1 body."""
    prose(sheet, f"{body['file']}: {plural(body['files'], 'file')}, {plural(body['bytes'], 'byte')}", style="bold")
    skipped = body.get("skipped", ())
    if skipped:
        heading(sheet, f"Not recorded ({len(skipped)})")
        cells = [(printable(each["path"]), printable(each["reason"])) for each in skipped[:MAX_SKIPPED]]
        columns(sheet, cells, indent=2, styles=("", "dim"))
    if len(skipped) > MAX_SKIPPED:
        prose(sheet, f"and {len(skipped) - MAX_SKIPPED} more; --format json lists each", indent=2)
