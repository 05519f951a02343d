"""How one thread is scheduled, named by its stat file, proc/PID/stat. Source: sched(7); proc(5), fields 22, 40 and 41.

What stands there is one text, `fifo:50 8123 irq/33-eth0`: policy and priority, then the tick at which the thread
started, and its name. A number of a process is used again, and these two tell one thread from the next that has it.
"""

from __future__ import annotations

import errno
import os
from typing import NamedTuple

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
    return [one for one in read_kernel_threads(root) if one.comm == name_in(text)]


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
