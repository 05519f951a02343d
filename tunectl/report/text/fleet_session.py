"""`tunectl fleet open`: where the session is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tunectl.report.escape import printable
from tunectl.report.machines import folded
from tunectl.report.text.layout import line, prose
from tunectl.report.text.sheet import Sheet


def render(body: Mapping[str, Any], sheet: Sheet) -> None:
    """Prints a tunectl.fleet.session/1 body."""
    line(sheet, (printable(body["directory"]), "bold"))
    hosts = body["hosts"]
    prose(sheet, f"{len(hosts):,} to be asked: {', '.join(folded(hosts))}", indent=2)
