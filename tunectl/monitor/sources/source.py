"""What a source is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tunectl.monitor.eyes import Eyes
from tunectl.monitor.model import Sample


class Source(NamedTuple):
    """One way to learn of the host. It keeps what it needs between looks in `eyes.keep`."""

    name: str
    reads: tuple[str, ...]  # paths, as in the catalogue
    disturbs: str  # whom reading interrupts, and why not an isolated CPU
    valid: str  # when what it reads says something about now
    read: Callable[[Eyes], Iterable[Sample]]
