"""The scheduler's fair server: what it gives to ordinary threads on a CPU that real-time threads keep for themselves.

/sys/kernel/debug/sched/fair_server/cpuN/runtime and period, in nanoseconds; of root only, and as the kernel's default
after each boot. Both are read from memory: no other CPU answers. Source: kernel/sched/debug.c (6.12),
sched_fair_server_show() and sched_fair_server_write(); commit "sched/fair: Fair server interface" (in v6.12).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from tunectl.cpulist import CpuSet
from tunectl.host.sysroot import Sysroot

DIRECTORY = "sys/kernel/debug/sched/fair_server"
RUNTIME = f"{DIRECTORY}/cpu{{cpu}}/runtime"
_SYMBOL = " dl_server_start"  # the kernel has the function wherever it has fair servers


class FairServer(NamedTuple):
    """Whom it may stop."""

    exists: bool | None  # does this kernel have one? None where nobody can tell
    runtime_ns: tuple[tuple[int, int], ...] = ()  # (CPU, nanoseconds a period), of the CPUs asked about
    problem: str = ""  # why these are not known


def read_fair_server(root: Sysroot, cpus: CpuSet) -> FairServer:
    """Of these CPUs. Never raises."""
    if root.exists(DIRECTORY):
        return _runtimes(root, cpus)
    if root.exists("sys/kernel/debug/sched"):
        return FairServer(False)
    # Without root, or with debugfs switched off: the kernel's list of symbols is open to all.
    exists = _has_symbol(root)
    return FairServer(exists, problem="" if exists is False else f"/{DIRECTORY} cannot be read")


def _runtimes(root: Sysroot, cpus: CpuSet) -> FairServer:
    found = {cpu: root.get(RUNTIME.format(cpu=cpu)) for cpu in sorted(cpus)}
    dark = [cpu for cpu, text in found.items() if not text.isdecimal()]
    if dark:
        return FairServer(True, problem=f"/{RUNTIME.format(cpu=dark[0])} cannot be read")
    return FairServer(True, tuple((cpu, int(text)) for cpu, text in found.items()))


@lru_cache(maxsize=4)
def _has_symbol(root: Sysroot) -> bool | None:
    """Once for a root: the list is megabytes long, and of a boot's kernel always the same."""
    text = root.get_text("proc/kallsyms")
    return _SYMBOL in text if text else None
