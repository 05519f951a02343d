"""The kernel threads that may run on an isolated CPU and need not, whether or not they ran while the host was watched.

Their masks tell (/proc/PID/status, Cpus_allowed_list). Those that belong to their CPU (PF_NO_SETAFFINITY) are left
alone. Source: Documentation/admin-guide/kernel-per-CPU-kthreads.rst.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from tunectl.checking.window import Run, Window
from tunectl.cpulist import CpuSet, parse_cpumask
from tunectl.errors import UsageError
from tunectl.host.irqs import read_delivery
from tunectl.host.numa import read_numa_nodes
from tunectl.host.procs import Thread
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
