"""The threads of a network card's interrupts and their priority, through sched_setscheduler(2).

The kernel starts each as SCHED_FIFO 50, when the driver requests the interrupt: at boot, when the interface goes up,
and again where it gets other channels or rings. What is written here lasts as long as that thread.
Source: kernel/irq/manage.c (setup_irq_thread, irq_thread); kernel/sched/syscalls.c (sched_set_fifo); sched(7).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tunectl.command import as_data
from tunectl.host.nics import read_vectors
from tunectl.host.procs import Thread, read_kernel_threads
from tunectl.host.scheduling import POLICIES, Scheduling, as_text, parse_scheduling, scheduling_of
from tunectl.host.sysroot import Sysroot
from tunectl.knobs.codecs import Codec
from tunectl.knobs.drivers.kthreads import unseen
from tunectl.knobs.drivers.nicfile import absent, interfaces
from tunectl.knobs.row import Batch, Knob, Step, View
from tunectl.model import Reading, Scope, State

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
            elif not any(irq in threads or _in_use(view.root, irq) for irq in irqs):
                yield Reading(
                    knob.name, nic, State.MOOT, reason=f"the driver of {as_data(nic)} uses no interrupt: is it down?"
                )
            else:
                used = [irq for irq in irqs if irq in threads or _in_use(view.root, irq)]
                yield from (_read(knob, nic, irq, threads.get(irq, ()), want) for irq in used)

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
    thread = next((one for one in threads if scheduling_of(one) != want), threads[0])
    how = scheduling_of(thread)
    name = f"{as_data(thread.comm)} (pid {thread.pid}), the thread of interrupt {irq} of {as_data(nic)},"
    blocked = "" if how.policy in _RESTORABLE else f"{name} runs as {how}, which restore could not bring back"
    return Reading(knob.name, str(irq), State.READ, how, reason=f"{name} runs as {how}", blocked=blocked)
