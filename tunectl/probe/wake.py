"""Starts `tunectl-probe wake`, spinning against sleeping, and hands back its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from tunectl.cpulist import CpuSet, parse_cpulist
from tunectl.errors import TunectlError, UsageError
from tunectl.probe.runner import PROGRAM, document_of, of_schema, start

SCHEMA = "tunectl.probe.wake/1"
# What every reader relies on; docs/schema/tunectl.probe.wake-1.json has the rest.
_OF_CASE = ("mechanism", "waiting", "way", "idle_ms", "cpus", "reason", "n", "percentiles_ns", "histogram", "warnings")
_CASES = 64  # at each idle time; more than there are
_CASE_S = 10.0  # what a case may take beyond its schedule
_GRACE_S = 60.0


@dataclass(frozen=True)
class WakeRequest:
    """The options of `tunectl-probe wake` by their names, as text; None leaves each at the program's own."""

    cpus: str | None = None
    among: str | None = None
    mechanisms: str | None = None
    waiting: str | None = None
    idle_ms: str | None = None
    messages: int | None = None
    fifo: int | None = None
    busy_poll_us: int | None = None
    intrude: bool = False
    listen: str | None = None
    connect: str | None = None

    @property
    def named(self) -> CpuSet:
        """The CPUs it may run on, as far as they are named. A list that is none, the program refuses itself."""
        with suppress(UsageError):
            return parse_cpulist(self.cpus or self.among or "")
        return frozenset()

    def words(self) -> Iterator[str]:
        """As the program's arguments."""
        for name, value in asdict(self).items():
            if value is True:
                yield f"--{name}"
            elif value is not None and value is not False:
                yield from (f"--{name.replace('_', '-')}", str(value))


def run_wake(request: WakeRequest, on_progress: Callable[[str], None] | None = None) -> dict[str, Any]:
    """The tunectl.probe.wake/1 document as the program wrote it; `on_progress` is handed a line for each case.

    Ctrl-C ends the measuring early, and the result so far comes back with `interrupted` true. TunectlError with the
    program's own reason when it fails, UsageError when it refuses the request.
    """
    words = ["wake", "--progress", *request.words()]
    done = start(words, request.named, timeout_s=_limit_s(request), on_stderr=on_progress)
    return _checked(document_of(done))


def serve_wake(request: WakeRequest, on_line: Callable[[str], None]) -> None:
    """Is the other host of a `--connect` until Ctrl-C; `on_line` is handed what the program says meanwhile."""

    def tell(line: str) -> None:
        if line.startswith(f"{PROGRAM}: listening"):  # anything else is why it failed, and is said as that
            on_line(line.removeprefix(f"{PROGRAM}: "))

    done = start(["wake", *request.words()], request.named, on_stderr=tell)
    if done.returncode:
        document_of(done)


def _limit_s(request: WakeRequest) -> float:
    """Longer than any run by its schedule: for a program that hangs. Text that is no list it refuses at once."""
    try:
        idle_ms = sum(float(word) for word in (request.idle_ms or "0,1,10,100").split(","))
    except ValueError:
        idle_ms = 0.0
    scheduled_s = (request.messages or 99) * (idle_ms if math.isfinite(idle_ms) else 0.0) / 1e3
    return _CASES * (scheduled_s + _CASE_S * (1 + (request.idle_ms or ",,,").count(","))) + _GRACE_S


def _checked(found: Any) -> dict[str, Any]:
    document = of_schema(found, SCHEMA)
    cells = document.get("cells")
    if not isinstance(cells, list) or any(name not in case for case in cells for name in _OF_CASE):
        raise TunectlError(f"{PROGRAM}: a case lacks one of {', '.join(_OF_CASE)}")
    return document
