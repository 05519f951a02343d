"""What the host's counters did during a window of time, and what that says about a CPU: what the shipped checks ask.

Reads only what the kernel keeps in memory: no reading here interrupts the CPU it is about.
"""

import os
import re
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tunectl.cpulist import CpuSet
from tunectl.host.cpus import IDLE, IOWAIT, parse_cpu_times
from tunectl.host.interrupts import PRIVATE, TIMERS, Interrupts, arrivals, parse_interrupts
from tunectl.host.nics import read_backlog_drops
from tunectl.host.openfiles import Socket, read_sockets
from tunectl.host.procs import Thread, read_slices, read_thread, read_threads_and_probes
from tunectl.host.scheduling import REAL_TIME, scheduling_of
from tunectl.host.sysroot import Sysroot
from tunectl.wording import few

CLOCKSOURCE = "sys/devices/system/clocksource/clocksource0"


def is_timer_row(name: str, description: str) -> bool:
    """Is it the per-CPU timer? It has a row of its own on x86, and a numbered one named after it on ARM and RISC-V."""
    return name == "LOC" or description.endswith(TIMERS)


class Counters(NamedTuple):
    """The host's counters at one moment."""

    at: float  # time.monotonic(), beside the reading of the interrupts
    interrupts: Interrupts
    idle_s: Mapping[int, float]
    threads: Mapping[tuple[int, int], Thread]
    clocksource: str
    backlog_drops: Mapping[int, int] = {}  # by CPU
    sockets: Mapping[tuple[int, int], Socket] = {}  # of the declared threads' processes, by (pid, inode)
    probes: Mapping[tuple[int, int], Thread] = {}  # our own
    slices: Mapping[int, int] = {}  # how often anything was put on each CPU


class Run(NamedTuple):
    """A thread that was there at the end of the window, and what it did meanwhile."""

    thread: Thread
    ran: bool
    busy: float  # share of the window it was on a CPU, 0 to 1


def read_counters(root: Sysroot, *, last: bool = False, declared: Collection[tuple[int, int]] = ()) -> Counters:
    """The counters now. The `last` reading also asks where each thread of user space may run.

    The threads take longest: they are read outside the pair of interrupt readings, so that those stand close. Of the
    `declared` ones, by (pid, tid), both readings have everything.
    """
    threads, probes = ({}, {}) if last else read_threads_and_probes(root)
    for key in () if last else declared:
        if thread := read_thread(root, *key, affinity=True):
            threads[key] = thread
    clocksource = root.get(f"{CLOCKSOURCE}/current_clocksource").strip()
    drops = read_backlog_drops(root) if declared else {}
    sockets = {
        (pid, socket.inode): socket for pid in {pid for pid, _ in declared} for socket in read_sockets(root, pid)
    }
    idle_s = parse_idle(root.get_text("proc/stat"))
    slices = read_slices(root)
    at, text = time.monotonic(), root.get_text("proc/interrupts")
    if last:
        threads, probes = read_threads_and_probes(root, affinity=True)
    return Counters(at, parse_interrupts(text), idle_s, threads, clocksource, drops, sockets, probes, slices)


def parse_idle(text: str) -> dict[int, float]:
    """Seconds each CPU has been idle, waiting for I/O included. /proc/stat"""
    times = parse_cpu_times(text).items()
    return {
        cpu: (ticks[IDLE] + ticks[IOWAIT]) / os.sysconf("SC_CLK_TCK") for cpu, ticks in times if len(ticks) > IOWAIT
    }


