"""The host as it is built: CPUs, SMT siblings, caches, NUMA nodes, NICs, interrupts.

This is the whole picture, which `show`, `propose` and the checks want; other commands need host/cpusets.py only.
No file is read here that interrupts an isolated CPU (docs/kernel-facts.md).

What this host is built of, in the few words that are the same on every machine of its make.

A fleet compares a host with its peers by these words, so nothing that tuning changes is among them, but for SMT and
CPUs that are switched off: with half its threads gone a machine is another one.
"""

from typing import NamedTuple

from tunectl.cpulist import CpuSet
from tunectl.host.cpus import Cpu, NumaNode, read_cpus, read_node_numbers, read_numa_nodes
from tunectl.host.cpusets import CpuFacts, read_scope_facts
from tunectl.host.hardware import cpuinfo_field, hypervisor_of, read_drivers
from tunectl.host.interrupts import Irq, read_irqs
from tunectl.host.nics import read_nics
from tunectl.host.sysroot import Sysroot
from tunectl.shapes import Drivers, Hardware, Nic


class Topology(NamedTuple):
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


_CPU = "sys/devices/system/cpu"
_DMI = "sys/class/dmi/id"


def read_machine(root: Sysroot, facts: CpuFacts) -> Hardware:
    """The machine below `root`: names as firmware and kernel give them, counts of what is online. Never raises.

    Reads a file a core, none of which interrupts a CPU.
    """
    cpuinfo = root.get_text("proc/cpuinfo")
    cores = sorted({min(core) for core in facts.siblings.values()})
    packages = {root.get(f"{_CPU}/cpu{cpu}/topology/physical_package_id") for cpu in cores}
    # ARM's kernels name no model: arch/arm64/kernel/cpuinfo.c shows the fields of MIDR_EL1.
    names = ("CPU implementer", "CPU variant", "CPU part", "CPU revision")
    of_arm = (f"{name[4:]} {value}" for name in names if (value := cpuinfo_field(cpuinfo, name)))
    return Hardware(
        vendor=root.get(f"{_DMI}/sys_vendor"),
        product=root.get(f"{_DMI}/product_name"),
        cpu_model=cpuinfo_field(cpuinfo, "model name") or ", ".join(of_arm),
        sockets=len(packages),
        cores=len(cores),
        cpus=len(facts.online),
        numa_nodes=max(len(read_node_numbers(root)), 1),
        hypervisor=hypervisor_of(root, cpuinfo),
    )
