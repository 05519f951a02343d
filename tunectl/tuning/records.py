"""One line of the journal: what a write was, as a record, with its checksum."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

KINDS = ("value", "file", "link", "directory", "removal")


class Entry(NamedTuple):
    """One write, as the journal knows it."""

    seq: int
    boot_id: str
    kind: str  # one of KINDS
    path: str
    before: str | None  # None: there was none
    undo: str  # what to write to a kernel attribute to have `before` again
    after: str
    mode: int | None
    knobs: tuple[str, ...]  # knob and instance of each change: ("irq.affinity", "42") as "irq.affinity[42]"
    commands: tuple[str, ...]
    shown: str | None = None  # what the host showed after the write; None: the write may not have happened
    errno: int | None = None  # the write was refused or failed
    told: bool = False  # the programs named in `commands` have heard of it

    @property
    def persistent(self) -> bool:
        """Does it outlive the boot?"""
        return self.kind != "value"


def line_of(record: dict[str, Any]) -> bytes:
    import json  # slow to import: only where there is a journal

    body = json.dumps(record, ensure_ascii=True, separators=(",", ":"))
    return f"{zlib.crc32(body.encode()):08x} {body}\n".encode()


def decode(line: bytes) -> dict[str, Any] | None:
    """One record; None where the line is not as it was written."""
    import json

    crc, _, body = line.partition(b" ")
    try:
        if int(crc, 16) != zlib.crc32(body):
            return None
        record = json.loads(body)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
