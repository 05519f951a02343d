"""Each CPU: where it sits, what it shares, how fast it is, how it spent its time. /sys/devices/system/cpu/cpuN.

And NUMA nodes, /sys/devices/system/node: one may have memory and no CPU, or CPUs and no memory.

Nothing here interrupts an isolated CPU: base_frequency and acpi_cppc, which may, are read on a housekeeping CPU
of the same package and kind (docs/kernel-facts.md; intel_pstate.c, show_base_frequency).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tunectl.cpulist import CpuSet
from tunectl.host.cpusets import CpuFacts, read_cpu_list
from tunectl.host.plausible import FREQUENCY, plausible
from tunectl.host.sysroot import Sysroot

_CPU = "sys/devices/system/cpu"
IDLE, IOWAIT, STEAL = 3, 4, 7  # columns of a CPU in /proc/stat
_TURBO_STEP_KHZ = 1000  # acpi-cpufreq shows turbo as one step, 1 MHz above base


class Cache(NamedTuple):
    """One cache of a CPU, and the CPUs that share it."""

    level: int
    kind: str  # Data, Instruction, Unified
    size_bytes: int | None
    shared_with: CpuSet


class Cpu(NamedTuple):
    """One present CPU. What is not known, or not readable while it is offline, is None or "" or empty."""

    cpu: int
    online: bool
    core_id: int | None = None
    package: int | None = None
    die: int | None = None
    numa_node: int | None = None
    smt_siblings: CpuSet = frozenset()  # with itself; empty while offline
    core_type: str = "unknown"  # performance | efficiency | unknown
    caches: tuple[Cache, ...] = ()
    min_khz: int | None = None  # cpuinfo_min_freq
    max_khz: int | None = None  # cpuinfo_max_freq, turbo included
    base_khz: int | None = None
    base_source: str = ""
    governor: str = ""

    @property
    def last_level_cache(self) -> CpuSet:
        """The CPUs that share this one's largest cache; at least its siblings."""
        top = max(self.caches, key=lambda cache: cache.level, default=None)
        return top.shared_with if top else self.smt_siblings


def read_cpus(
    root: Sysroot, facts: CpuFacts, nodes: Iterable[NumaNode], quiet: CpuSet = frozenset(), *, with_caches: bool = True
) -> tuple[Cpu, ...]:
    """Every present CPU in ascending order. Never raises for what a host lacks. Caches are a dozen files a core."""
    node_of = {cpu: node.node for node in nodes for cpu in node.cpus}
    kinds = _core_types(root, facts)
    caches: dict[int, tuple[Cache, ...]] = {}
    for cpu in sorted(facts.online if with_caches else ()):
        if cpu not in caches:  # SMT siblings share every cache
            found = _read_caches(root, cpu)
            caches.update((sibling, found) for sibling in facts.siblings[cpu])
    places = {cpu: _number(root, f"cpu{cpu}/topology/physical_package_id") for cpu in sorted(facts.online)}
    highest = {
        cpu: plausible(_number(root, f"cpu{cpu}/cpufreq/cpuinfo_max_freq"), FREQUENCY) for cpu in sorted(facts.online)
    }
    # A recorded host cannot be disturbed, but is read the same way, so that it tells the same.
    avoid = facts.quiet | quiet
    # Where nothing names the kinds of cores, those whose highest frequencies lie far apart share no base frequency.
    known = {cpu: khz for cpu, khz in highest.items() if khz}
    alike = kinds or (classify_capacities(known) if known.keys() == highest.keys() else {})
    groups = {cpu: (places[cpu], alike.get(cpu, "")) for cpu in facts.online}
    bases = _read_bases(root, facts.online - avoid, groups)
    made = []
    for cpu in sorted(facts.present):
        if cpu not in facts.online:
            made.append(Cpu(cpu, online=False, numa_node=node_of.get(cpu)))
            continue
        base, source = bases.get(groups[cpu], (None, ""))
        made.append(
            Cpu(
                cpu,
                online=True,
                core_id=_number(root, f"cpu{cpu}/topology/core_id"),
                package=places[cpu],
                die=_number(root, f"cpu{cpu}/topology/die_id"),
                numa_node=node_of.get(cpu),
                smt_siblings=facts.siblings[cpu],
                core_type=kinds.get(cpu, "unknown"),
                caches=caches.get(cpu, ()),
                min_khz=plausible(_number(root, f"cpu{cpu}/cpufreq/cpuinfo_min_freq"), FREQUENCY),
                max_khz=highest[cpu],
                base_khz=base,
                base_source=source,
                governor=root.get(f"{_CPU}/cpu{cpu}/cpufreq/scaling_governor"),
            )
        )
    return tuple(made)


def _number(root: Sysroot, name: str) -> int | None:
    text = root.get(f"{_CPU}/{name}").strip()
    # The kernel says -1 where firmware does not number packages or dies.
    return int(text) if text.isdecimal() else None


def _core_types(root: Sysroot, facts: CpuFacts) -> dict[int, str]:
    """Kinds of cores, where there are several: from Intel's hybrid PMUs, or from the scheduler's cpu_capacity."""
    performance = read_cpu_list(root, "sys/devices/cpu_core/cpus")
    efficient = read_cpu_list(root, "sys/devices/cpu_atom/cpus") | read_cpu_list(root, "sys/devices/cpu_lowpower/cpus")
    if performance and efficient:
        return {**dict.fromkeys(performance, "performance"), **dict.fromkeys(efficient, "efficiency")}
    capacities = {cpu: _number(root, f"cpu{cpu}/cpu_capacity") or 0 for cpu in sorted(facts.online)}
    return classify_capacities(capacities)


