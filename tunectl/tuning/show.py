"""The host as a document: tunectl.show/1. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tunectl.cpulist import CpuSet, format_cpulist

if TYPE_CHECKING:
    from tunectl.bootloader.families import Loader
    from tunectl.host.cpus import Cpu
    from tunectl.host.guest import Guest
    from tunectl.host.irqs import Irq
    from tunectl.host.topology import Topology
    from tunectl.model import HostId
    from tunectl.tuners.found import FoundTuner


class Roles(NamedTuple):
    """Which CPUs are isolated, and what says so: the host file's path, "the kernel", or "" if none are."""

    isolated: CpuSet = frozenset()
    source: str = ""


def roles_of_kernel(topology: Topology) -> Roles:
    """The roles without a host file: what this boot isolates."""
    isolated = topology.facts.quiet
    return Roles(isolated, "the kernel") if isolated else Roles()


def show_body(
    topology: Topology,
    tuners: Iterable[FoundTuner],
    roles: Roles,
    identity: HostId,
    tuned: Mapping[str, int] | None = None,
    loader: Loader | None = None,
    guest: Guest | None = None,
) -> dict[str, Any]:
    """The fields of tunectl.show/1. CPU sets are cpulists, except `smt_siblings`, a list of numbers.

    `tuned`: how many findings there are of each outcome, where a host file says what is wanted.
    """
    body: dict[str, Any] = {
        "system": _system(topology, identity),
        "cpu_sets": _cpu_sets(topology, roles.isolated),
        "roles_from": roles.source,
        "cpus": [_cpu(cpu, roles.isolated) for cpu in topology.cpus],
        "caches": _caches(topology.cpus),
        "numa_nodes": [
            {
                "node": node.node,
                "cpus": format_cpulist(node.cpus),
                "memory_bytes": node.memory_bytes,
                "distances": list(node.distances),
            }
            for node in topology.numa_nodes
        ],
        "nics": [
            {**nic.__dict__, "local_cpus": format_cpulist(nic.local_cpus), "irqs": list(nic.irqs)}
            for nic in topology.nics
        ],
        "irqs": [_irq(irq, roles.isolated) for irq in topology.irqs],
        "drivers": _drivers(topology),
        "managers": [_tuner(tuner) for tuner in tuners],
    }
    if guest:
        body["guest"] = _guest(guest)
    if loader:
        body["bootloader"] = {**loader._asdict(), "evidence": list(loader.evidence)}
    if tuned is not None:
        body["tuned"] = dict(tuned)
    return body


def _guest(guest: Guest) -> dict[str, Any]:
    lacks = [
        {
            "what": lack.what,
            "shown": lack.shown,
            "documented": lack.documented.says if lack.documented else None,
            "source": lack.documented.source if lack.documented else None,
        }
        for lack in guest.lacks
    ]
    fields = {"provider": guest.provider, "hypervisor": guest.hypervisor, "evidence": list(guest.evidence)}
    return {**fields, "not_owned": lacks}


def _system(topology: Topology, identity: HostId) -> dict[str, Any]:
    return {
        "hostname": identity.hostname,
        "kernel": identity.kernel,
        "machine": identity.machine,
        "os": topology.drivers.os,
        "model": topology.drivers.model,
        "hypervisor": topology.drivers.hypervisor,
    }


def _cpu_sets(topology: Topology, isolated: CpuSet) -> dict[str, str]:
    facts = topology.facts
    return {
        "present": format_cpulist(facts.present),
        "online": format_cpulist(facts.online),
        "offline": format_cpulist(facts.present - facts.online),
        "kernel_isolated": format_cpulist(facts.kernel_isolated),
        "nohz_full": format_cpulist(facts.nohz_full),
        "isolated": format_cpulist(isolated),
        "housekeeping": format_cpulist(facts.present - isolated),
    }


def _cpu(cpu: Cpu, isolated: CpuSet) -> dict[str, Any]:
    return {
        "cpu": cpu.cpu,
        "online": cpu.online,
        "core_id": cpu.core_id,
        "package": cpu.package,
        "die": cpu.die,
        "numa_node": cpu.numa_node,
        "smt_siblings": sorted(cpu.smt_siblings),
        "role": "isolated" if cpu.cpu in isolated else "housekeeping",
        "core_type": cpu.core_type,
        "last_level_cache": format_cpulist(cpu.last_level_cache),
        "governor": cpu.governor,
        "min_khz": cpu.min_khz,
        "max_khz": cpu.max_khz,
        "base_khz": cpu.base_khz,
        "base_source": cpu.base_source,
    }


def _caches(cpus: Iterable[Cpu]) -> list[dict[str, Any]]:
    """Each kind of cache once, with the CPUs that share each instance of it."""
    found: dict[tuple[int, str, int | None], dict[CpuSet, None]] = {}
    for cpu in cpus:
        for cache in cpu.caches:
            found.setdefault((cache.level, cache.kind, cache.size_bytes), {})[cache.shared_with] = None
    return [
        {"level": level, "kind": kind, "size_bytes": size, "shared_by": [format_cpulist(cpus) for cpus in shared]}
        for (level, kind, size), shared in sorted(found.items(), key=lambda item: (item[0][:2], item[0][2] or 0))
    ]


def _irq(irq: Irq, isolated: CpuSet) -> dict[str, Any]:
    return {
        "irq": irq.irq,
        "name": irq.name,
        "chip": irq.chip,
        "affinity": format_cpulist(irq.affinity),
        "effective": format_cpulist(irq.effective),
        "managed": irq.managed,
        "numa_node": irq.node,
        "count": sum(irq.counts.values()),
        "count_isolated": sum(count for cpu, count in irq.counts.items() if cpu in isolated),
        "hits_isolated": bool(irq.where & isolated),
    }


def _drivers(topology: Topology) -> dict[str, Any]:
    drivers = topology.drivers
    states = [{"name": name, "latency_us": latency} for name, latency in drivers.idle_states]
    flaws = [{"name": name, "state": state} for name, state in drivers.vulnerabilities]
    lists = {"idle_states": states, "clocksources": list(drivers.clocksources), "vulnerabilities": flaws}
    return {**drivers.__dict__, **lists}


def _tuner(tuner: FoundTuner) -> dict[str, Any]:
    return {
        "name": tuner.name,
        "active": tuner.active,
        "enabled": tuner.enabled,
        "installed": tuner.installed,
        "overwrites": list(tuner.overwrites),
        "detail": tuner.detail,
        "evidence": list(tuner.evidence),
        "settings": [{**setting._asdict(), "ends": str(setting.ends)} for setting in tuner.settings],
        "when": tuner.when,
        "answer": tuner.answer,
        "program": tuner.program,
    }