@dataclass(frozen=True)
class Window:
    """Two readings of the counters, and what happened between them. Pure."""

    before: Counters
    after: Counters

    @property
    def seconds(self) -> float:
        """How long the window was."""
        return self.after.at - self.before.at

    @cached_property
    def still(self) -> bool:
        """Did no interrupt of any kind arrive anywhere? Then the host does not run: it is a recording."""
        earlier, later = self.before.interrupts, self.after.interrupts
        return earlier.cpus == later.cpus and all(
            row.counts == earlier.rows[name].counts for name, row in later.rows.items() if name in earlier.rows
        )

    def interrupts_on(self, cpu: int) -> dict[str, int]:
        """How many of each kind arrived on a CPU, those that did: by row name, `36` or `LOC`."""
        return arrivals(self.before.interrupts, self.after.interrupts, cpu)

    def describe(self, row: str) -> str:
        """What /proc/interrupts says of a row: chip, trigger and the devices behind it."""
        return self.after.interrupts.rows[row].description

    def timer_interrupts(self, cpu: int) -> int | None:
        """Local timer interrupts on a CPU, or None where this host does not count them."""
        rows = self.after.interrupts.rows
        names = [name for name, row in rows.items() if is_timer_row(name, row.description)]
        if not names or cpu not in self.before.interrupts.cpus or cpu not in self.after.interrupts.cpus:
            return None
        arrived = self.interrupts_on(cpu)
        return sum(arrived.get(name, 0) for name in names)

    def idle_share(self, cpu: int) -> float | None:
        """The share of the window a CPU idled, 0 to 1; None where this host does not say."""
        earlier, later = self.before.idle_s.get(cpu), self.after.idle_s.get(cpu)
        if earlier is None or later is None or self.seconds <= 0:
            return None
        return min(max((later - earlier) / self.seconds, 0.0), 1.0)

    @cached_property
    def runs(self) -> list[Run]:
        """What each thread did, the busiest first."""
        runs = []
        for key, now in ((key, thread) for key, thread in self.after.threads.items() if thread.alive):
            then = self.before.threads.get(key) or now._replace(state="S", slices=0, cpu_s=0.0, run_s=0.0)
            used = max(now.cpu_s - then.cpu_s, now.run_s - then.run_s, 0.0)
            # A spinner that is never preempted gets no new slice, and without a tick little is charged to it: its
            # state tells. A short visit is not charged a whole clock tick: its slices tell.
            ran = now.state == "R" or now.slices != then.slices or used > 0
            runs.append(Run(now, ran, min(used / self.seconds, 1.0) if self.seconds > 0 else 0.0))
        return sorted(runs, key=lambda run: (-run.busy, run.thread.pid, run.thread.tid))


# Two threads that take turns get half of a CPU each; more than that is a spinner, or as good as one.
BUSY = 0.5
# The kernel itself stops real-time threads at 0.95 of each second, unless sched_rt_runtime_us is -1.
HOGGED = 0.9
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
    return sorted(found, key=lambda trespass: not trespass.pinned)


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


def hogs(window: Window, cpus: CpuSet) -> dict[int, list[Run]]:
    """The real-time threads of user space that left others next to nothing of a CPU, by CPU, the busiest first."""
    found: dict[int, list[Run]] = {}
    for run in window.runs:
        real_time = scheduling_of(run.thread).policy in REAL_TIME
        if real_time and not run.thread.kernel and run.thread.cpu in cpus and run.busy:
            found.setdefault(run.thread.cpu, []).append(run)
    return {cpu: found[cpu] for cpu in sorted(found) if sum(run.busy for run in found[cpu]) > HOGGED}


def never_ran(window: Window, cpus: CpuSet) -> list[Run]:
    """The kernel's threads on these CPUs that were ready at both ends of the window, and got no time in between."""
    found = []
    for run in window.runs:
        then = window.before.threads.get((run.thread.pid, run.thread.tid))
        if not then or not run.thread.kernel or run.thread.cpu not in cpus or run.busy:
            continue
        if (then.state, then.slices, then.began) == ("R", run.thread.slices, run.thread.began) and run.ran:
            found.append(run)
    return found


def housekeeping_siblings(core: CpuSet, isolated: CpuSet) -> CpuSet:
    """The CPUs of a physical core that are left to housekeeping while another of its CPUs is isolated."""
    return core - isolated if core & isolated else frozenset()


def some(names: Iterable[str], most: int = 5) -> str:
    """A list for people: the first few, and how many more."""
    return few(names, most, "; ")
