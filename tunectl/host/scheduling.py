"""How one thread is scheduled and where it may run, named by its stat or status file in /proc/PID.

Source: sched(7); sched_setaffinity(2); proc(5), fields 22, 40 and 41.

Of scheduling one text stands there, `fifo:50 8123 irq/33-eth0`: policy and priority, then the tick at which the thread
started, and its name. A number of a process is used again, and these two tell one thread from the next that has it.
"""

import errno
import os
from collections.abc import Collection
from typing import NamedTuple

from tunectl.cpulist import parse_cpulist
from tunectl.host.procs import Thread, parse_stat, read_kernel_threads
from tunectl.host.sysroot import Sysroot

# include/uapi/linux/sched.h
POLICIES = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline", 7: "ext"}
BY_PRIORITY = ("fifo", "rr")
REAL_TIME = (*BY_PRIORITY, "deadline")
_NUMBERS = {name: number for number, name in POLICIES.items()}


class Scheduling(NamedTuple):
    """A policy and its priority, 0 where the policy has none."""

    policy: str
    priority: int = 0

    def __str__(self) -> str:
        return f"{self.policy} {self.priority}" if self.priority else self.policy

    @property
    def rank(self) -> int:
        """Of two threads that are ready on one CPU, the one with the higher rank has it. sched(7)"""
        if self.policy == "deadline":
            return 100
        return self.priority if self.policy in BY_PRIORITY else 0


def scheduling_of(thread: Thread) -> Scheduling:
    """How a thread that was read is scheduled."""
    return Scheduling(POLICIES.get(thread.policy, f"policy-{thread.policy}"), thread.rt_priority)


def parse_scheduling(text: str) -> Scheduling:
    """The policy and priority that a text begins with. ValueError for any other text."""
    policy, _, priority = text.partition(" ")[0].partition(":")
    if policy not in _NUMBERS or not priority.isdecimal() or len(priority) > 2:
        raise ValueError(f"'{text[:60]}' is no policy and priority")
    return Scheduling(policy, int(priority))


def identity(text: str) -> str:
    """What tells the thread of such a text from every other: when it started, and its name."""
    return text.partition(" ")[2]


def name_in(text: str) -> str:
    """The name of the thread of such a text."""
    return identity(text).partition(" ")[2]


def named_as(root: Sysroot, text: str) -> list[Thread]:
    """The kernel threads that have the name of such a text now. Never raises."""
    return [kernel_thread for kernel_thread in read_kernel_threads(root) if kernel_thread.comm == name_in(text)]


def as_text(how: Scheduling, thread: Thread) -> str:
    """The text of a thread that is scheduled so."""
    return f"{how.policy}:{how.priority} {thread.began} {thread.comm}"


def read_scheduling(root: Sysroot, path: str) -> str | None:
    """The text as it stands; None where the thread is gone. OSError where it cannot be read."""
    try:
        stat = root.checked_numbers(root.read_bytes(path)).decode("latin-1")
    except (FileNotFoundError, ProcessLookupError):
        return None
    thread = parse_stat(stat, process_of(path))
    return as_text(scheduling_of(thread), thread) if thread else None


def process_of(path: str) -> int:
    """The process of `proc/PID/stat`."""
    return int(path.split("/")[1])


def set_scheduling(path: str, content: str) -> None:
    """The thread that the text names gets its policy and priority. OSError: ESRCH where that thread is gone."""
    how = parse_scheduling(content)
    stands = read_scheduling(Sysroot("/"), path)
    if stands is None or identity(stands) != identity(content):
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH), f"/{path}")
    os.sched_setscheduler(process_of(path), _NUMBERS[how.policy], os.sched_param(how.priority))


def with_scheduling(stat: str, content: str) -> str:
    """A stat file as a kernel would show it once its thread is scheduled as the text says."""
    how = parse_scheduling(content)
    head, mark, tail = stat.rpartition(")")
    fields = tail.split()
    shown = -1 - how.priority if how.policy in BY_PRIORITY else 20 + int(fields[16])
    fields[15], fields[37], fields[38] = str(shown), str(how.priority), str(_NUMBERS[how.policy])
    return f"{head}{mark} {' '.join(fields)}\n"


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
