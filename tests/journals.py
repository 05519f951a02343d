"""A journal on disk, rewritten by a test as if some of its records had never been written."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tunectl.durable import line_of

Record = dict[str, Any]


def records_of(path: Path) -> list[Record]:
    """What it holds, line by line."""
    return [json.loads(line[9:]) for line in path.read_bytes().splitlines()]


def rewrite(path: Path, wanted: Callable[[Record], bool]) -> None:
    """Only these records, as a run would have written them: none is missed."""
    kept = [one for one in records_of(path) if wanted(one)]
    for number, one in enumerate(kept, start=1):
        if "line" in one:
            one["line"] = number
    path.write_bytes(b"".join(map(line_of, kept)))
