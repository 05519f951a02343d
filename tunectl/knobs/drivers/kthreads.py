"""Kernel threads that can be told where to run, through sched_setaffinity(2), and the priority of those of interrupts.

Source: Documentation/admin-guide/kernel-per-CPU-kthreads.rst; kernel/kthread.c. Those that belong to a CPU
(PF_NO_SETAFFINITY) cannot move and are left alone. The kernel gives the thread of an interrupt the CPU of its
interrupt, and no other, each time that this one is moved (kernel/irq/manage.c). In between anybody may give it another
mask: taskset does, and so does a cpuset partition that comes or goes. The threads of memory nodes are apart: with
nohz_full= the kernel keeps all others off the isolated CPUs by itself.

The kernel starts each thread of an interrupt as SCHED_FIFO 50, when the driver requests the interrupt: at boot, when
the interface goes up, and again where it gets other channels or rings. A priority lasts as long as that thread.
Source: kernel/irq/manage.c (setup_irq_thread, irq_thread); kernel/sched/syscalls.c (sched_set_fifo); sched(7).
"""

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from tunectl.command import as_data
from tunectl.cpulist import CpuSet
from tunectl.errors import UsageError
from tunectl.host.interrupts import read_delivery
from tunectl.host.nics import read_vectors
from tunectl.host.procs import (
    KTHREADD,
    Thread,
    hidden_threads,
    is_of_node,
    parse_allowed,
    read_comms,
    read_kernel_threads,
)
from tunectl.host.scheduling import POLICIES, Scheduling, as_text, parse_scheduling, scheduling_of
from tunectl.host.sysroot import Sysroot
from tunectl.knobs.codecs import CPULIST, Codec
from tunectl.knobs.drivers.nicfile import absent, interfaces
from tunectl.knobs.row import Batch, Knob, Step, View, once
from tunectl.model import Change, Reading, Scope, State

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


_HIGHEST = 99
_RESTORABLE = frozenset(POLICIES.values()) - {"deadline", "ext"}  # by policy and priority alone
_ACTIONS = "sys/kernel/irq/{}/actions"


def _want(value: Any, scope: Scope) -> Scheduling:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _HIGHEST:
        raise ValueError(f"a priority of SCHED_FIFO is 1 to {_HIGHEST}")
    return Scheduling("fifo", value)


FIFO = Codec(
    "fifo priority",
    f"a priority of SCHED_FIFO, 1 to {_HIGHEST}",
    parse_scheduling,
    lambda value: f"{value.policy}:{value.priority}",
    str,
    _want,
)


class IrqThreads:
    """One target an interrupt of the interfaces that the host file names; it may have more than one thread."""

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """Value: how its threads are scheduled; where they differ, one that is not as wanted."""
        threads = threads_of_interrupts(view.root)
        for nic, problem in interfaces(view):
            irqs = () if problem else read_vectors(view.root, nic)
            if not irqs:
                reason = problem or f"{as_data(nic)} has no interrupt of its own"
                yield Reading(knob.name, nic, absent(nic), reason=reason)
            elif threads is None:
                yield unseen(knob, view, nic)
            else:
                used = [irq for irq in irqs if irq in threads or _in_use(view.root, irq)]
                yield from (_read(knob, nic, irq, threads.get(irq, ()), want) for irq in used)
                if not used:
                    reason = f"the driver of {as_data(nic)} uses no interrupt: is it down?"
                    yield Reading(knob.name, nic, State.MOOT, reason=reason)

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """One call a thread. They are looked for anew: an earlier step may have made others of them."""
        threads = threads_of_interrupts(view.root) or {}
        for _, change in batch:
            for thread in threads.get(int(change.instance), ()):
                if scheduling_of(thread) != change.value:
                    yield Step("scheduling", f"proc/{thread.pid}/stat", as_text(change.value, thread), (change,))

    def describe(self) -> tuple[str, ...]:
        """Where the priority shows."""
        return ("/proc/PID/stat (rt_priority and policy, of threads irq/N-NAME)",)

    def reads(self) -> tuple[str, ...]:
        """Files of every process: only its stat says which interrupt's thread it is."""
        return ("proc/[0-9]*/stat", _ACTIONS.format("[0-9]*"), "sys/class/net/*/operstate")


def threads_of_interrupts(root: Sysroot) -> Mapping[int, tuple[Thread, ...]] | None:
    """By interrupt its threads; None where no kernel thread can be seen at all."""
    found: dict[int, tuple[Thread, ...]] = {}
    seen = False
    for thread in read_kernel_threads(root):
        seen = True
        if thread.interrupt is not None:
            found[thread.interrupt] = (*found.get(thread.interrupt, ()), thread)
    return found if seen else None


def _in_use(root: Sysroot, irq: int) -> bool:
    """Did a driver request the interrupt, as far as the host says?"""
    path = _ACTIONS.format(irq)
    return not root.exists(path) or bool(root.get(path))


def _read(knob: Knob, nic: str, irq: int, threads: tuple[Thread, ...], want: Any) -> Reading:
    if not threads:
        why = "the kernel runs it at once (boot.threadirqs gives it one)"
        reason = f"interrupt {irq} of {as_data(nic)} has no thread: {why}"
        return Reading(knob.name, str(irq), State.ABSENT, reason=reason)
    thread = next((thread for thread in threads if scheduling_of(thread) != want), threads[0])
    how = scheduling_of(thread)
    name = f"{as_data(thread.comm)} (pid {thread.pid}), the thread of interrupt {irq} of {as_data(nic)},"
    blocked = "" if how.policy in _RESTORABLE else f"{name} runs as {how}, which restore could not bring back"
    return Reading(knob.name, str(irq), State.READ, how, reason=f"{name} runs as {how}", blocked=blocked)
