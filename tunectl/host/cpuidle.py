"""Which driver knows the machine's idle states. Source: Documentation/admin-guide/pm/cpuidle.rst."""

from __future__ import annotations

from tunectl.host.sysroot import Sysroot

DRIVER = "sys/devices/system/cpu/cpuidle/current_driver"
# It polls and then halts (Documentation/virt/guest-halt-polling.rst): its latencies are its own, not the machine's.
HALTPOLL = "haltpoll"


def read_cpuidle_driver(root: Sysroot) -> str:
    """Its name; "" where none is in charge, and a CPU that waits halts."""
    name = root.get(DRIVER)
    return "" if name == "none" else name
