"""The host, and the knob table, as documents: tunectl.show/1, and what `tunectl knobs` and docs/knobs.md show. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.shapes import Cpulist, Drivers, Firmware, KernelClock, Maybe, Nic, Notes, Waits

if TYPE_CHECKING:
    from tunectl.bootloader.families import Loader
    from tunectl.host.cpus import Cpu
    from tunectl.host.guest import Guest
    from tunectl.host.interrupts import Irq
    from tunectl.host.topology import Topology
    from tunectl.model import HostId
    from tunectl.tuners.conflicts import FoundTuner


class Roles(NamedTuple):
    """Which CPUs are isolated, and what says so: the host file's path, "the kernel", or "" if none are."""

    isolated: CpuSet = frozenset()
    source: str = ""


def roles_of_kernel(topology: Topology) -> Roles:
    """The roles without a host file: what this boot isolates."""
    isolated = topology.facts.quiet
    return Roles(isolated, "the kernel") if isolated else Roles()


class SystemRow(msgspec.Struct, frozen=True):
    """The host and what it runs."""

    hostname: str
    kernel: str
    machine: str
    os: str
    model: str
    hypervisor: Annotated[str, Meta(description='"" on bare metal, "unknown" for one that does not name itself.')]
    microcode: Annotated[str | UnsetType, Meta(description="Of the first CPU; x86 only.")] = UNSET
    bios: Annotated[str | UnsetType, Meta(description="Version and date, as DMI has them.")] = UNSET


class CpuSetRow(msgspec.Struct, frozen=True):
    """Which CPUs are what."""

    present: Cpulist
    online: Cpulist
    offline: Cpulist
    kernel_isolated: Annotated[Cpulist, Meta(description="isolcpus=domain of this boot.")]
    nohz_full: Cpulist
    isolated: Cpulist
    housekeeping: Cpulist


class CpuRow(msgspec.Struct, frozen=True, kw_only=True):
    """A present CPU."""

    cpu: int
    online: bool
    core_id: int | None
    package: int | None
    die: int | None
    numa_node: int | None
    smt_siblings: Annotated[list[int], Meta(description="With the CPU itself; empty while it is offline.")]
    role: Literal["housekeeping", "isolated"]
    core_type: Annotated[str, Meta(extra_json_schema={"enum": ["performance", "efficiency", "unknown"]})]
    last_level_cache: Annotated[Cpulist, Meta(description="The CPUs that share it.")]
    governor: str
    min_khz: int | None
    max_khz: Annotated[int | None, Meta(description="Turbo included.")]
    base_khz: Annotated[int | None, Meta(description="Null where the host does not say; never guessed.")]
    base_source: Annotated[str, Meta(description="Where base_khz was read.")]


class CacheRow(msgspec.Struct, frozen=True):
    """A kind of cache."""

    level: int
    kind: Annotated[str, Meta(extra_json_schema={"enum": ["Data", "Instruction", "Unified"]})]
    size_bytes: int | None
    shared_by: Annotated[list[Cpulist], Meta(description="The CPUs of each instance.")]


class NodeRow(msgspec.Struct, frozen=True):
    """A NUMA node."""

    node: int
    cpus: Cpulist
    memory_bytes: int | None
    distances: Annotated[list[int], Meta(description="In the order of the nodes; 10 is local.")]


class IrqRow(msgspec.Struct, frozen=True, kw_only=True):
    """An interrupt."""

    irq: int
    name: str
    chip: str
    affinity: Cpulist
    effective: Annotated[Cpulist, Meta(description='Where it is delivered; "" before it is started.')]
    managed: Annotated[
        str,
        Meta(
            description="Does the kernel alone move it? Kernels before 6.12 do not say.",
            extra_json_schema={"enum": ["yes", "no", "unknown"]},
        ),
    ]
    numa_node: int | None
    count: Annotated[int, Meta(description="Since boot.")]
    count_isolated: Annotated[int, Meta(description="Of these, on isolated CPUs.")]
    hits_isolated: Annotated[bool, Meta(description="May it be delivered to an isolated CPU?")]


