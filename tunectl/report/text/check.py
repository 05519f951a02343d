"""`tunectl check`: the verdict of the behavioural checks, then their findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from tunectl.report.summary import brief
from tunectl.report.text.findings import compliant, findings, parsed
from tunectl.report.text.layout import banner
from tunectl.report.text.notes import notes


def render(body: Mapping[str, Any], console: Console) -> None:
    """Prints a tunectl.check/1 body."""
    found = parsed(body["findings"])
    banner(console, str(body["verdict"]), brief(found))
    findings(console, found)
    compliant(console, found)
    notes(console, body.get("notes", ()))
