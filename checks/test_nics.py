"""The NICs that carry market data, and the CPUs that read from them."""

from tunectl.checking import Severity, costs, failing, unknown, unsupported
from tunectl.command import as_data
from tunectl.cpulist import format_cpulist
from tunectl.fix import to_decide
from tunectl.host.cpusets import read_cpu_list
from tunectl.host.nics import read_local_cpus, read_vectors
from tunectl.host.sysroot import Sysroot
from tunectl.model import Scope
from tunectl.wording import few, plural


@costs(Severity.SLOWER)
def test_nic_node(interface: str, host: Sysroot, scope: Scope) -> None:
    """What a NIC writes to memory lies in its own NUMA node: a reader in another fetches each line across the socket.

    Source: Documentation/ABI/testing/sysfs-bus-pci (local_cpulist).
    """
    local = read_local_cpus(host, interface)
    readers = scope.isolated & scope.online
    if not local:
        unsupported(f"firmware does not say which CPUs are near {as_data(interface)}")
    if not readers:
        unsupported("no CPU is isolated")
    if not readers & local:
        near = format_cpulist(local & scope.online)
        failing(
            f"no isolated CPU is on the NUMA node of {as_data(interface)}, which is near CPUs {near}",
            to_decide(
                f"isolate CPUs among {near} for the threads that read from {as_data(interface)}, "
                "or use a NIC near the others"
            ),
            observed=format_cpulist(readers),
            desired=near,
        )


@costs(Severity.SLOWER)
def test_nic_irq_node(interface: str, host: Sysroot, scope: Scope) -> None:
    """The CPU that serves a NIC's interrupt reads what the NIC wrote: in another NUMA node, across the socket.

    Source: Documentation/core-api/irq/irq-affinity.rst; Documentation/ABI/testing/sysfs-bus-pci (local_cpulist).
    """
    local, vectors = read_local_cpus(host, interface), read_vectors(host, interface)
    near = (local - scope.isolated) & scope.online
    if not local or not vectors:
        unsupported(f"{as_data(interface)} has no interrupts of its own, or firmware does not say which CPUs are near")
    if not near:
        unsupported(f"no housekeeping CPU is on the NUMA node of {as_data(interface)}")
    served = {irq: read_cpu_list(host, f"proc/irq/{irq}/effective_affinity_list") for irq in vectors}
    far = {irq: cpus for irq, cpus in served.items() if cpus and not cpus & local}
    if far:
        where = frozenset[int]().union(*far.values())
        failing(
            f"{plural(len(far), 'interrupt')} of {as_data(interface)} (IRQ {few(far)}) are served by "
            f"CPUs {format_cpulist(where)}, on another NUMA node; CPUs {format_cpulist(near)} are near",
            to_decide('ask for "net.queue_irqs" = "housekeeping" in the host file: it chooses CPUs that are near'),
            observed=format_cpulist(where),
            desired=format_cpulist(near),
        )
    if not any(served.values()):
        unknown(f"which CPUs serve the interrupts of {as_data(interface)} cannot be read")
