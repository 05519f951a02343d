"""The control groups of systemd's units: a unit that has one runs now. /sys/fs/cgroup/system.slice"""

from __future__ import annotations

from tunectl.host.sysroot import Sysroot

# Version 2; version 1, and both together.
SYSTEM_SLICES = (
    "sys/fs/cgroup/system.slice",
    "sys/fs/cgroup/systemd/system.slice",
    "sys/fs/cgroup/unified/system.slice",
)


def groups_of(root: Sysroot, unit: str) -> list[str]:
    """The control groups of a service in system.slice; none where it does not run. Never raises."""
    return [f"{slice_}/{unit}" for slice_ in SYSTEM_SLICES if root.exists(f"{slice_}/{unit}")]
