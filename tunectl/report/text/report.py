"""`tunectl report`: what was written, and from what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tunectl.report.escape import printable
from tunectl.report.text.layout import line, prose
from tunectl.report.text.sheet import Sheet


def render(body: Mapping[str, Any], sheet: Sheet) -> None:
    """Prints a tunectl.report/1 body."""
    line(sheet, (printable(body["written"]), "bold"), f": {body['bytes']:,} bytes")
    for file in body["sources"]:
        prose(sheet, printable(file), indent=2, label="from ")
    if body["note"]:
        prose(sheet, body["note"], indent=2)
