"""Where one thread may run, named by its status file, proc/PID/status. Source: sched_setaffinity(2), proc(5)."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection

from tunectl.cpulist import parse_cpulist
from tunectl.host.sysroot import Sysroot

ALLOWED = "Cpus_allowed_list:"


def read_affinity(root: Sysroot, path: str) -> str | None:
    """Cpus_allowed_list as it stands; None where the thread is gone. OSError where nobody can say."""
    status = _status(root, path)
    if status is None:
        return None
    for line in status.split("\n"):
        if line.startswith(ALLOWED):
            return line.removeprefix(ALLOWED).strip()
    raise OSError(errno.ENODATA, f"has no {ALLOWED[:-1]}")


def is_another(root: Sysroot, path: str, names: Collection[str]) -> bool:
    """Did somebody else get the number of a kernel thread that ended? `names`: what that one may be called, if known.

    A process has memory of its own, until it is a zombie, and no kernel thread has; since 6.8 a line says which it is.
    """
    status = _status(root, path) or ""
    is_process = "\nVmSize:" in status or "\nKthread:\t0" in status
    return is_process or bool(names and status.partition("\n")[0].removeprefix("Name:").strip() not in names)


def _status(root: Sysroot, path: str) -> str | None:
    """The status file of a thread; None where the thread is gone."""
    try:
        return root.read_text(path)
    except (FileNotFoundError, ProcessLookupError):
        return None


def move_thread(path: str, cpus: str) -> None:
    """The thread may use these CPUs (a cpulist), and no other. OSError: ESRCH where it is gone, EINVAL where bound."""
    os.sched_setaffinity(int(path.split("/")[1]), parse_cpulist(cpus))
