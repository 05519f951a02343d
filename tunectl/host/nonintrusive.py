"""Roots for monitoring: one refuses to read what would interrupt an isolated CPU, one remembers what was read.

Only the read disturbs, not the open; but nothing is opened that would not be read.
Source: docs/kernel-facts.md, "Reading without disturbing" (arch/x86/kernel/msr.c, drivers/cpufreq/acpi-cpufreq.c,
intel_pstate.c, arch/x86/kernel/acpi/cppc.c, cpu/intel_epb.c, drivers/hwmon/coretemp.c).
"""

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

    def open_device(self, path: str) -> int:
        """A character device that is safe to ask."""
        self.refuse(path)
        return super().open_device(path)

    def refuse(self, path: str) -> None:
        """PermissionError for a file that would disturb. Its errno is ECANCELED, which no file of a kernel gives here:

        root may not read it either. FileNotFoundError where there is no such file: it is not even tried to be opened.
        """
        if path[path.rfind("/") + 1 :] in DISTURBING and (match := _CPU.search(path)) and int(match[1]) in self.quiet:
            reason = f"it would interrupt CPU {match[1]}, which is isolated"
        elif path.startswith(_SENSORS):
            reason = "a sensor may interrupt an isolated CPU"
        else:
            return
        if not self.exists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        raise PermissionError(errno.ECANCELED, f"not read: {reason}", path)


class TracingSysroot(NonIntrusiveSysroot):
    """`files` are the files opened and `directories` those listed, since begin()."""

    def __init__(self, root: str, quiet: CpuSet) -> None:
        super().__init__(root, quiet)
        self.files: dict[str, None] = {}  # in order
        self.directories: dict[str, None] = {}
        self._open_directories: dict[int, str] = {}

    def begin(self) -> None:
        """Forgets what was read so far."""
        self.files, self.directories = {}, {}

    def open(self, path: str) -> int:
        """A file, or a directory as `path/.`: open_below() needs its name."""
        if not path.endswith("/."):
            self.files[path] = None
            return super().open(path)
        fd = super().open(path)
        self.directories[path[:-2]] = None
        self._open_directories[fd] = path[:-2]
        return fd

    def read_bytes(self, path: str, size: int | None = None, offset: int = 0) -> bytes:
        """A whole file, or a part of it; one that this look has read before is not opened for that."""
        self.files[path] = None
        return super().read_bytes(path, size, offset)

    def values_of(self, folder: str) -> dict[str, str]:
        """Nothing is remembered: each knob has to be seen to open what it rests on."""
        return {}

    def open_below(self, directory: int, path: str) -> int:
        """A file below an open directory."""
        self.files[f"{self._open_directories.get(directory, '')}/{path}"] = None
        return super().open_below(directory, path)

    def listdir(self, path: str) -> list[str]:
        """The names in a directory."""
        self.directories[path] = None
        return super().listdir(path)
