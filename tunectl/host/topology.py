"""The host as it is built: CPUs, SMT siblings, caches, NUMA nodes, NICs, interrupts.

This is the whole picture, which `show`, `propose` and the checks want; other commands need host/cpusets.py only.
No file is read here that interrupts an isolated CPU (docs/kernel-facts.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from tunectl.cpulist import CpuSet
from tunectl.host.cpus import Cpu, read_cpus
from tunectl.host.cpusets import CpuFacts, read_scope_facts
from tunectl.host.hardware import Drivers, read_drivers
from tunectl.host.irqs import Irq, read_irqs
from tunectl.host.nics import Nic, read_nics
from tunectl.host.numa import NumaNode, read_numa_nodes
from tunectl.host.sysroot import Sysroot


@dataclass(frozen=True)
class Topology:
    """Everything of the host that tuning depends on. Every present CPU is in `cpus`, in ascending order."""

    cpus: tuple[Cpu, ...]
    numa_nodes: tuple[NumaNode, ...]
    nics: tuple[Nic, ...]
    irqs: tuple[Irq, ...]
    drivers: Drivers
    facts: CpuFacts

    @property
    def online(self) -> CpuSet:
        """CPUs that are switched on."""
        return self.facts.online

    @property
    def present(self) -> CpuSet:
        """CPUs that are there."""
        return self.facts.present

    def cpu(self, number: int) -> Cpu:
        """One CPU by its number; KeyError where there is none."""
        for cpu in self.cpus:
            if cpu.cpu == number:
                return cpu
        raise KeyError(number)


def read_topology(root: Sysroot, quiet: CpuSet = frozenset()) -> Topology:
    """The whole host. `quiet`: further CPUs, besides those the kernel isolates, that must not be interrupted.

    What a host lacks is None, "" or empty; raises TunectlError only where there is no CPU at all.
    """
    facts = read_scope_facts(root)
    nodes = read_numa_nodes(root)
    irqs = read_irqs(root)
    cpus = read_cpus(root, facts, nodes, quiet)
    return Topology(cpus, nodes, read_nics(root, irqs), irqs, read_drivers(root, cpus), facts)
