"""Kernel threads that can be told where to run, through sched_setaffinity(2).

Source: Documentation/admin-guide/kernel-per-CPU-kthreads.rst; kernel/kthread.c. Those that belong to a CPU
(PF_NO_SETAFFINITY) cannot move and are left alone. The kernel gives the thread of an interrupt the CPU of its
interrupt, and no other, each time that this one is moved (kernel/irq/manage.c). In between anybody may give it another
mask: taskset does, and so does a cpuset partition that comes or goes. The threads of memory nodes are apart: with
nohz_full= the kernel keeps all others off the isolated CPUs by itself.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from tunectl.command import as_data
from tunectl.cpulist import CpuSet
from tunectl.errors import UsageError
from tunectl.host.irqs import read_delivery
from tunectl.host.procs import (
    KTHREADD,
    Thread,
    hidden_threads,
    is_of_node,
    parse_allowed,
    read_comms,
    read_kernel_threads,
)
from tunectl.host.sysroot import Sysroot
from tunectl.knobs.codecs import CPULIST
from tunectl.knobs.row import Batch, Knob, Step, View, once
from tunectl.model import Change, Reading, State

_UNSEEN = "no kernel threads can be seen here (a container?)"
_SHOWN = "/proc/PID/status (Cpus_allowed_list, of kernel threads)"
_FILES = ("proc/[0-9]*/stat", "proc/[0-9]*/status")


class KthreadFacts(NamedTuple):
    """The thread that a reading is about; for the summary, the threads that belong to isolated CPUs and stay."""

    comm: str
    bound: tuple[str, ...] = ()
    delivered: CpuSet = frozenset()  # of the thread of an interrupt: where that one is delivered


class Kthreads:
    """The movable kernel threads. One reading sums up; each that may use an isolated CPU has one of its own."""

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """Value: where the thread may run; of the summary, the CPUs wanted."""
        bound: list[str] = []
        offenders: list[Reading] = []
        seen = False
        for thread in read_kernel_threads(view.root):
            seen = True
            allowed = _allowed(view.root, thread)
            if thread.of_node or not allowed or allowed & view.scope.present <= want:
                continue
            delivered = read_delivery(view.root, thread.interrupt) if thread.interrupt is not None else frozenset()
            if thread.follows and not (delivered and delivered <= want):
                continue  # other rows place these: workqueue.cpumask, and the affinity of each interrupt
            if not thread.movable:
                bound.append(thread.comm)
                continue
            facts = KthreadFacts(thread.comm, delivered=delivered)
            # Other restrictions of the thread stay. One with isolated CPUs only gets all that are wanted.
            target = delivered or allowed & want or want
            value = allowed & view.scope.present
            offenders.append(Reading(knob.name, str(thread.pid), State.READ, value, write=target, facts=facts))
        if not seen:
            yield unseen(knob, view)
            return
        yield Reading(knob.name, "", State.READ, want, facts=KthreadFacts("", tuple(bound)))
        yield from offenders

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """One call a thread."""
        for _, change in batch:
            yield _step(int(change.instance), change)

    def describe(self) -> tuple[str, ...]:
        """Where the affinity shows."""
        return (_SHOWN,)

    def reads(self) -> tuple[str, ...]:
        """Files of every process: only its stat says whether it is a kernel thread."""
        return (*_FILES, "proc/irq/[0-9]*/smp_affinity_list", "proc/irq/[0-9]*/effective_affinity_list")


class NodeThreads:
    """kswapd and kcompactd of each memory node, by their names: kswapd0, kcompactd0. One reading a thread."""

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """Value: where the thread may run."""
        names = comms_of(view)
        pids = [pid for pid, name in names if is_of_node(name)]
        threads = [thread for thread in read_kernel_threads(view.root, pids) if thread.of_node]
        if not threads and names and not hidden_threads(view.root):
            yield Reading(knob.name, "", State.ABSENT, reason="this kernel has no threads of memory nodes")
        elif not threads:
            yield unseen(knob, view)
        for thread in threads:
            allowed = _allowed(view.root, thread)
            if not allowed:
                reason = f"/proc/{thread.pid}/status does not say where {as_data(thread.comm)} may run"
                yield Reading(knob.name, thread.comm, State.UNREADABLE, reason=reason)
                continue
            # A node may be isolated as a whole: then its threads work from another one.
            value, target = allowed & view.scope.present, allowed & want or want
            yield Reading(knob.name, thread.comm, State.READ, value, write=target)

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """One call a thread."""
        pids = {thread.comm: thread.pid for thread in read_kernel_threads(view.root) if thread.of_node}
        for _, change in batch:
            if change.instance in pids:
                yield _step(pids[change.instance], change)

    def describe(self) -> tuple[str, ...]:
        """Where the affinity shows."""
        return (_SHOWN,)

    def reads(self) -> tuple[str, ...]:
        """Files of every process: only its stat says whether the kernel gave it its name."""
        return (*_FILES, "proc/[0-9]*/comm")


def unseen(knob: Knob, view: View, instance: str = "") -> Reading:
    """Of kernel threads none can be seen: every kernel has some, so nothing is known. A recording may be without."""
    if hidden := hidden_threads(view.root):
        number = errno.EPERM if os.geteuid() else None  # root sees them, unless it is root in a container
        return Reading(knob.name, instance, State.UNREADABLE, reason=hidden, errno=number)
    return Reading(knob.name, instance, State.ABSENT, reason=_UNSEEN)


@once
def comms_of(view: View) -> tuple[tuple[int, str], ...]:
    """(pid, name) of each process; none where the kernel's cannot be seen (a container, a recording).

    In a container anybody may be process 2 and named kthreadd: hidden_threads() asks the kernel.
    """
    comms = tuple(read_comms(view.root))
    return comms if (KTHREADD, "kthreadd") in comms and not hidden_threads(view.root) else ()


def _allowed(root: Sysroot, thread: Thread) -> CpuSet | None:
    with suppress(UsageError):
        return parse_allowed(root.get_text(f"proc/{thread.pid}/status"))
    return None


def _step(pid: int, change: Change) -> Step:
    return Step("affinity", f"proc/{pid}/status", CPULIST.encode(change.value), (change,), CPULIST)