def classify_capacities(values: Mapping[int, int]) -> dict[int, str]:
    """Core types by cpu_capacity or highest frequency: within a fifth of the largest is performance.

    Empty where all are alike.
    """
    top, least = max(values.values(), default=0), min(values.values(), default=0)
    if not top or least * 5 >= top * 4:  # favoured cores differ by a few per cent
        return {}
    return {cpu: "performance" if value * 5 >= top * 4 else "efficiency" for cpu, value in values.items()}


def _read_caches(root: Sysroot, cpu: int) -> tuple[Cache, ...]:
    directory = f"{_CPU}/cpu{cpu}/cache"
    caches = []
    for name in sorted(name for name in root.listdir(directory) if name.startswith("index")):
        level = root.get(f"{directory}/{name}/level")
        if level.isdecimal():
            shared = read_cpu_list(root, f"{directory}/{name}/shared_cpu_list") | {cpu}
            size = parse_size(root.get(f"{directory}/{name}/size"))
            caches.append(Cache(int(level), root.get(f"{directory}/{name}/type"), size, shared))
    return tuple(caches)


def parse_size(text: str) -> int | None:
    """`32K`, `1024K`, `16M`: bytes."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text.strip())
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]] if match else None


def _read_bases(
    root: Sysroot, readable: CpuSet, groups: Mapping[int, tuple[int | None, str]]
) -> dict[tuple[int | None, str], tuple[int | None, str]]:
    """(base kHz, its source) for each (package, kind), each asked of one CPU that may be interrupted.

    From the best source that this host has (docs/kernel-facts.md); never cpuinfo_max_freq, which includes turbo.
    """
    named = re.search(r"^model name\s*:.*@ (\d+\.\d+)GHz", root.get_text("proc/cpuinfo"), re.MULTILINE)
    model = (round(float(named[1]) * 1_000_000), "model name") if named else (None, "")
    found: dict[tuple[int | None, str], tuple[int | None, str]] = {}
    for cpu in sorted(readable):
        if groups[cpu] in found:
            continue
        if base := plausible(_number(root, f"cpu{cpu}/cpufreq/base_frequency"), FREQUENCY):
            found[groups[cpu]] = base, "base_frequency"
        elif FREQUENCY.holds(nominal := (_number(root, f"cpu{cpu}/acpi_cppc/nominal_freq") or 0) * 1000):
            found[groups[cpu]] = nominal, "acpi_cppc/nominal_freq"
        elif base := parse_base_step(root.get(f"{_CPU}/cpu{cpu}/cpufreq/scaling_available_frequencies")):
            found[groups[cpu]] = base, "scaling_available_frequencies"
        else:
            found[groups[cpu]] = model
    for group in groups.values():  # a package that is isolated as a whole: the same kind elsewhere
        alike = next((base for other, base in found.items() if other[1] == group[1]), model)
        found.setdefault(group, alike)
    return found


def parse_base_step(steps: str) -> int | None:
    """acpi-cpufreq's frequencies, kHz: the first is base, unless it stands 1 MHz above the second and so is turbo."""
    values = sorted((int(step) for step in steps.split() if step.isdecimal()), reverse=True)
    if len(values) > 1 and values[0] - values[1] == _TURBO_STEP_KHZ:
        return values[1]
    return values[0] if values else None


def parse_cpu_times(text: str) -> dict[int, list[int]]:
    """How each CPU spent its time since boot, in clock ticks by column. /proc/stat, proc(5); old kernels end sooner."""
    lines = (line.split() for line in text.splitlines() if re.match(r"cpu\d+ ", line))
    return {int(name[3:]): [int(field) for field in fields] for name, *fields in lines}


_NODE = "sys/devices/system/node"


class NumaNode(NamedTuple):
    """One node; `distances` in the kernel's order of online nodes, 10 is local."""

    node: int
    cpus: CpuSet
    memory_bytes: int | None
    distances: tuple[int, ...]


def read_numa_nodes(root: Sysroot) -> tuple[NumaNode, ...]:
    """Every node in ascending order; none on a kernel without NUMA. Never raises."""
    nodes = []
    for node in read_node_numbers(root):
        directory = f"{_NODE}/node{node}"
        cpus = read_cpu_list(root, f"{directory}/cpulist")
        memory_bytes = parse_memory(root.get_text(f"{directory}/meminfo"))
        distances = (int(word) for word in root.get(f"{directory}/distance").split() if word.isdecimal())
        nodes.append(NumaNode(node, cpus, memory_bytes, tuple(distances)))
    return tuple(nodes)


def read_node_cpus(root: Sysroot) -> list[CpuSet]:
    """The CPUs of every node, in the nodes' order. Never raises."""
    return [read_cpu_list(root, f"{_NODE}/node{node}/cpulist") for node in read_node_numbers(root)]


def read_node_numbers(root: Sysroot) -> list[int]:
    """The numbers of the nodes, ascending. Never raises."""
    names = [name.removeprefix("node") for name in root.listdir(_NODE) if name.startswith("node")]
    return sorted(int(name) for name in names if name.isdecimal())


def parse_memory(meminfo: str) -> int | None:
    """MemTotal of a node's meminfo, in bytes."""
    match = re.search(r"MemTotal:\s*(\d+) kB", meminfo)
    return int(match[1]) * 1024 if match else None
