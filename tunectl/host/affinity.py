"""Where one thread may run, named by its status file, proc/PID/status. Source: sched_setaffinity(2), proc(5)."""

from __future__ import annotations

import os

from tunectl.cpulist import parse_cpulist
from tunectl.host.sysroot import Sysroot

ALLOWED = "Cpus_allowed_list:"


def read_affinity(root: Sysroot, path: str) -> str | None:
    """Cpus_allowed_list as it stands; None where the thread is gone. OSError where it cannot be read."""
    lines = _status(root, path).splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(ALLOWED)), None)


def is_process(root: Sysroot, path: str) -> bool:
    """Does it have memory of its own? No kernel thread has: a process got the number of one that ended."""
    return "\nVmSize:" in _status(root, path)


def _status(root: Sysroot, path: str) -> str:
    """The status file of a thread; "" where the thread is gone."""
    try:
        return root.read_text(path)
    except (FileNotFoundError, ProcessLookupError):
        return ""


def move_thread(path: str, cpus: str) -> None:
    """The thread may use these CPUs (a cpulist), and no other. OSError: ESRCH where it is gone, EINVAL where bound."""
    os.sched_setaffinity(int(path.split("/")[1]), parse_cpulist(cpus))
