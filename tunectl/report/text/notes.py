"""What a page says beside its result: notes, what was not run, whether a reboot is due."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tunectl.report.text.layout import heading, prose
from tunectl.report.text.sheet import Sheet


def notes(sheet: Sheet, texts: Iterable[str], title: str = "Notes") -> None:
    """Each note as a paragraph of its own; nothing where there is none."""
    listed = list(texts)
    if listed:
        heading(sheet, title)
    for text in listed:
        prose(sheet, str(text), indent=2, label="- ")


def not_run(sheet: Sheet, body: Mapping[str, Any]) -> None:
    """The programs a recorded host cannot run."""
    notes(sheet, body.get("not_run", ()), "Not run")


def reboot(sheet: Sheet, body: Mapping[str, Any]) -> None:
    """Says that a reboot is due, where one is."""
    if body.get("reboot_required"):
        sheet.line()
        prose(sheet, "A reboot is needed before all of this is in force.", style="yellow")
