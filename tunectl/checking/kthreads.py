"""Kernel threads: those that may run on an isolated CPU and need not, and those that serve a network card.

Their masks tell (/proc/PID/status, Cpus_allowed_list). Those that belong to their CPU (PF_NO_SETAFFINITY) are left
alone. Source: Documentation/admin-guide/kernel-per-CPU-kthreads.rst.

The threads that serve a network card: those of its interrupts, and the CPU's own that take over what they leave.

Source: kernel/irq/manage.c; kernel/softirq.c (wakeup_softirqd, ktimers of PREEMPT_RT); kernel/rcu/tree.c (rcuc).
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tunectl import kinds
from tunectl.checking.outcomes import IRQ_HOLDS
from tunectl.checking.window import Run, Window
from tunectl.command import as_data
from tunectl.cpulist import CpuSet, parse_cpumask
from tunectl.errors import UsageError
from tunectl.fix import Fix, in_turn, to_type
from tunectl.host.cpus import read_numa_nodes
from tunectl.host.interrupts import Irq, read_delivery
from tunectl.host.procs import Thread, parse_allowed, read_kernel_threads
from tunectl.host.scheduling import Scheduling, scheduling_of
from tunectl.host.sysroot import Sysroot
from tunectl.knobs.workqueue import CPUMASK_FILE
from tunectl.model import Scope

# The knobs that keep kernel threads away from the isolated CPUs, where the host file asks for them.
ORDINARY, OF_NODES = "kthread.affinity", "kthread.node_affinity"


class Placement(NamedTuple):
    """Where this host's kernel threads belong."""

    isolated: CpuSet
    present: CpuSet
    kept: CpuSet  # CPUs that every movable kernel thread is meant to be kept away from, but for those of memory nodes
    kept_from_nodes: CpuSet  # the same for those
    nodes: Collection[CpuSet]
    workqueues: CpuSet  # where unbound work may run
    irqs: Mapping[int, CpuSet]  # where each interrupt with a thread of its own is delivered


def read_placement(
    root: Sysroot, scope: Scope, settings: Mapping[str, Any], nohz_full: CpuSet, window: Window
) -> Placement:
    """What decides where the kernel threads of a window may be. Never raises.

    nohz_full= keeps them away at boot, but for those of memory nodes; the knobs by moving them. Where neither does, the
    scheduler's isolation has to do.
    """
    try:
        workqueues = parse_cpumask(root.get(CPUMASK_FILE))
    except UsageError:
        workqueues = frozenset()
    numbers = {irq for run in window.runs if (irq := run.thread.interrupt) is not None}
    irqs = {irq: read_delivery(root, irq) for irq in numbers}
    nodes = [node.cpus for node in read_numa_nodes(root)]
    kept = scope.isolated if ORDINARY in settings else nohz_full
    kept_from_nodes = scope.isolated if OF_NODES in settings else frozenset[int]()
    return Placement(scope.isolated, scope.present, kept, kept_from_nodes, nodes, workqueues, irqs)


def knob_of(thread: Thread) -> str:
    """The knob that moves a kernel thread, where the host file asks for it; "" where none moves this thread."""
    if not thread.kernel or thread.follows:
        return ""
    return OF_NODES if thread.of_node else ORDINARY


def strays(window: Window, cpu: int, placement: Placement) -> list[Run]:
    """The kernel threads that may run on an isolated CPU and need not."""
    return [run for run in window.runs if run.thread.kernel and needless(run.thread, cpu, placement)]


def needless(thread: Thread, cpu: int, placement: Placement) -> bool:
    """May a kernel thread run on this isolated CPU, by its mask, though nothing it does has to be done there?"""
    allowed = (thread.allowed or frozenset()) & placement.present
    if not thread.movable or cpu not in allowed:
        return False
    if thread.comm.startswith("kworker/u"):
        return cpu in placement.workqueues
    pinned = allowed <= placement.isolated
    if thread.interrupt is not None:
        # The kernel gives it the CPU of its interrupt, and that one's own rows judge it. With any other mask, narrow or
        # wide, it was left behind (by a cpuset partition that ended) or put here.
        where = placement.irqs.get(thread.interrupt, frozenset())
        return bool(where) and not where & placement.isolated
    if thread.of_node and cpu in placement.kept_from_nodes:
        return True
    if thread.of_node and allowed in placement.nodes:  # as the kernel has it
        return thread.cpu == cpu and cpu in placement.kept
    return pinned or cpu in placement.kept


