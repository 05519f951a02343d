"""Which process holds a file open: the links /proc/PID/fd/N. Of another user's process only root sees them."""

from __future__ import annotations

import re
from typing import NamedTuple

from tunectl.command import argv, as_data
from tunectl.host.procs import read_pids, service_of, users_of
from tunectl.host.sysroot import Sysroot

_PERF = "anon_inode:[perf_event]"


class Holder(NamedTuple):
    """A process that has files open which were looked for, and which of them."""

    pid: int
    comm: str
    files: tuple[str, ...]
    stop: str  # what ends it

    @property
    def name(self) -> str:
        """The process as findings name it."""
        return f"{as_data(self.comm)} (pid {self.pid})"


class Holders(NamedTuple):
    """Those found, and how many processes did not let themselves be looked at."""

    found: tuple[Holder, ...]
    unseen: int


def find_holders(root: Sysroot, pattern: str) -> Holders:
    """The processes with an open file whose path fits the regular expression, whole. Never raises.

    A file that is opened for a moment only is likely to be missed.
    """
    wanted = re.compile(pattern)
    found: list[Holder] = []
    unseen = 0
    for pid in read_pids(root):
        place = f"proc/{pid}/fd"
        try:
            names = root.names(place)
        except PermissionError:
            unseen += 1
            continue
        except OSError:
            continue
        links = (root.readlink(f"{place}/{name}") for name in names)
        if files := tuple(sorted({link for link in links if wanted.fullmatch(link)})):
            found.append(Holder(pid, root.get(f"proc/{pid}/comm"), files, stop_of(root, pid)))
    return Holders(tuple(found), unseen)


def perf_users(root: Sysroot) -> list[str]:
    """The processes that hold perf events, as names. Never raises."""
    return [one.name for one in find_holders(root, re.escape(_PERF)).found]


def stop_of(root: Sysroot, pid: int) -> str:
    """What ends a process: the command that stops its service, or a signal to one of root's own; else whose it is."""
    if unit := service_of(root, pid):
        return argv("sudo", "systemctl", "stop", of=[unit])
    others = users_of(root, pid) - {0}
    return f"process {pid} is uid {max(others)}'s to end" if others else argv("sudo", "kill", str(pid))
