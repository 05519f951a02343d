"""Which CPUs to isolate, and why each. Pure: topology in, proposal out.

The rules, in order:
1. Whole physical cores: SMT siblings share a core's units, so half a core is never quiet.
2. Never the boot CPU (CPU 0, or the first one online) nor its siblings: boot-time and legacy interrupts and
   timekeeping are there, and on x86 it cannot be switched off.
3. Every NUMA node keeps a housekeeping core, so that its memory and devices have one near them.
4. First the market-data NIC's node, then nodes by distance: a miss in another node's memory is paid on every message.
5. Performance cores before efficient ones; then the cores of one last-level cache before those of the next.
6. Unless a number is asked for, half of the cores of that node: the other half has to carry the system, its
   interrupts and the engine's own slower threads.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.tuning.proposal import (
    Core,
    Proposal,
    Reason,
    host_file_toml,
    housekeeping_reasons,
    isolated_reasons,
    notes,
    propose_body,
    union,
)

__all__ = ["Proposal", "Reason", "host_file_toml", "propose", "propose_body"]

if TYPE_CHECKING:
    from tunectl.host.nics import Nic
    from tunectl.host.topology import Topology

_TYPES = {"performance": 0, "unknown": 0, "efficiency": 1}


def propose(topology: Topology, *, nic: str | None = None, count: int | None = None) -> Proposal:
    """Divides the host's CPUs. `count` is the number of isolated logical CPUs wanted, rounded up to whole cores.

    Never raises: an unknown `nic`, a `count` that is too large and a host without a core to spare are refusals.
    """
    nothing = Proposal(frozenset(), topology.online, nic=nic)
    if nic is not None and nic not in {one.name for one in topology.nics}:
        there = ", ".join(one.name for one in topology.nics) or "none with a device behind it"
        return replace(nothing, refusal=f"there is no network interface '{nic}'; this host has {there}")
    if count is not None and count < 1:
        return replace(nothing, refusal=f"--count {count}: at least one CPU has to be isolated")
    cores = _cores(topology)
    kept = _kept(topology, cores)
    free = [core for core in cores if core not in kept]
    if not free:
        return replace(nothing, refusal=_nothing_free(cores))
    node, why = _node(topology, nic, free)
    wanted = _default(cores, free, node) if count is None else count
    available = sum(len(core.cpus) for core in free)
    if wanted > available:
        limit = f"at most {available} of this host's {len(topology.online)} CPUs can be isolated"
        return replace(nothing, node=node, refusal=f"--count {wanted}: {limit}: {format_cpulist(union(free))}")
    chosen = _choose(topology, free, node, wanted)
    isolated = union(chosen)
    return Proposal(
        isolated,
        topology.online - isolated,
        (*isolated_reasons(chosen, node, why), *housekeeping_reasons(cores, chosen, kept)),
        tuple(notes(topology, chosen, isolated, nic, count)),
        nic=nic,
        node=node,
    )


def _cores(topology: Topology) -> list[Core]:
    """The physical cores that are online, by their first CPU. A host without NUMA is one node."""
    found: dict[CpuSet, Core] = {}
    for cpu in topology.cpus:
        siblings = cpu.smt_siblings & topology.online
        if cpu.online and siblings not in found:
            efficient = bool(_TYPES.get(cpu.core_type, 0))
            found[siblings] = Core(siblings, cpu.numa_node or 0, cpu.package or 0, efficient, cpu.last_level_cache)
    return list(found.values())


def _kept(topology: Topology, cores: list[Core]) -> dict[Core, str]:
    """The cores that are never isolated, each with the reason."""
    boot = min(topology.online)
    kept: dict[Core, str] = {}
    for core in cores:
        if boot in core.cpus:
            shared = " and its SMT siblings" if len(core.cpus) > 1 else ""
            kept[core] = f"the boot CPU{shared}: timekeeping and boot-time interrupts are here"
    for node in sorted({core.node for core in cores} - {core.node for core in kept}):
        # An efficient core is good enough for housekeeping, and the first ones are where drivers put themselves.
        core = min((core for core in cores if core.node == node), key=lambda core: (not core.efficient, core.first))
        kept[core] = f"node {node} keeps a core for the system's work next to its memory and devices"
    return kept


def _nothing_free(cores: list[Core]) -> str:
    nodes = len({core.node for core in cores})
    if len(cores) == 1:
        why = "this host has one physical core, and the system itself needs it"
    else:
        why = f"this host has {len(cores)} physical cores in {nodes} NUMA nodes, and each node has to keep one"
    return f"no CPU can be isolated: {why}"


def _node(topology: Topology, nic: str | None, free: list[Core]) -> tuple[int, str]:
    """The node to isolate in, and why that one."""
    nodes = {core.node for core in free}
    named = next((one for one in topology.nics if one.name == nic), None) or _fastest(topology.nics)
    if named and named.numa_node is not None:
        nearest = min(nodes, key=lambda node: (_distance(topology, named.numa_node, node), node))
        near = "is on" if nearest == named.numa_node else f"is on node {named.numa_node}, the nearest with cores is"
        said = f"{named.name} {near} node {nearest}"
        return nearest, said if nic else f"{said}, and is the fastest interface that is up"
    roomiest = max(nodes, key=lambda node: (sum(core.node == node for core in free), -node))
    return roomiest, f"node {roomiest} has the most cores to spare" if len(nodes) > 1 else ""


def _fastest(nics: Iterable[Nic]) -> Nic | None:
    known = [nic for nic in nics if nic.state == "up" and nic.numa_node is not None]
    return max(known, key=lambda nic: nic.speed_mbps or 0, default=None)


def _distance(topology: Topology, start: int | None, end: int) -> int:
    """The kernel's distance of two nodes; 10 is local. A node's distances are in the order of the nodes."""
    order = [node.node for node in topology.numa_nodes]
    row = next((node.distances for node in topology.numa_nodes if node.node == start), ())
    if end in order and order.index(end) < len(row):
        return row[order.index(end)]
    return 10 if start == end else 20


def _default(cores: list[Core], free: list[Core], node: int) -> int:
    """CPUs in half of the node's cores; on a hybrid host no more than its free performance cores."""
    here = [core for core in free if core.node == node]
    fast = [core for core in here if not core.efficient] or here
    half = max(sum(core.node == node for core in cores) // 2, 1)
    return sum(len(core.cpus) for core in _last_first(fast)[:half])


def _last_first(cores: Iterable[Core]) -> list[Core]:
    return sorted(cores, key=lambda core: -core.first)


def _choose(topology: Topology, free: list[Core], node: int, wanted: int) -> list[Core]:
    """Cores until there are `wanted` CPUs, in the order of rules 4 and 5; among equals the last first."""
    room: dict[CpuSet, int] = {}
    for core in free:
        room[core.cache] = room.get(core.cache, 0) + len(core.cpus)

    def rank(core: Core) -> tuple[int, ...]:
        far = _distance(topology, node, core.node)
        return (far, core.node, core.efficient, -room[core.cache], -max(core.cache, default=0), -core.first)

    chosen: list[Core] = []
    for core in sorted(free, key=rank):
        if len(union(chosen)) >= wanted:
            break
        chosen.append(core)
    return sorted(chosen, key=lambda core: core.first)
