"""Network interfaces that are devices: /sys/class/net/*/device. Addresses are not read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tunectl.cpulist import CpuSet
from tunectl.host.cpusets import read_cpu_list
from tunectl.host.irqs import Irq
from tunectl.host.sysroot import Sysroot

_NET = "sys/class/net"


@dataclass(frozen=True)
class Nic:
    """One interface. `numa_node` is None where firmware does not say."""

    name: str
    driver: str
    device: str  # 0000:b1:00.0, virtio3
    numa_node: int | None
    local_cpus: CpuSet
    irqs: tuple[int, ...]
    state: str  # up | down | unknown
    speed_mbps: int | None
    mtu: int | None
    rx_queues: int
    tx_queues: int


def read_nics(root: Sysroot, irqs: Iterable[Irq] = ()) -> tuple[Nic, ...]:
    """Every interface with a device behind it, by name. Never raises for what a host lacks."""
    names = sorted(name for name in root.listdir(_NET) if root.exists(f"{_NET}/{name}/device"))
    known = list(irqs)
    return tuple(_read(root, name, known) for name in names)


def _read(root: Sysroot, name: str, irqs: list[Irq]) -> Nic:
    directory = f"{_NET}/{name}"
    device = root.readlink(f"{directory}/device").rpartition("/")[2]
    queues = root.listdir(f"{directory}/queues")
    homes = _homes(name)
    node = next((text for home in homes if (text := root.get(f"{home}/numa_node"))), "")
    return Nic(
        name=name,
        driver=root.readlink(f"{directory}/device/driver").rpartition("/")[2],
        device=device,
        numa_node=int(node) if node.isdecimal() else None,  # -1: not known
        local_cpus=read_local_cpus(root, name),
        irqs=_irqs(root, name, device, irqs),
        state=root.get(f"{directory}/operstate", "unknown"),
        speed_mbps=_positive(root.get(f"{directory}/speed")),
        mtu=_positive(root.get(f"{directory}/mtu")),
        rx_queues=sum(queue.startswith("rx-") for queue in queues),
        tx_queues=sum(queue.startswith("tx-") for queue in queues),
    )


def _homes(name: str) -> tuple[str, str]:
    """A virtio device is a child of the PCI function that has the node and the vectors."""
    return f"{_NET}/{name}/device", f"{_NET}/{name}/device/.."


def read_local_cpus(root: Sysroot, name: str) -> CpuSet:
    """The CPUs near an interface's device; empty where the firmware does not say."""
    return next((cpus for home in _homes(name) if (cpus := read_cpu_list(root, f"{home}/local_cpulist"))), frozenset())


def read_vectors(root: Sysroot, name: str) -> tuple[int, ...]:
    """An interface's own MSI vectors; empty where it has none."""
    for home in _homes(name):
        if numbers := sorted(int(n) for n in root.listdir(f"{home}/msi_irqs") if n.isdecimal()):
            return tuple(numbers)
    return ()


def _irqs(root: Sysroot, name: str, device: str, irqs: list[Irq]) -> tuple[int, ...]:
    """The device's vectors in msi_irqs/; without MSI, the lines whose action bears the interface's or device's name."""
    if vectors := read_vectors(root, name):
        return vectors
    words = "|".join(re.escape(word) for word in (name, device) if word)
    named = re.compile(rf"(?:^|[,\s])(?:{words})(?:$|[^0-9a-zA-Z])")
    return tuple(irq.irq for irq in irqs if irq.name and named.search(irq.name))


def _positive(text: str) -> int | None:
    """A number above 0: the speed of a link that is down, or of a virtual device, is -1 or EINVAL."""
    return int(text) if text.isdecimal() and int(text) > 0 else None
