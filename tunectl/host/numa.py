"""NUMA nodes: /sys/devices/system/node. A node may have memory and no CPU, or CPUs and no memory."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tunectl.cpulist import CpuSet
from tunectl.host.cpusets import read_cpu_list
from tunectl.host.sysroot import Sysroot

_NODE = "sys/devices/system/node"


@dataclass(frozen=True)
class NumaNode:
    """One node; `distances` in the kernel's order of online nodes, 10 is local."""

    node: int
    cpus: CpuSet
    memory_bytes: int | None
    distances: tuple[int, ...]


def read_numa_nodes(root: Sysroot) -> tuple[NumaNode, ...]:
    """Every node in ascending order; none on a kernel without NUMA. Never raises."""
    return tuple(_read(root, node) for node in read_node_numbers(root))


def read_node_numbers(root: Sysroot) -> list[int]:
    """The numbers of the nodes, ascending. Never raises."""
    names = [name.removeprefix("node") for name in root.listdir(_NODE) if name.startswith("node")]
    return sorted(int(name) for name in names if name.isdecimal())


def _read(root: Sysroot, node: int) -> NumaNode:
    directory = f"{_NODE}/node{node}"
    distances = root.get(f"{directory}/distance").split()
    return NumaNode(
        node,
        read_cpu_list(root, f"{directory}/cpulist"),
        parse_memory(root.get_text(f"{directory}/meminfo")),
        tuple(int(distance) for distance in distances if distance.isdecimal()),
    )


def parse_memory(meminfo: str) -> int | None:
    """MemTotal of a node's meminfo, in bytes."""
    found = re.search(r"MemTotal:\s*(\d+) kB", meminfo)
    return int(found[1]) * 1024 if found else None
