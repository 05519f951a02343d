"""What a window says about a CPU: the questions the shipped checks ask. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from tunectl.checking.window import Run, Window
from tunectl.cpulist import CpuSet
from tunectl.host.interrupts import PRIVATE
from tunectl.wording import few

# Two threads that take turns get half of a CPU each; more than that is a spinner, or as good as one.
BUSY = 0.5
_PRIVATE_ROW = re.compile(PRIVATE)


class Landed(NamedTuple):
    """Interrupts of one device that arrived on one CPU."""

    irq: int
    device: str
    times: int


class Trespass(NamedTuple):
    """A thread that has no business on an isolated CPU, and whether it was put there on purpose."""

    run: Run
    pinned: bool


def device_interrupts(window: Window, cpu: int) -> list[Landed]:
    """The device interrupts that arrived on a CPU, the most frequent first."""
    landed = [
        Landed(int(row), device_name(window.describe(row)), count)
        for row, count in window.interrupts_on(cpu).items()
        if row.isdigit() and not _PRIVATE_ROW.search(window.describe(row))
    ]
    return sorted(landed, key=lambda one: (-one.times, one.irq))


def device_name(description: str) -> str:
    """`virtio1-req.0` of `PCI-MSIX-0000:00:02.0 1-edge virtio1-req.0`: the handlers' names come last.

    Shared lines name several, `a, b`; a line without a handler is shown as it is.
    """
    parts = re.split(r"(?:^|\s)\S*(?:edge|level|Edge|Level|fasteoi|None)(?:\s+|$)", description.strip(), maxsplit=1)
    return (parts[-1] or description).strip()


def trespassers(window: Window, cpu: int, isolated: CpuSet) -> list[Trespass]:
    """The movable threads that ran on an isolated CPU, and the threads of user space pinned to it.

    A thread that may run on many CPUs, this one among them, and did not, is no trespasser.
    """
    found = []
    for run in window.runs:
        if not run.thread.movable:
            continue
        pinned = _home(run, isolated) == cpu
        if pinned or (run.ran and run.thread.cpu == cpu):
            found.append(Trespass(run, pinned))
    return sorted(found, key=lambda one: not one.pinned)


def _home(run: Run, isolated: CpuSet) -> int | None:
    """The isolated CPU a thread is pinned to, the one it last ran on where there are several; else None.

    Where a kernel thread may run is another matter (checking/kthreads.py).
    """
    allowed = run.thread.allowed
    if run.thread.kernel or not allowed or not allowed <= isolated:
        return None
    return run.thread.cpu if run.thread.cpu in allowed else min(allowed)


def spinners(window: Window, cpus: CpuSet) -> list[Run]:
    """The threads that kept one of `cpus` busy for more than half of the window, one a CPU."""
    found: dict[int, Run] = {}
    for run in window.runs:
        if run.thread.cpu in cpus and run.busy > BUSY:
            found.setdefault(run.thread.cpu, run)
    return [found[cpu] for cpu in sorted(found)]


def housekeeping_siblings(core: CpuSet, isolated: CpuSet) -> CpuSet:
    """The CPUs of a physical core that are left to housekeeping while another of its CPUs is isolated."""
    return core - isolated if core & isolated else frozenset()


def some(names: Iterable[str], most: int = 5) -> str:
    """A list for people: the first few, and how many more."""
    return few(names, most, "; ")
