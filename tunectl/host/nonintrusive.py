"""A root for monitoring: it refuses to read what would interrupt a CPU that must not be disturbed.

Only the read disturbs, not the open; but nothing is opened that would not be read.
Source: docs/kernel-facts.md, "Reading without disturbing" (arch/x86/kernel/msr.c, drivers/cpufreq/acpi-cpufreq.c,
intel_pstate.c, arch/x86/kernel/acpi/cppc.c, cpu/intel_epb.c, drivers/hwmon/coretemp.c).
"""

from __future__ import annotations

import errno
import os
import re

from tunectl.cpulist import CpuSet
from tunectl.host.sysroot import Sysroot

# Reading one of these asks the CPU itself, on some kernel and with some driver.
DISTURBING = frozenset(
    {
        "scaling_cur_freq",  # before 5.19
        "cpuinfo_cur_freq",
        "cpuinfo_avg_freq",
        "base_frequency",
        "energy_performance_preference",
        "energy_perf_bias",
        "nominal_freq",
        "nominal_perf",
        "lowest_freq",
        "lowest_perf",
        "lowest_nonlinear_perf",
        "highest_perf",
        "reference_perf",
        "feedback_ctrs",
        "msr",
    }
)
_CPU = re.compile(r"(?:^|/)(?:cpu|policy|cpu/)(\d+)/")
# Sensors that read an MSR on a CPU of their own choice: refused whole.
_SENSORS = ("sys/class/hwmon/", "sys/class/powercap/", "sys/devices/virtual/powercap/")


class NonIntrusiveSysroot(Sysroot):
    """Reads a host without disturbing the CPUs in `quiet`; PermissionError, with the reason, where that cannot be."""

    def __init__(self, root: str, quiet: CpuSet) -> None:
        super().__init__(root)
        self.quiet = quiet

    def open(self, path: str) -> int:
        """A file or directory that is safe to read."""
        self.refuse(path)
        return super().open(path)

    def refuse(self, path: str) -> None:
        """PermissionError for a file that would disturb. Its errno is ECANCELED, which no file of a kernel gives here:

        root may not read it either. FileNotFoundError where there is no such file: it is not even tried to be opened.
        """
        if path[path.rfind("/") + 1 :] in DISTURBING and (found := _CPU.search(path)) and int(found[1]) in self.quiet:
            reason = f"it would interrupt CPU {found[1]}, which is isolated"
        elif path.startswith(_SENSORS):
            reason = "a sensor may interrupt an isolated CPU"
        else:
            return
        if not self.exists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        raise PermissionError(errno.ECANCELED, f"not read: {reason}", path)