_OF_A_CPU = re.compile(r"(ksoftirqd|ktimers|rcuc)/([0-9]+)")
_OFFLOADED = re.compile(r"rcuo[a-z]?/([0-9]+)")  # then that CPU's callbacks run in this thread, and rcuc has none


class Server(NamedTuple):
    """One such thread, and where it may run."""

    thread: Thread
    cpus: CpuSet  # empty where that could not be read

    def __str__(self) -> str:
        return f"{as_data(self.thread.comm)} (pid {self.thread.pid}, {scheduling_of(self.thread)})"


class Servers(NamedTuple):
    """Those of a host. Without any kernel thread in sight nothing is known."""

    of_interrupts: tuple[Server, ...] = ()
    of_cpus: tuple[Server, ...] = ()
    seen: bool = False

    def of(self, cpu: int, irqs: Iterable[Irq]) -> list[Server]:
        """The threads of these interrupts that may run on a CPU, or will with the next interrupt.

        The kernel gives a thread the CPU of its interrupt when it runs next (6.1, seen); that of a managed interrupt
        stays where somebody put it.
        """
        comes = {irq.irq: cpu in irq.effective and irq.settable is not False for irq in irqs}
        known = ((server, server.thread.interrupt) for server in self.of_interrupts)
        return [server for server, irq in known if irq in comes and (cpu in server.cpus or comes[irq])]

    def hidden(self, irqs: Iterable[Irq]) -> list[Server]:
        """The threads of these interrupts of which nobody can say where they may run."""
        numbers = {irq.irq for irq in irqs}
        return [server for server in self.of_interrupts if server.thread.interrupt in numbers and not server.cpus]

    def on(self, cpu: int, irqs: Iterable[Irq]) -> list[Server]:
        """The same; where there are any, with the CPU's own."""
        servers = self.of(cpu, irqs)
        return servers + [server for server in self.of_cpus if servers and cpu in server.cpus]


def read_servers(root: Sysroot) -> Servers:
    """As they are now. Never raises."""
    threads = list(read_kernel_threads(root))
    offloaded = {int(match[1]) for thread in threads if (match := _OFFLOADED.fullmatch(thread.comm))}
    of_interrupts, of_cpus = [], []
    for thread in threads:
        if thread.interrupt is not None:
            allowed = parse_allowed(root.get_text(f"proc/{thread.pid}/task/{thread.pid}/status"))
            of_interrupts.append(Server(thread, allowed or frozenset()))
        elif own := _OF_A_CPU.fullmatch(thread.comm):
            cpu = int(own[2])
            if own[1] != "rcuc" or cpu not in offloaded:
                of_cpus.append(Server(thread, frozenset({cpu})))
    return Servers(tuple(of_interrupts), tuple(of_cpus), bool(threads))


def outranked(servers: Iterable[Server], how: Scheduling) -> list[Server]:
    """Those that get no CPU while a thread that is scheduled so runs there: a higher rank alone would preempt it."""
    return [server for server in servers if scheduling_of(server.thread).rank <= how.rank]


def moved_away(servers: Iterable[Server], irqs: Sequence[Irq], cpu: int, housekeeping: str) -> Fix:
    """What moves the threads of interrupts off a CPU, with their interrupts where those can be moved.

    The kernel has a thread move itself, once it runs: behind a spinner it never does, so it is moved as well.
    """
    known = {irq.irq: irq for irq in irqs}
    fixes = []
    for thread, cpus in servers:
        irq = known.get(thread.interrupt) if thread.interrupt is not None else None
        if irq and cpu in irq.where and irq.settable is not False:
            fixes.append(to_type(kinds.move_interrupt(irq.irq, housekeeping), IRQ_HOLDS))
        if irq and cpu in cpus:
            fixes.append(to_type(kinds.move_thread(thread.pid, housekeeping)))
    return in_turn(*fixes)
