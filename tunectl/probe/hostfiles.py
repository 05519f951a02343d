"""What the kernel's files say of a machine, and what was counted between two readings of them. Pure.

The native program writes these files into its document as they stand.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from tunectl.host.interrupts import Interrupts, arrivals, parse_interrupts

Files = Mapping[str, str]  # the text of each file that could be read, by its path

# How the firmware's vendor and product are called where no CPU flag tells (arm64).
_VIRTUAL = ("QEMU", "KVM", "VMware", "Xen", "innotek", "Parallels", "Google Compute Engine")
_FIRMWARE = ("/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name")
_FLAGS = re.compile(r"^flags\s*:(.*)", re.MULTILINE)  # x86 only
_TIMES = re.compile(r"^cpu(\d+) (.*)", re.MULTILINE)


class Machine(NamedTuple):
    """What decides how much figures mean."""

    is_virtual: bool
    has_stable_tsc: bool  # constant_tsc and nonstop_tsc; always where the counter is architected so
    rt_runtime_us: int  # below 0: no RT throttling
    rt_period_us: int


def machine_of(files: Files) -> Machine:
    """From /proc/cpuinfo, the firmware's names and two sysctls; an absent file says nothing against the machine."""
    match = _FLAGS.search(files.get("/proc/cpuinfo", ""))
    flags = match.group(1).split() if match else ["constant_tsc", "nonstop_tsc"]
    firmware = " ".join(files.get(path, "") for path in _FIRMWARE)
    return Machine(
        "hypervisor" in flags
        or any(name in firmware for name in _VIRTUAL)
        or bool(files.get("/sys/hypervisor/type", "").strip()),
        {"constant_tsc", "nonstop_tsc"} <= set(flags),
        number(files.get("/proc/sys/kernel/sched_rt_runtime_us", ""), -1),
        number(files.get("/proc/sys/kernel/sched_rt_period_us", ""), 1_000_000),
    )


def number(text: str, otherwise: int = 0) -> int:
    """The whole number in a file of one."""
    try:
        return int(text)
    except ValueError:
        return otherwise


class Times(NamedTuple):
    """How the times of a CPU moved, in ms."""

    busy: int  # all but idle and iowait
    idle: int
    steal: int  # by the hypervisor, as far as the kernel was told


class Counted:
    """What the kernel counted on each CPU between two readings of /proc/interrupts, /proc/softirqs and /proc/stat."""

    def __init__(self, before: Files, after: Files, user_hz: int) -> None:
        self._before, self._after, self._tick_ms = before, after, 1000 // user_hz
        self._moved: dict[tuple[str, int], dict[str, int]] = {}

    @cached_property
    def _tables(self) -> dict[str, tuple[Interrupts, Interrupts]]:
        paths = {"irq": "/proc/interrupts", "softirq": "/proc/softirqs"}
        readings = self._before, self._after
        return {
            name: (parse_interrupts(_decoded(readings[0], path)), parse_interrupts(_decoded(readings[1], path)))
            for name, path in paths.items()
        }

    @property
    def has_interrupts(self) -> bool:
        """Could /proc/interrupts be read?"""
        return bool(self._tables["irq"][1].rows)

    def moved(self, table: str, cpu: int) -> dict[str, int]:
        """How far each row of "irq" or "softirq" moved on a CPU, those that did."""
        if (table, cpu) not in self._moved:
            self._moved[table, cpu] = arrivals(*self._tables[table], cpu)
        return self._moved[table, cpu]

    def descriptions(self, cpus: Iterable[int]) -> dict[str, str]:
        """Of the interrupts that came on any of these CPUs."""
        rows = self._tables["irq"][1].rows
        came = {label for cpu in cpus for label in self.moved("irq", cpu)}
        return {label: row.description for label, row in rows.items() if label in came}

    @cached_property
    def times(self) -> dict[int, Times]:
        """Of each CPU that /proc/stat named twice. Times may step back a little: that is no time passed."""
        before, after = (_times(files.get("/proc/stat", "")) for files in (self._before, self._after))
        return {
            cpu: Times(*(max(now - then, 0) * self._tick_ms for then, now in zip(before[cpu], times, strict=True)))
            for cpu, times in after.items()
            if cpu in before
        }


def _decoded(files: Files, path: str) -> str:
    """The program writes bytes that are not ASCII as U+0080 to U+00FF; a device may have put anything into its name."""
    return files.get(path, "").encode("latin-1", "replace").decode("utf-8", "replace")


def _times(text: str) -> dict[int, Times]:
    """In ticks: user nice system idle iowait irq softirq steal; old kernels end sooner. /proc/stat, proc(5)"""
    found = {}
    for cpu, rest in _TIMES.findall(text):
        fields = [number(field) for field in rest.split()[:8]] + [0] * 8
        user, nice, system, idle, iowait, irq, softirq, steal = fields[:8]
        found[int(cpu)] = Times(user + nice + system + irq + softirq + steal, idle + iowait, steal)
    return found
