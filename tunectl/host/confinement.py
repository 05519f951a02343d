"""What bounds one thread: the control groups that it lives in, of version 1 and 2, and its process's resource limits.

Source: Documentation/admin-guide/cgroup-v2.rst (cpu.max, cpu.uclamp.max, memory.high, cgroup.freeze);
Documentation/scheduler/sched-bwc.rst, sched-rt-group.rst; Documentation/admin-guide/cgroup-v1/freezer-subsystem.rst,
memory.rst; getrlimit(2); proc(5), /proc/PID/limits.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tunectl.host.sysroot import Sysroot

MOUNT = "sys/fs/cgroup"
_HYBRID = f"{MOUNT}/unified"  # where version 1 has the controllers, and version 2 is beside it
_WIDTHS = (26, 47)  # of a line of /proc/PID/limits: where the soft and the hard limit begin (fs/proc/base.c)
_FAIR = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
_REAL_TIME = ("cpu.rt_runtime_us", "cpu.rt_period_us")
_FULL = 100.0


class Quota(NamedTuple):
    """A file that allows a group so much CPU time, in CPUs, and how many threads share it."""

    path: str
    cpus: float
    threads: int


class Ceiling(NamedTuple):
    """A file that bounds a group's memory, and the most that the group has had; bytes."""

    path: str
    limit: int
    peak: int


def read_soft_limits(root: Sysroot, pid: int) -> dict[str, str]:
    """The soft limits of a process by name, `Max cpu time`; none where it has ended, or a recording lacks them."""
    lines = root.get_text(f"proc/{pid}/limits").split("\n")[1:]
    soft, hard = _WIDTHS
    return {line[:soft].strip(): line[soft:hard].strip() for line in lines if line.strip()}


def group_dirs(root: Sysroot, pid: int, tid: int) -> list[str]:
    """The groups of a thread and those above them, of each hierarchy from the lowest up. Never raises.

    A group outside the control group namespace in which we are is shown as `/../x`: nothing of it can be read.
    """
    text = root.get_text(f"proc/{pid}/task/{tid}/cgroup") or root.get_text(f"proc/{pid}/cgroup")
    found: list[str] = []
    for line in text.split("\n"):  # not splitlines(): a user may put \x0c into the name of a group of his
        controllers, colon, path = line.partition(":")[2].partition(":")
        names = path.strip("/").split("/")
        if colon and ".." not in names:
            place = f"{MOUNT}/{controllers.removeprefix('name=')}"
            if not controllers:
                place = _HYBRID if root.exists(f"{_HYBRID}/cgroup.controllers") else MOUNT
            found += ["/".join((place, *names[:depth])) for depth in range(len(names), 0, -1) if names[depth - 1]]
            found.append(place)
    return found


def read_quotas(root: Sysroot, dirs: Iterable[str], *, real_time: bool) -> list[Quota]:
    """What limits the CPU time of these groups: of ordinary threads, or of SCHED_FIFO and SCHED_RR (version 1 alone).

    What the root of version 1 says of real-time threads is kernel.sched_rt_runtime_us, a knob of its own.
    """
    found = []
    for directory in dirs:
        quota, period = _REAL_TIME if real_time else _FAIR
        path = f"{directory}/{quota}"
        words = [root.get(path).strip(), root.get(f"{directory}/{period}").strip()]
        if not real_time and not words[0]:
            path = f"{directory}/cpu.max"
            words = root.get(path).split()
        at_root = real_time and directory.count("/") == MOUNT.count("/") + 1
        if len(words) == 2 and all(word.isdecimal() for word in words) and int(words[1]) and not at_root:
            found.append(Quota(path, int(words[0]) / int(words[1]), count_threads(root, directory)))
    return found


def count_threads(root: Sysroot, directory: str) -> int:
    """The threads of a group and of those below it. Never raises."""
    own = root.get_text(f"{directory}/cgroup.threads") or root.get_text(f"{directory}/tasks")
    below = (name for name in root.listdir(directory) if root.exists(f"{directory}/{name}/cgroup.procs"))
    return len(own.split()) + sum(count_threads(root, f"{directory}/{name}") for name in below)


def read_ceilings(root: Sysroot, dirs: Iterable[str]) -> list[Ceiling]:
    """What bounds the memory of these groups. The peak is memory.peak (since 5.19), else what the group has now."""
    found = []
    for directory in dirs:
        for name in ("memory.high", "memory.max", "memory.limit_in_bytes"):
            limit = root.get(f"{directory}/{name}").strip()
            peaks = ("memory.peak", "memory.max_usage_in_bytes", "memory.current")
            peak = next(filter(None, (root.get(f"{directory}/{peak}").strip() for peak in peaks)), "")
            if limit.isdecimal() and peak.isdecimal():
                found.append(Ceiling(f"{directory}/{name}", int(limit), int(peak)))
    return found


def read_freezers(root: Sysroot, dirs: Iterable[str]) -> list[str]:
    """The files that hold these groups still: cgroup.freeze, or freezer.state of version 1."""
    held = []
    for directory in dirs:
        if root.get(f"{directory}/cgroup.freeze").strip() == "1":
            held.append(f"{directory}/cgroup.freeze")
        if root.get(f"{directory}/freezer.self_freezing").strip() == "1":
            held.append(f"{directory}/freezer.state")
    return held


def read_clamps(root: Sysroot, dirs: Sequence[str]) -> dict[str, str]:
    """The files that keep the clock of these groups' threads below the CPU's: path -> percent, as the file says it."""
    shown = {path: root.get(path).strip() for path in (f"{directory}/cpu.uclamp.max" for directory in dirs)}
    return {path: text for path, text in shown.items() if text.replace(".", "", 1).isdecimal() and float(text) < _FULL}
