"""Network interfaces that are devices, what they dropped, and their time stamps. /sys/class/net

Hardware time stamps of a network interface: of which clock they are, and which packets get one. Only read.

Source: Documentation/networking/timestamping.rst, include/uapi/linux/net_tstamp.h.
"""

import errno
import os
import re
import struct
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.host.cpusets import read_cpu_list
from tunectl.host.ethtool import ask_interface
from tunectl.host.interrupts import Irq
from tunectl.host.sysroot import Sysroot
from tunectl.shapes import Nic

_NET = "sys/class/net"


def read_nics(root: Sysroot, irqs: Iterable[Irq] = ()) -> tuple[Nic, ...]:
    """Every interface with a device behind it, by name. Never raises for what a host lacks."""
    nics, known = [], list(irqs)
    for name in sorted(name for name in root.listdir(_NET) if root.exists(f"{_NET}/{name}/device")):
        directory = f"{_NET}/{name}"
        device = root.readlink(f"{directory}/device").rpartition("/")[2]
        queues = root.listdir(f"{directory}/queues")
        node = next((text for home in _homes(name) if (text := root.get(f"{home}/numa_node"))), "")
        nic = Nic(
            name=name,
            driver=read_driver(root, name),
            device=device,
            numa_node=int(node) if node.isdecimal() else None,  # -1: not known
            local_cpus=format_cpulist(read_local_cpus(root, name)),
            irqs=_irqs(root, name, device, known),
            state=root.get(f"{directory}/operstate", "unknown"),
            speed_mbps=_positive(root.get(f"{directory}/speed")),
            mtu=_positive(root.get(f"{directory}/mtu")),
            rx_queues=sum(queue.startswith("rx-") for queue in queues),
            tx_queues=sum(queue.startswith("tx-") for queue in queues),
        )
        nics.append(nic)
    return tuple(nics)


def cards_below(root: Sysroot, name: str) -> tuple[str, ...]:
    """The cards that a bond, team, VLAN, macvlan or bridge stands on; of a card, or where there is none, itself.

    Source: netdev_adjacent_sysfs_add() of net/core/dev.c, lower_NAME. Never raises.
    """
    found = [name]
    for upper in found:  # it grows: each that is found is looked below once
        if "/" not in upper and not root.exists(f"{_NET}/{upper}/device"):
            lowers = {
                entry.removeprefix("lower_") for entry in root.listdir(f"{_NET}/{upper}") if entry[:6] == "lower_"
            }
            found += sorted(lowers.difference(found))
    return tuple(nic for nic in found if root.exists(f"{_NET}/{nic}/device")) or (name,)


def read_driver(root: Sysroot, name: str) -> str:
    """Who drives an interface; "" where nobody does."""
    return root.readlink(f"{_NET}/{name}/device/driver").rpartition("/")[2]


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


# What each means: Documentation/networking/statistics.rst. The rest of that directory counts packets that were broken,
# or one of these again: in some drivers rx_fifo_errors and rx_over_errors are rx_missed_errors.
COUNTERS = ("rx_dropped", "rx_missed_errors", "tx_dropped")
_LOOPBACK = "772"  # ARPHRD_LOOPBACK


def read_softnet_drops(root: Sysroot) -> int | None:
    """Of /proc/net/softnet_stat: for these the backlog of a CPU had no room. None where that cannot be read."""
    with suppress(OSError, ValueError, IndexError):
        return sum(int(line.split()[1], 16) for line in root.read_text("proc/net/softnet_stat").splitlines())
    return None


def read_backlog_drops(root: Sysroot) -> dict[int, int]:
    """The same for each CPU. Empty where the lines do not name their CPUs (their thirteenth column, Linux 5.10)."""
    with suppress(OSError, ValueError, IndexError):
        lines = [line.split() for line in root.read_text("proc/net/softnet_stat").splitlines()]
        return {int(line[12], 16): int(line[1], 16) for line in lines}
    return {}


def read_nic_drops(root: Sysroot, nic: str) -> int | None:
    """The sum of COUNTERS. None for loopback, which drops nothing by itself, and where one of them cannot be read."""
    place = f"sys/class/net/{nic}"
    with suppress(OSError, ValueError):
        if root.read_value(f"{place}/type") != _LOOPBACK:
            return sum(int(root.read_value(f"{place}/statistics/{name}")) for name in COUNTERS)
    return None


ALL = "all"
_FILTERS = {0: "none", 1: ALL, 2: "some"}  # HWTSTAMP_FILTER_*; those beyond are of PTP's and NTP's own packets
_SIOCGHWTSTAMP = 0x89B1


class Stamping(NamedTuple):
    """What an interface says of its stamps. Where something is not there, the error says why; "" where it is."""

    nic: str
    clock: str = ""  # /dev/ptp0; "": it has none
    clock_error: str = ""  # why that cannot be read
    receive_filter: str = ""  # which packets are stamped: none, all, some, a few
    filter_error: str = ""


def read_stamping(root: Sysroot, nic: str) -> Stamping:
    """Never raises for what the interface lacks."""
    number = root.get(f"ethtool/{nic}/tsinfo/phc-index")
    if not number.isdecimal():
        return Stamping(nic)
    clock = f"/dev/ptp{number}"
    stamping = Stamping(nic, clock)
    if not os.access(clock, os.R_OK):  # as far as that can be known without opening it
        why = os.strerror(errno.EACCES if os.path.exists(clock) else errno.ENOENT)
        stamping = stamping._replace(clock_error=why)
    try:  # a struct hwtstamp_config is three numbers
        config = struct.unpack("3i", ask_interface(nic, _SIOCGHWTSTAMP, bytes(12)))
    except OSError as error:
        return stamping._replace(filter_error=error.strerror or str(error))
    return stamping._replace(receive_filter=_FILTERS.get(config[2], "a few"))
