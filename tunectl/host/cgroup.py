"""Isolated partitions of control group v2: which CPUs they hold, and a place in one for a program of ours.

Source: Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus.partition. Nothing outside a partition may run on its CPUs.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count

from tunectl.cpulist import CpuSet, format_cpulist, parse_shown
from tunectl.errors import UsageError
from tunectl.host.sysroot import Sysroot

_ROOT = "sys/fs/cgroup"
_NAME = "tunectl-"  # then the process that made it, and a number: a monitor may have two at a time
_NUMBERS = count()


def partitions(root: Sysroot) -> dict[str, CpuSet]:
    """The valid isolated partitions of the first level: path -> the CPUs each holds. Never raises."""
    found = {}
    for name in sorted(root.listdir(_ROOT)):
        path = f"{_ROOT}/{name}"
        if root.get(f"{path}/cpuset.cpus.partition").strip() == "isolated":
            with suppress(UsageError):
                found[path] = parse_shown(root.get(f"{path}/cpuset.cpus.effective"))
    return found


def partitioned(root: Sysroot) -> CpuSet:
    """The CPUs of all of them."""
    return frozenset[int]().union(*partitions(root).values())


def home_of(root: Sysroot, cpus: CpuSet) -> str | None:
    """The partition that holds these CPUs, None where none does. UsageError where it holds only some of them."""
    for path, held in partitions(root).items():
        if cpus and cpus <= held:
            return path
        if cpus & held:
            inside, outside = format_cpulist(cpus & held), format_cpulist(cpus - held)
            raise UsageError(
                f"CPUs {inside} are in the isolated partition /{path}, CPUs {outside} are not: no process may use both",
                "name CPUs of one side",
            )
    return None


@contextmanager
def place_for(root: Sysroot, cpus: CpuSet) -> Iterator[int | None]:
    """The open cgroup.procs of a group of its own in the partition that holds these CPUs; None where none does.

    Without the permission, None too: the program then says itself that it may not run there.
    """
    home = home_of(root, cpus) if root.live else None
    if home is None:
        yield None
        return
    _sweep(root, home)
    place = root.path(f"{home}/{_NAME}{os.getpid()}-{next(_NUMBERS)}")
    procs = -1
    with suppress(OSError):
        os.mkdir(place)
        procs = os.open(f"{place}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
    try:
        yield procs if procs >= 0 else None
    finally:
        if procs >= 0:
            os.close(procs)
        with suppress(OSError):
            os.rmdir(place)


def _sweep(root: Sysroot, home: str) -> None:
    """Groups whose maker was killed. One in use is busy, and stays."""
    for name in root.listdir(home):
        maker = name.removeprefix(_NAME).partition("-")[0]
        if name.startswith(_NAME) and maker.isdecimal() and not root.exists(f"proc/{maker}"):
            with suppress(OSError):
                os.rmdir(root.path(f"{home}/{name}"))