class SettingRow(msgspec.Struct, frozen=True):
    """A line that sets a knob."""

    knob: str
    key: str
    value: str
    path: str
    line: int
    wins: bool
    ends: Annotated[str, Meta(description="What ends it, where taking the line out does not."), Maybe] = ""
    user: Annotated[str, Meta(description="Whose job only names it: not root's, who alone may write it."), Maybe] = ""
    instance: Annotated[str, Meta(description="The card that it is for; none: any."), Maybe] = ""
    named: Annotated[bool, Meta(description="A program that was not followed names it, so it may write it."), Maybe] = (
        False
    )


class ManagerRow(msgspec.Struct, frozen=True, kw_only=True):
    """Who else tunes this host."""

    name: str
    active: bool
    enabled: Annotated[bool, Meta(description="Starts at boot.")]
    installed: bool
    overwrites: Annotated[list[str], Meta(description="Knobs it writes, as shell patterns of names.")]
    detail: str
    evidence: Annotated[list[str], Meta(description="The files that show it.")]
    settings: list[SettingRow]
    when: Annotated[str, Meta(description='At what moments it writes; "" where that is not known.')]
    answer: Annotated[str, Meta(description="What apply does about it.")]
    program: Annotated[bool, Meta(description="False: files that something else reads, such as sysctl.d.")]


class Lack(msgspec.Struct, frozen=True):
    """A setting that the guest does not own."""

    what: str
    shown: Annotated[str, Meta(description="What the kernel shows of it.")]
    documented: Annotated[str | None, Meta(description="What the provider documents of it, where that is known.")]
    source: str | None


class GuestRow(msgspec.Struct, frozen=True):
    """Of a virtual machine: whose it is, and which settings its guest does not own."""

    provider: Annotated[str, Meta(description="AWS, Google Cloud, Azure; empty for another, and where it is not said.")]
    hypervisor: str
    evidence: Annotated[list[str], Meta(description="The files that tell the provider.")]
    not_owned: list[Lack]


class LoaderRow(msgspec.Struct, frozen=True):
    """Who boots this host."""

    name: str
    supported: bool
    evidence: Annotated[list[str], Meta(description="The files that say so.")]
    refusal: Annotated[str, Meta(description="Why its settings are not written.")]
    errno: Annotated[int | None, Meta(description="Of a directory that could not be looked into.")] = None


class Show(msgspec.Struct, frozen=True, kw_only=True):
    """What `tunectl show` says: the host at a glance."""

    system: SystemRow
    cpu_sets: CpuSetRow
    roles_from: Annotated[
        str, Meta(description='Who says which CPUs are isolated: the host file, "the kernel", or "" where nobody does.')
    ]
    cpus: list[CpuRow]
    caches: list[CacheRow]
    numa_nodes: list[NodeRow]
    nics: list[Nic]
    irqs: list[IrqRow]
    drivers: Drivers
    firmware: Firmware = Firmware()
    kernel_clock: Annotated[
        KernelClock | None, Meta(description="How the kernel keeps the time; null of a recorded host.")
    ] = None
    managers: list[ManagerRow]
    guest: Annotated[GuestRow | UnsetType, Meta(description="Absent on bare metal.")] = UNSET
    bootloader: LoaderRow | UnsetType = UNSET
    tuned: Annotated[
        dict[str, int] | UnsetType,
        Meta(description="How many findings of `tunectl verify` have each outcome; only with a host file."),
    ] = UNSET
    unconfirmed: Waits = UNSET
    notes: Notes = []


def show_body(
    topology: Topology,
    tuners: Iterable[FoundTuner],
    roles: Roles,
    identity: HostId,
    tuned: Mapping[str, int] | None = None,
    loader: Loader | None = None,
    guest: Guest | None = None,
) -> Show:
    """tunectl.show/1. `tuned`: how many findings there are of each outcome, where a host file says what is wanted."""
    return Show(
        system=_system(topology, identity),
        cpu_sets=_cpu_sets(topology, roles.isolated),
        roles_from=roles.source,
        cpus=[_cpu(cpu, roles.isolated) for cpu in topology.cpus],
        caches=_caches(topology.cpus),
        numa_nodes=[
            NodeRow(node.node, format_cpulist(node.cpus), node.memory_bytes, list(node.distances))
            for node in topology.numa_nodes
        ],
        nics=list(topology.nics),
        irqs=[_irq(irq, roles.isolated) for irq in topology.irqs],
        drivers=topology.drivers,
        managers=[_tuner(tuner) for tuner in tuners],
        guest=_guest(guest) if guest else UNSET,
        bootloader=LoaderRow(loader.name, loader.supported, list(loader.evidence), loader.refusal, loader.errno)
        if loader
        else UNSET,
        tuned=dict(tuned) if tuned is not None else UNSET,
    )


