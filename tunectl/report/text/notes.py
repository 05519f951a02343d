"""What a page says beside its result: notes, what was not run, whether a reboot is due."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console

from tunectl.report.text.layout import heading, prose


def notes(console: Console, texts: Iterable[str], title: str = "Notes") -> None:
    """Each note as a paragraph of its own; nothing where there is none."""
    listed = list(texts)
    if listed:
        heading(console, title)
    for text in listed:
        prose(console, str(text), indent=2, label="- ")


def not_run(console: Console, body: Mapping[str, Any]) -> None:
    """The programs a recorded host cannot run."""
    notes(console, body.get("not_run", ()), "Not run")


def reboot(console: Console, body: Mapping[str, Any]) -> None:
    """Says that a reboot is due, where one is."""
    if body.get("reboot_required"):
        console.line()
        prose(console, "A reboot is needed before all of this is in force.", style="yellow")
