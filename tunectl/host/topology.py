"""The host as it is built: CPUs, SMT siblings, caches, NUMA nodes, NICs, interrupts.

`read_scope_facts` is what every command needs and is cheap; `read_topology` is the whole picture.
Neither reads a file that interrupts an isolated CPU (FACTS 2.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tunectl.cpulist import CpuSet, parse_shown
from tunectl.errors import TunectlError
from tunectl.host.cgroup import partitioned
from tunectl.host.sysroot import Sysroot

if TYPE_CHECKING:  # read only by `show`, `propose` and the checks: kept out of verify's start-up
    from tunectl.host.cpus import Cpu
    from tunectl.host.hardware import Drivers
    from tunectl.host.irqs import Irq
    from tunectl.host.nics import Nic
    from tunectl.host.numa import NumaNode

_CPU = "sys/devices/system/cpu"


class CpuFacts(NamedTuple):
    """Which CPUs there are and how this boot divided them. `siblings`: the CPUs of each online CPU's core."""

    present: CpuSet
    online: CpuSet
    possible: CpuSet
    nr_cpus: int  # the kernel's nr_cpu_ids: one more than the last possible CPU
    kernel_isolated: CpuSet  # isolcpus=domain; empty for isolcpus=nohz or managed_irq alone
    nohz_full: CpuSet
    siblings: dict[int, CpuSet]
    partitioned: CpuSet = frozenset()  # in an isolated partition of control group v2

    @property
    def quiet(self) -> CpuSet:
        """The CPUs that are isolated in one way or another: nothing of ours interrupts them."""
        return self.kernel_isolated | self.nohz_full | self.partitioned


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


def read_scope_facts(root: Sysroot) -> CpuFacts:
    """The CPU sets and the sibling groups: five files and one a core.

    Raises TunectlError where the tree holds no CPU at all: it is no recorded host.
    """
    present, online = _set(root, "present"), _set(root, "online")
    if not present:
        names = (name[3:] for name in root.listdir(_CPU) if name.startswith("cpu"))
        present = online | frozenset(int(name) for name in names if name.isdecimal())
    if not present:
        raise TunectlError(f"no CPUs are described in {root.path(_CPU)}", "--root takes an unpacked `tunectl snapshot`")
    online = (online & present) or present
    possible = _set(root, "possible") | present
    siblings: dict[int, CpuSet] = {}
    for cpu in sorted(online):
        if cpu in siblings:  # the kernel's sibling masks are symmetric: one file a core is enough
            continue
        # Not core_cpus_list: its name came with 5.3 (and EL8 lacks it), the content is the same.
        core = _set(root, f"cpu{cpu}/topology/thread_siblings_list") & online | {cpu}
        siblings.update((member, core) for member in core if member not in siblings)
    isolated, nohz_full = _set(root, "isolated"), _set(root, "nohz_full")
    held = partitioned(root)
    return CpuFacts(present, online, possible, max(possible) + 1, isolated, nohz_full, siblings, held)


def _set(root: Sysroot, name: str) -> CpuSet:
    """A cpulist file below sys/devices/system/cpu; empty where it is missing or holds no list."""
    try:
        return parse_shown(root.get(f"{_CPU}/{name}"))
    except TunectlError:
        return frozenset()


def read_topology(root: Sysroot, quiet: CpuSet = frozenset()) -> Topology:
    """The whole host. `quiet`: further CPUs, besides those the kernel isolates, that must not be interrupted.

    What a host lacks is None, "" or empty; raises TunectlError only where there is no CPU at all.
    """
    from tunectl.host.cpus import read_cpus
    from tunectl.host.hardware import read_drivers
    from tunectl.host.irqs import read_irqs
    from tunectl.host.nics import read_nics
    from tunectl.host.numa import read_numa_nodes

    facts = read_scope_facts(root)
    nodes = read_numa_nodes(root)
    irqs = read_irqs(root)
    cpus = read_cpus(root, facts, nodes, quiet)
    return Topology(cpus, nodes, read_nics(root, irqs), irqs, read_drivers(root, cpus), facts)
