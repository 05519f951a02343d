"""The fixtures, unpacked as if they had been made where they are now."""

import json
import subprocess
import zlib
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent / "fixtures"
_MADE_AT = "/tmp/host"


def unpacked(name: str, root: Path) -> Path:
    """The tree of that name at `root`, which need not exist."""
    root.mkdir(parents=True)
    subprocess.run(["tar", "-xpf", FIXTURES / f"{name}.tar.xz", "-C", root], check=True)
    journal = root / "var/lib/tunectl/journal.jsonl"
    if journal.exists():
        journal.write_bytes(b"".join(_moved(line, str(root)) for line in journal.read_bytes().splitlines()))
    return root


def _moved(line: bytes, root: str) -> bytes:
    """A line of the journal with the host's path replaced, and its checksum."""
    body = line.partition(b" ")[2].replace(_MADE_AT.encode(), root.encode())
    return f"{zlib.crc32(body):08x} ".encode() + body + b"\n"


def waiting(receiver: str) -> list[dict[str, str]]:
    """What waited for this receiver."""
    rows: dict[str, list[dict[str, str]]] = json.loads((FIXTURES / "waiting.json").read_text())
    return rows[receiver]


def receivers() -> list[str]:
    """Whose alerts waited."""
    return list(json.loads((FIXTURES / "waiting.json").read_text()))


def told_of(row: Any) -> dict[str, str]:
    """Of an alert or its document, what waiting() has."""
    return {name: str(row[name]) for name in ("rule", "subject", "status", "since", "at")}
