"""A proposal, its reasons in words, and the host file it becomes. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.shapes import Cpulist

if TYPE_CHECKING:
    from tunectl.host.topology import Topology
    from tunectl.hostfile.profile import Limit

_WIDTH = 100
_NO_BUDGET: Mapping[str, Limit] = {}


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
