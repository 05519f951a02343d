"""A result of `tunectl-probe jitter`: checked for its shape, and written to a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tunectl.errors import TunectlError
from tunectl.probe.explain import SCHEMA
from tunectl.shapes import Jitter, typed


def result_text(result: object) -> str:
    """A document as JSON for a file."""
    return "".join(_written(result, "\n")) + "\n"


def _written(value: Any, line: str) -> Iterator[str]:
    """A document as JSON that an editor can show: an item a line, but the numbers of a list in one."""
    if isinstance(value, dict) and value:
        yield "{"
        for place, (key, item) in enumerate(value.items()):
            yield f"{',' if place else ''}{line} {json.dumps(key)}: "
            yield from _written(item, line + " ")
        yield line + "}"
    elif isinstance(value, list) and value and isinstance(value[0], dict | list):
        for place, item in enumerate(value):
            yield "," if place else "["
            if isinstance(item, list):  # millions of them: no blank too much
                yield "\n" + json.dumps(item, separators=(",", ":"))
            else:
                yield line + " "
                yield from _written(item, line + " ")
        yield line + "]"
    else:
        yield json.dumps(value)


def read_result(document: Any, where: str) -> Jitter:
    """The result in a tunectl.probe.jitter/1 document. TunectlError, with `where`, for any other."""
    found = document.get("schema") if isinstance(document, dict) else None
    if found != SCHEMA:
        raise TunectlError(f"{where}: expected a document of schema {SCHEMA}, found {found or 'none'}")
    return typed(document, Jitter, where)


def left_out(result: Jitter) -> str:
    """Which CPUs were not measured, and why; "" where none was left out."""
    return "; ".join(f"CPU {one.cpu} was not measured: {one.reason}" for one in result.not_measured)


def nothing_measured(result: Jitter) -> str:
    """Why a run has no CPU at all, in a sentence; "" where it has one. Such a run is no result."""
    if result.cpus:
        return ""
    why = "; ".join(f"CPU {one.cpu}: {one.reason}" for one in result.not_measured)
    return f"nothing was measured: {why or 'no CPU was left'}"


def load_problem(result: Jitter) -> str:
    """Why a run that was to be under load was not; "" where it was, and of a quiet run."""
    return f"the load did not run: {result.load.reason}" if result.load and not result.load.ran else ""
