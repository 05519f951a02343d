"""A record on disk as one line of JSON with its checksum: the journal's, and those in the monitor's store."""

from __future__ import annotations

import zlib
from typing import Any


def line_of(record: dict[str, Any]) -> bytes:
    """The record as it stands in the file."""
    import json  # slow to import: only where there is a journal

    body = json.dumps(record, ensure_ascii=True, separators=(",", ":"))
    return f"{zlib.crc32(body.encode()):08x} {body}\n".encode()


def decode(line: bytes) -> dict[str, Any] | None:
    """One record; None where the line is not as it was written."""
    import json

    crc, _, body = line.partition(b" ")
    try:
        if crc != f"{zlib.crc32(body):08x}".encode():
            return None
        record = json.loads(body)
    except (ValueError, RecursionError):  # nesting beyond measure is nothing that anybody wrote
        return None
    return record if isinstance(record, dict) else None
