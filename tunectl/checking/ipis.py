"""Interrupts that other CPUs send to an isolated one: how many, and who is likely to send them. Pure.

Rows of /proc/interrupts: CAL, TLB, RES and IWI on x86 (arch/x86/kernel/irq.c), IPI0 to IPI6 on arm64 and riscv, whose
descriptions are the same words (arch/arm64/kernel/smp.c).
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from tunectl.checking.window import Run, Window

# A change of the kernel's code (a tracepoint, a static key), a mapping of its own that it gives back: such things send
# a handful to every CPU, once. Whatever sends more than ten a second is at work all the time. It is also
# where the tick is told from none, and what the shipped budgets allow.
PER_S = 10.0
# In less time than this, a single handful would look like many a second.
SHORTEST_S = 1.0


class Kind(Enum):
    """Why one CPU interrupts another: the description of the row."""

    CALL = "Function call interrupts"
    TLB = "TLB shootdowns"
    WAKE = "Rescheduling interrupts"
    WORK = "IRQ work interrupts"


# A thread that is woken from another CPU costs its own CPU one of these: that is what it asked for when it slept.
_WAKES = (Kind.CALL, Kind.WAKE)


class Sent(NamedTuple):
    """Interrupts of one kind that arrived on a CPU, without those that woke its threads."""

    kind: Kind
    times: int
    seconds: float

    @property
    def per_s(self) -> float:
        """How many a second."""
        return self.times / self.seconds if self.seconds > 0 else 0.0


def allowed(seconds: float) -> float:
    """How many of each kind a quiet CPU may take in this time."""
    return PER_S * max(seconds, SHORTEST_S)


def too_many(window: Window, cpu: int) -> list[Sent]:
    """The kinds of which more arrived than a quiet CPU takes, the most frequent first."""
    seconds = window.seconds
    woken = visits(window, cpu)
    arrived: dict[Kind, int] = {}
    for row, count in window.interrupts_on(cpu).items():
        kind = _KINDS.get(window.describe(row))
        if kind:
            arrived[kind] = arrived.get(kind, 0) + count
    sent = [Sent(kind, count - (woken if kind in _WAKES else 0), seconds) for kind, count in arrived.items()]
    loud = [one for one in sent if one.times > allowed(seconds)]
    return sorted(loud, key=lambda one: -one.times)


_KINDS = {kind.value: kind for kind in Kind}


def visits(window: Window, cpu: int) -> int:
    """How often a thread was put on a CPU: at most so many interrupts came to wake one."""
    total = 0
    for key, thread in window.after.threads.items():
        before = window.before.threads.get(key)
        if thread.cpu == cpu and before is not None:
            total += max(thread.slices - before.slices, 0)
    return total


def sharing(window: Window, cpu: int) -> list[tuple[Run, Run]]:
    """The processes with a thread on this CPU and another that ran elsewhere: (the thread here, the busiest elsewhere).

    They share one address space: what the other unmaps, frees or protects, this CPU must forget (arch/x86/mm/tlb.c).
    """
    here = [run for run in window.runs if run.thread.cpu == cpu and not run.thread.kernel]
    found = []
    for run in here:
        others = [one for one in window.runs if one.thread.pid == run.thread.pid and one.thread.cpu != cpu and one.ran]
        if others:
            found.append((run, others[0]))
    return found
