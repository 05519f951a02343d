"""Packets that this host dropped since its boot: before they reached a socket, and at a network interface."""

from __future__ import annotations

from contextlib import suppress

from tunectl.host.sysroot import Sysroot

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
