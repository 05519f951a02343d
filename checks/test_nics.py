"""The NICs that carry market data, and the CPUs that read from them."""

from tunectl.checking import Severity, costs, failing, unsupported
from tunectl.command import as_data
from tunectl.cpulist import format_cpulist
from tunectl.fix import to_decide
from tunectl.host.nics import read_local_cpus
from tunectl.host.sysroot import Sysroot
from tunectl.model import Scope


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
