"""`tunectl propose`: which CPUs, why, and the host file to keep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tunectl.report.escape import printable
from tunectl.report.text.findings import plural
from tunectl.report.text.layout import columns, heading, line, prose
from tunectl.report.text.sheet import Sheet


def render(body: Mapping[str, Any], sheet: Sheet) -> None:
    """Prints a tunectl.propose/1 body."""
    if refusal := body.get("refusal"):
        prose(sheet, refusal, style="bold red")
    else:
        columns(sheet, [(role, body[role]) for role in ("isolated", "housekeeping")], styles=("dim", "bold"))
        heading(sheet, f"Why ({plural(body['count'], 'isolated CPU')})")
        for reason in body["reasons"]:
            style = "cyan" if reason["role"] == "isolated" else ""
            columns(sheet, [(reason["role"], reason["cpus"])], indent=2, styles=(style, style))
            prose(sheet, reason["text"], indent=4, style="dim")
    if body["notes"]:
        heading(sheet, "Note")
        for note in body["notes"]:
            prose(sheet, note, indent=2, label="- ")
    if body["host_file"]:
        heading(sheet, "Host file", ("  for /etc/tunectl/host.toml; --output FILE writes it", "dim"))
        # Not wrapped: it is meant to be copied. Its comments are the reasons above, and are not said twice.
        for text in body["host_file"].rstrip().split("\n"):
            if not text.startswith("#") and text:
                line(sheet, "  ", printable(text))
