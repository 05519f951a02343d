"""Which CPUs to isolate, and why each; the reasons in words, and the host file it becomes. Pure.

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

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.shapes import Cpulist

if TYPE_CHECKING:
    from tunectl.host.topology import Topology
    from tunectl.hostfile.profile import Limit
    from tunectl.shapes import Nic

_WIDTH = 100
_NO_BUDGET: Mapping[str, Limit] = {}
_TYPES = {"performance": 0, "unknown": 0, "efficiency": 1}


def propose(topology: Topology, *, nic: str | None = None, count: int | None = None) -> Proposal:
    """Divides the host's CPUs. `count` is the number of isolated logical CPUs wanted, rounded up to whole cores.

    Never raises: an unknown `nic`, a `count` that is too large and a host without a core to spare are refusals.
    """
    nothing = Proposal(frozenset(), topology.online, nic=nic)
    if nic is not None and nic not in {nic.name for nic in topology.nics}:
        there = ", ".join(nic.name for nic in topology.nics) or "none with a device behind it"
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
    first = min(topology.online)
    kept: dict[Core, str] = {}
    for core in cores:
        if first in core.cpus:
            shared = " and its SMT siblings" if len(core.cpus) > 1 else ""
            kept[core] = (
                f"the boot CPU{shared}: timekeeping and boot-time interrupts are here"
                if first == 0
                else f"the first CPU that is online{shared}: the system's own work is here"
            )
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
    return sum(len(core.cpus) for core in sorted(fast, key=lambda core: -core.first)[:half])


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


Role = Literal["isolated", "housekeeping"]


class Reason(NamedTuple):
    """Why these CPUs have their role: housekeeping or isolated."""

    cpus: CpuSet
    role: Role
    text: str


@dataclass(frozen=True)
class Proposal:
    """The proposed division of the online CPUs; with a `refusal`, nothing is isolated, and it says why."""

    isolated: CpuSet
    housekeeping: CpuSet
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    refusal: str | None = None
    nic: str | None = None
    node: int | None = None
    knobs: Mapping[str, Any] = field(default_factory=dict)  # values that replace the profile's, in the host file's form
    split: bool = False  # half of a core is isolated on purpose


class Why(msgspec.Struct, frozen=True):
    """Why these CPUs have their role."""

    cpus: Cpulist
    role: Role
    text: str


class Proposed(msgspec.Struct, frozen=True):
    """What `tunectl propose` proposes: isolated CPUs, with the reasons."""

    isolated: Cpulist
    housekeeping: Cpulist
    count: Annotated[int, Meta(description="Isolated logical CPUs.")]
    nic: str | None
    numa_node: Annotated[int | None, Meta(description="Where CPUs were looked for first.")]
    reasons: list[Why]
    notes: list[str]
    refusal: Annotated[str | None, Meta(description="Why nothing can be proposed.")]
    host_file: Annotated[str, Meta(description='The text of a host file (TOML); "" with a refusal.')]
    written: Annotated[str | UnsetType, Meta(description="The file that --output named.")] = UNSET


@dataclass(frozen=True)
class Core:
    """One physical core that is online."""

    cpus: CpuSet
    node: int
    package: int
    efficient: bool
    cache: CpuSet

    @property
    def first(self) -> int:
        """Its first CPU."""
        return min(self.cpus)


def union(cores: Iterable[Core]) -> CpuSet:
    """The CPUs of several cores."""
    return frozenset().union(*(core.cpus for core in cores))


def isolated_reasons(chosen: list[Core], node: int, why: str) -> list[Reason]:
    """Why these cores, one reason for each node and last-level cache."""
    groups: dict[tuple[int, CpuSet, bool], list[Core]] = {}
    for core in chosen:
        groups.setdefault((core.node, core.cache, core.efficient), []).append(core)
    reasons = []
    for (home, _, efficient), members in groups.items():
        parts = ["whole cores with all SMT siblings" if len(members[0].cpus) > 1 else "whole cores"]
        if home != node:
            parts.append(f"node {home}: node {node} has no more to spare")
        elif why:
            parts.append(why)
        parts += ["efficient cores: no performance core is left"] if efficient else []
        parts += ["they share one last-level cache"] if len(members) > 1 else []
        reasons.append(Reason(union(members), "isolated", "; ".join(parts)))
    return reasons


def housekeeping_reasons(cores: list[Core], chosen: list[Core], kept: dict[Core, str]) -> list[Reason]:
    """Why the others remain housekeeping CPUs."""
    reasons = [Reason(core.cpus, "housekeeping", text) for core, text in kept.items()]
    rest = [core for core in cores if core not in kept and core not in chosen]
    if rest:
        text = "left to the system, interrupts and the engine's slower threads"
        reasons.append(Reason(union(rest), "housekeeping", text))
    return reasons


def notes(
    topology: Topology, chosen: list[Core], isolated: CpuSet, nic: str | None, count: int | None
) -> Iterable[str]:
    """What the operator should know beside the reasons."""
    if count is not None and len(isolated) != count:
        yield f"{count} CPUs were asked for; whole cores make it {len(isolated)}"
    if any(len(core.cpus) > 1 for core in chosen):
        yield "run one spinning thread a core and leave its sibling idle: two would share the core's units"
    if count is None:
        yield "half of the cores there, so that as many are left for everything else; --count asks for another number"
    if nic is None and topology.nics:
        yield "no --nic was named: name the interface that carries market data, and its node is preferred"
    named = next((one for one in topology.nics if one.name == nic), None)
    if named and named.numa_node is None and len(topology.numa_nodes) > 1:
        yield f"the firmware does not say which NUMA node {nic} is on; check the slot"
    if offline := topology.present - topology.online:
        yield f"CPUs {format_cpulist(offline)} are offline and were left out"
    if topology.drivers.hypervisor:
        yield "this is a virtual machine: its CPUs are only as quiet as the host below lets them be"
    standing = topology.facts.quiet
    if standing and standing != isolated:
        yield f"this boot already isolates {format_cpulist(standing)}"


def propose_body(
    proposal: Proposal, profile: str = "low-latency", hostname: str = "", budget: Mapping[str, Limit] = _NO_BUDGET
) -> Proposed:
    """tunectl.propose/1. `budget` has the profile's limits, which are written out with their reasons."""
    return Proposed(
        isolated=format_cpulist(proposal.isolated),
        housekeeping=format_cpulist(proposal.housekeeping),
        count=len(proposal.isolated),
        nic=proposal.nic,
        numa_node=proposal.node,
        reasons=[Why(format_cpulist(reason.cpus), reason.role, reason.text) for reason in proposal.reasons],
        notes=list(proposal.notes),
        refusal=proposal.refusal,
        host_file="" if proposal.refusal else host_file_toml(proposal, profile, hostname, budget),
    )


