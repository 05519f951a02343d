"""How often a system management interrupt (SMI) has stopped this host: all CPUs at once, unseen by the kernel.

MSR_SMI_COUNT is read on a CPU that does not measure. Source: Intel SDM volume 4, MSR 34H; docs/kernel-facts.md.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from dataclasses import dataclass

from tunectl.cpulist import CpuSet, parse_shown
from tunectl.host.hardware import cpuinfo_field, hypervisor_of
from tunectl.host.sysroot import Sysroot

_COUNT = 0x34
_BITS = 0xFFFF_FFFF  # the upper half is reserved


@dataclass(frozen=True)
class Smis:
    """`count` is None where nobody can tell, and `reason` says why."""

    count: int | None
    reason: str = ""

    def since(self, before: Smis) -> Smis:
        """How many came between the two."""
        if self.count is None or before.count is None:
            return Smis(None, self.reason or before.reason)
        return Smis((self.count - before.count) & _BITS)


def read_smis(root: Sysroot, cpus: Collection[int]) -> Smis:
    """Since the host was switched on, as the first of these CPUs says that is not isolated; none of them measures."""
    cpuinfo = root.get_text("proc/cpuinfo")
    if cpuinfo_field(cpuinfo, "vendor_id") != "GenuineIntel":
        return Smis(None, "only Intel's CPUs count them")
    if hypervisor_of(root, cpuinfo):
        return Smis(None, "this is a virtual machine, and those of the machine below do not show")
    spared = frozenset(cpus) - _isolated(root)
    if not spared:
        return Smis(None, "no CPU is left that neither measures nor is isolated")
    path = f"dev/cpu/{min(spared)}/msr"
    try:
        return Smis(struct.unpack("<Q", root.read_bytes(path, 8, _COUNT))[0] & _BITS)
    except FileNotFoundError:
        return Smis(None, f"there is no /{path} (sudo modprobe msr)")
    except PermissionError:
        return Smis(None, f"only root may read /{path}")
    except (OSError, struct.error) as error:
        return Smis(None, f"/{path} cannot be read: {error}")


def _isolated(root: Sysroot) -> CpuSet:
    lists = (root.get(f"sys/devices/system/cpu/{name}") for name in ("isolated", "nohz_full"))
    return frozenset(cpu for text in lists for cpu in parse_shown(text) or ())
