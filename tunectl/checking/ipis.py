"""Interrupts that other CPUs send to an isolated one: how many, and who is likely to send them. Pure.

Rows of /proc/interrupts: CAL, TLB, RES and IWI on x86 (arch/x86/kernel/irq.c), IPI0 to IPI6 on arm64 and riscv, whose
descriptions are the same words (arch/arm64/kernel/smp.c).

Who interrupts other CPUs, by the kernel's own trace: the events that fire where such an interrupt is sent.

Source: include/trace/events/ipi.h (ipi_send_cpu and ipi_send_cpumask since 6.4, ipi_raise on arm and arm64).
"""

import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

from tunectl import kinds
from tunectl.checking.window import Run, Window
from tunectl.cpulist import CpuSet, parse_cpumask
from tunectl.errors import UsageError
from tunectl.fix import NOTHING, Fix, to_decide, to_type
from tunectl.host.sysroot import Sysroot
from tunectl.host.tracefs import events_of, find_place, trace_instance

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


EVENTS = ("ipi/ipi_send_cpu", "ipi/ipi_send_cpumask", "ipi/ipi_raise")
_TRACED_S = 0.5
_MOUNT = to_type(kinds.mount_tracefs())
_AGAIN = to_decide("check again while they come")
_ONE_BY_ONE = to_decide(
    "end what may send them one by one, and check again: a reader of a CPU's devices, a tracer, a profiler, a program "
    "that shares memory with a thread there"
)
# "  rdmsr-612     [001] d..1.   123.456789: ipi_send_cpu: cpu=3 callsite=... callback=..."
_LINE = re.compile(r"\s*(?P<comm>.+)-(?P<pid>\d+)\s+(?:\([^)]*\)\s+)?\[\d+\]\s.*?\d: (?P<event>ipi_\w+): (?P<rest>.*)")
_FIELD = re.compile(r"(\w+)=(\S+)")


class Sender(NamedTuple):
    """Who sent interrupts to one CPU: the process, the code that sent them, and what the CPU had to run."""

    comm: str
    pid: int
    callsite: str
    callback: str
    times: int


class IpiTrace(NamedTuple):
    """The text of a trace; where there is none, why, and what would give one."""

    text: str
    lack: str = ""
    fix: Fix = NOTHING


AS_ROOT = to_decide("find the sender: as root, tunectl check")


def trace_senders(root: Sysroot, cpus: CpuSet) -> IpiTrace:
    """The trace of half a second, of what was sent from `cpus`. Never raises."""
    return trace_events(root, EVENTS, cpus, _TRACED_S)


def trace_events(root: Sysroot, wanted: Sequence[str], cpus: CpuSet, seconds: float) -> IpiTrace:
    """The trace of some seconds, of these events on `cpus`. Never raises.

    It disturbs: see host/tracefs.py.
    """
    place = find_place(root)
    if place is None:
        return IpiTrace("", "tracefs is not mounted, which names senders", _MOUNT)
    try:
        root.names(place)
        events = events_of(root, place, wanted)
        if not events:
            return IpiTrace("", "this kernel has no tracepoints for what CPUs send each other", _ONE_BY_ONE)
        with trace_instance(root, place, events, cpus) as instance:
            instance.switch(True)
            time.sleep(seconds)
            instance.switch(False)
            return IpiTrace(instance.text(), f"nobody sent any in the {seconds:g} s that were traced", _AGAIN)
    except OSError as error:
        fix = AS_ROOT if isinstance(error, PermissionError) and os.geteuid() else _ONE_BY_ONE
        return IpiTrace("", f"the kernel's trace, which names senders, cannot be had: {error.strerror}", fix)


def busy_senders(text: str, cpu: int, without: int) -> list[Sender]:
    """Those of senders_to() that by themselves sent more than a quiet CPU takes; all where only together they did."""
    senders, limit = senders_to(text, cpu, without), PER_S * _TRACED_S
    alone = [sender for sender in senders if sender.times > limit]
    return alone or (senders if sum(sender.times for sender in senders) > limit else [])


def senders_to(text: str, cpu: int, without: int) -> list[Sender]:
    """Who sent something to a CPU, the busiest first, by a trace's text. `without` is the pid of who traced."""
    found: Counter[tuple[str, int, str, str]] = Counter()
    for line in text.split("\n"):
        match = _LINE.match(line)
        if match is None or int(match["pid"]) == without:
            continue
        fields = dict(_FIELD.findall(match["rest"]))
        if cpu in _targets(fields):
            who = match["comm"].strip(), int(match["pid"])
            found[*who, _function(fields.get("callsite", "")), _function(fields.get("callback", ""))] += 1
    return [Sender(*key, times) for key, times in found.most_common()]


def _targets(fields: dict[str, str]) -> Iterable[int]:
    if fields.get("cpu", "").isdecimal():
        return (int(fields["cpu"]),)
    with suppress(UsageError):
        return parse_cpumask(fields.get("cpumask") or fields.get("target_mask") or "0")
    return ()


def _function(symbol: str) -> str:
    """`generic_exec_single` of `generic_exec_single+0x36/0x110`; "" for none, and for 0x0."""
    name = symbol.partition("+")[0]
    return "" if name.startswith("0x") else name