def host_file_toml(
    proposal: Proposal, profile: str = "low-latency", hostname: str = "", budget: Mapping[str, Limit] = _NO_BUDGET
) -> str:
    """The text of /etc/tunectl/host.toml for a proposal that is not a refusal."""
    import tomli_w  # only here: `verify` never writes TOML

    document: dict[str, Any] = {"profile": profile, "isolated": format_cpulist(proposal.isolated)}
    if proposal.split:
        document["allow_split_siblings"] = True
    if proposal.nic:
        document["network"] = {"interfaces": [proposal.nic]}
    if proposal.knobs:
        document["knobs"] = dict(proposal.knobs)
    where = f" for {hostname}" if hostname else ""
    lines = _comment(f"Proposed by `tunectl propose`{where}; housekeeping is every CPU that is not isolated.")
    lines.append("#")
    for reason in proposal.reasons:
        lines += _comment(f"{reason.role} {format_cpulist(reason.cpus)}: {reason.text}")
    for note in proposal.notes:
        lines += _comment(f"note: {note}")
    # A TOML string has no raw newline, so each newline is the array's own.
    text = tomli_w.dumps(document).replace("[\n    ", "[").replace(",\n]", "]")
    return "\n".join(lines) + "\n\n" + text + _budget(budget, profile)


def _budget(budget: Mapping[str, Limit], profile: str) -> str:
    """The profile's limits as a table, each below its reason."""
    if not budget:
        return ""
    lines = _comment(f"What the probe is judged by: the limits of profile {profile}. One that permits more than the")
    lines += _comment("profile's is named in the headline of `tunectl preflight`.")
    lines.append("[budget]")
    for key, limit in budget.items():
        lines += _comment(limit.reason)
        lines.append(f"{key} = {limit.value!r}".removesuffix(".0"))
    return "\n" + "\n".join(lines) + "\n"


def _comment(text: str) -> list[str]:
    # A name in a reason came from the host: nothing in it may end the comment.
    safe = "".join(char if char.isprintable() else " " for char in text)
    return textwrap.wrap(safe, _WIDTH, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False)