def _guest(guest: Guest) -> GuestRow:
    lacks = [
        Lack(
            lack.what,
            lack.shown,
            lack.documented.says if lack.documented else None,
            lack.documented.source if lack.documented else None,
        )
        for lack in guest.lacks
    ]
    return GuestRow(guest.provider, guest.hypervisor, list(guest.evidence), lacks)


def _system(topology: Topology, identity: HostId) -> SystemRow:
    drivers = topology.drivers
    return SystemRow(
        hostname=identity.hostname,
        kernel=identity.kernel,
        machine=identity.machine,
        os=drivers.os,
        model=drivers.model,
        hypervisor=drivers.hypervisor,
        microcode=identity.microcode or UNSET,
        bios=identity.bios or UNSET,
    )


def _cpu_sets(topology: Topology, isolated: CpuSet) -> CpuSetRow:
    facts = topology.facts
    return CpuSetRow(
        present=format_cpulist(facts.present),
        online=format_cpulist(facts.online),
        offline=format_cpulist(facts.present - facts.online),
        kernel_isolated=format_cpulist(facts.kernel_isolated),
        nohz_full=format_cpulist(facts.nohz_full),
        isolated=format_cpulist(isolated),
        housekeeping=format_cpulist(facts.present - isolated),
    )


def _cpu(cpu: Cpu, isolated: CpuSet) -> CpuRow:
    return CpuRow(
        cpu=cpu.cpu,
        online=cpu.online,
        core_id=cpu.core_id,
        package=cpu.package,
        die=cpu.die,
        numa_node=cpu.numa_node,
        smt_siblings=sorted(cpu.smt_siblings),
        role="isolated" if cpu.cpu in isolated else "housekeeping",
        core_type=cpu.core_type,
        last_level_cache=format_cpulist(cpu.last_level_cache),
        governor=cpu.governor,
        min_khz=cpu.min_khz,
        max_khz=cpu.max_khz,
        base_khz=cpu.base_khz,
        base_source=cpu.base_source,
    )


def _caches(cpus: Iterable[Cpu]) -> list[CacheRow]:
    """Each kind of cache once, with the CPUs that share each instance of it."""
    found: dict[tuple[int, str, int | None], dict[CpuSet, None]] = {}
    for cpu in cpus:
        for cache in cpu.caches:
            found.setdefault((cache.level, cache.kind, cache.size_bytes), {})[cache.shared_with] = None
    return [
        CacheRow(*kind, [format_cpulist(cpus) for cpus in shared])
        for kind, shared in sorted(found.items(), key=lambda item: (item[0][:2], item[0][2] or 0))
    ]


def _irq(irq: Irq, isolated: CpuSet) -> IrqRow:
    return IrqRow(
        irq=irq.irq,
        name=irq.name,
        chip=irq.chip,
        affinity=format_cpulist(irq.affinity),
        effective=format_cpulist(irq.effective),
        managed=irq.managed,
        numa_node=irq.node,
        count=sum(irq.counts.values()),
        count_isolated=sum(count for cpu, count in irq.counts.items() if cpu in isolated),
        hits_isolated=bool(irq.where & isolated),
    )


def _tuner(tuner: FoundTuner) -> ManagerRow:
    return ManagerRow(
        name=tuner.name,
        active=tuner.active,
        enabled=tuner.enabled,
        installed=tuner.installed,
        overwrites=list(tuner.overwrites),
        detail=tuner.detail,
        evidence=list(tuner.evidence),
        settings=[SettingRow(**setting._asdict()) for setting in tuner.settings],
        when=tuner.when,
        answer=tuner.answer,
        program=tuner.program,
    )
