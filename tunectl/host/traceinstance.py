"""A trace of our own in tracefs, beside the global one, which is not touched. It ends with the `with` that made it.

Its name says whose it is, as tunectl-probe's do (native/src/jitter/tracefs.c): what a killed process leaves is swept
away by the next probe with a trace, and check.tracing names it.

To switch an event on or off the kernel patches its own code, and on x86 interrupts every CPU for that, a few times
(arch/x86/kernel/alternative.c, text_poke_bp_batch): nobody may be at work on the isolated CPUs meanwhile.
Source: Documentation/trace/ftrace.rst (Instances), events.rst.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from tunectl.cpulist import CpuSet, format_cpumask
from tunectl.host.procs import read_start
from tunectl.host.sysroot import Sysroot

_ATTEMPTS = 50  # a reader of one of its files makes the kernel refuse to take the instance away
_PAUSE_S = 0.02


class TraceInstance:
    """One instance; `below` is its directory, from the root."""

    def __init__(self, root: Sysroot, below: str) -> None:
        self._root = root
        self._below = below
        self.path = root.path(below)

    def text(self) -> str:
        """What it has recorded."""
        return self._root.read_text(f"{self._below}/trace")

    def write(self, name: str, text: str) -> None:
        """One write into one of its files. OSError where the kernel refuses."""
        fd = os.open(f"{self.path}/{name}", os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)

    def switch(self, on: bool) -> None:
        """Records from now on, or no more."""
        self.write("tracing_on", "1" if on else "0")


def events_of(root: Sysroot, place: str, wanted: Sequence[str]) -> list[str]:
    """Those events, as group/event, that this kernel has. Never raises."""
    return [event for event in wanted if root.exists(f"{place}/events/{event}/enable")]


@contextmanager
def trace_instance(root: Sysroot, place: str, events: Sequence[str], cpus: CpuSet) -> Iterator[TraceInstance]:
    """An instance that will record these events, group/event, where they happen on `cpus`. OSError where it cannot be.

    `place` is where tracefs is mounted. It records once it is switched on, and is gone at the end.
    """
    instance = TraceInstance(root, f"{place}/instances/tunectl-{os.getpid()}-{read_start(root, 'self')}")
    os.mkdir(instance.path, 0o700)
    try:
        instance.switch(False)
        instance.write("tracing_cpumask", format_cpumask(cpus))
        for event in events:
            instance.write(f"events/{event}/enable", "1")
        yield instance
    finally:
        with suppress(OSError):
            instance.write("events/enable", "0")
        _remove(instance.path)


def _remove(path: str) -> None:
    for _ in range(_ATTEMPTS):
        with suppress(OSError):
            os.rmdir(path)
            return
        time.sleep(_PAUSE_S)
    os.rmdir(path)
