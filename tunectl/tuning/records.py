"""One line of the journal: what a write was, as a record, with its checksum."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

from tunectl.model import Target, parse_target

KINDS = ("value", "affinity", "file", "link", "directory", "removal", "edit")


class Entry(NamedTuple):
    """One write, as the journal knows it."""

    seq: int
    boot_id: str
    kind: str  # one of KINDS
    path: str
    before: str | None  # None: there was none
    undo: str  # what to write to a kernel attribute to have `before` again; of an edit, the file without us
    after: str
    mode: int | None
    targets: tuple[Target, ...]  # what the write was for; a record has their names, under "knobs"
    commands: tuple[str, ...]
    shown: str | None = None  # what the host showed after the write; None: the write may not have happened
    errno: int | None = None  # the write was refused or failed
    told: bool = False  # the programs named in `commands` have heard of it

    @property
    def original(self) -> str | None:
        """What to bring back. An edited file may have held words of ours before: a kernel upgrade copies them."""
        return self.undo if self.kind == "edit" and self.before is not None else self.before

    @property
    def persistent(self) -> bool:
        """Does it outlive the boot? What is made in /sys (a control group) does not."""
        return self.kind not in ("value", "affinity") and not self.path.startswith("sys/")

    def record(self) -> dict[str, Any]:
        """Its fields, as a record of kind `before` has them."""
        fields = {"knobs" if name == "targets" else name: value for name, value in self._asdict().items()}
        return {**fields, "knobs": list(map(str, self.targets))}


def entry_of(record: dict[str, Any]) -> Entry:
    """The entry that `record` was made of. KeyError, TypeError or ValueError for anything else."""
    fields = {**record, "commands": tuple(record["commands"])}
    fields["targets"] = tuple(parse_target(name) for name in fields.pop("knobs"))
    entry = Entry(**fields)
    if entry.kind not in KINDS or entry.path.startswith("/") or ".." in entry.path.split("/"):
        raise ValueError("no path below the root")
    return entry


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
