"""Two files of cases side by side, and the rows of what comes of it."""

import dataclasses
from collections.abc import Callable
from typing import Any

import msgspec

from tests.schemas import fits
from tunectl.compare import compared as comparing
from tunectl.model import Document, HostId
from tunectl.probe.document import ProbeFile
from tunectl.report import render
from tunectl.shapes import fields_of

Read = Callable[..., ProbeFile]


def compared(before: ProbeFile, after: ProbeFile) -> dict[str, Any]:
    """The comparison as a document has it."""
    made: dict[str, Any] = fields_of(comparing.compared(before, after))
    return made


def both(before: ProbeFile, after: ProbeFile) -> dict[str, Any]:
    """What `compare` makes of them, checked by its schema; one file may stand for both."""
    later = msgspec.structs.replace(after.result, at="2026-11-21T10:00:00Z")
    made = compared(before, dataclasses.replace(after, result=later))
    host = {"hostname": "h", "kernel": "k", "boot_id": "b", "machine": "m"}
    header = {"schema": "tunectl.compare/1", "tunectl_version": "1", "host": host, "at": "2026-11-21T10:00:00Z"}
    fits("compare", header | made)
    return made


def rows(made: dict[str, Any], group: int = 0) -> dict[tuple[str, str | None], dict[str, Any]]:
    """The rows of a group by measure and percentile."""
    return {(row["measure"], row["percentile"]): row for row in made["groups"][group]["rows"]}


def wider(made: dict[str, Any], width: int) -> list[str]:
    """The lines of its page that are wider than this."""
    page = render(Document("compare", HostId("h", "k", "b", "m"), "", made), "text", width=width)
    return [line for line in page.splitlines() if len(line) > width]
