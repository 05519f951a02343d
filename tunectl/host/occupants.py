"""Whose threads want which CPU: where one of somebody else's runs, nothing of ours goes.

Told from two looks at /proc, which is memory: no CPU is interrupted. Source: Documentation/filesystems/proc.rst (stat,
schedstat, Cpus_allowed_list).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from tunectl.command import as_data
from tunectl.cpulist import CpuSet, named_cpus
from tunectl.host.cpusets import CpuFacts
from tunectl.host.procs import Thread, find_threads, read_threads
from tunectl.host.sysroot import Sysroot
from tunectl.model import Trading

Key = tuple[int, int]  # (pid, tid)
# A thread that does something ten times a second is awake at least twice in this time.
_LOOK_S = 0.25


class Occupant(NamedTuple):
    """A thread of somebody else that wants a CPU, as it was at the second look."""

    thread: Thread
    name: str  # of its declaration in the host file, or ""

    @property
    def shown(self) -> str:
        """In words: `engine (tid 77)`, and the name it was declared by."""
        declared = f", declared as {self.name}" if self.name else ""
        return f"{as_data(self.thread.comm)} (tid {self.thread.tid}{declared})"


class Place(NamedTuple):
    """The CPUs that are asked about, and what a thread of theirs is."""

    cpus: CpuSet
    elsewhere: CpuSet  # housekeeping CPUs: a thread that may run there is moved there by the scheduler
    isolated: CpuSet  # the scheduler moves nothing away from these
    siblings: Mapping[int, CpuSet]  # the CPUs of each CPU's core: a spinner on one slows the others

    @classmethod
    def of(cls, facts: CpuFacts, cpus: CpuSet, isolated: CpuSet) -> Place:
        """Of `cpus`, where the operator isolates `isolated`."""
        elsewhere = facts.online - isolated - facts.quiet - cpus
        return cls(cpus, elsewhere, facts.kernel_isolated | facts.partitioned, facts.siblings)


def look(
    root: Sysroot, place: Place, trading: Iterable[Trading] = (), seconds: float = _LOOK_S
) -> dict[int, list[Occupant]]:
    """Who wants each of these CPUs now, from two looks `seconds` apart. CPUs that nobody wants are left out."""
    before = read_threads(root)
    time.sleep(seconds)
    return occupants(before, read_threads(root, affinity=True), place, declared(root, trading))


def declared(root: Sysroot, trading: Iterable[Trading]) -> dict[Key, str]:
    """The host file's own threads that run now, by name."""
    return {(thread.pid, thread.tid): trader.name for trader in trading for thread in find_threads(root, trader)}


def occupants(
    before: Mapping[Key, Thread], after: Mapping[Key, Thread], place: Place, names: Mapping[Key, str]
) -> dict[int, list[Occupant]]:
    """The same from the threads at both looks, the second with their affinity. Pure."""
    found: dict[int, list[Occupant]] = {}
    for key, now in after.items():
        then = before.get(key)
        if not _wants(then, now) or not (key in names or _stays(now, place)):
            continue
        for cpu in place.cpus & (place.siblings.get(now.cpu, frozenset()) | {now.cpu}):
            found.setdefault(cpu, []).append(Occupant(now, names.get(key, "")))
    return {cpu: sorted(found[cpu], key=lambda occupant: not occupant.name) for cpu in sorted(found)}


def _wants(then: Thread | None, now: Thread) -> bool:
    """Was it runnable, now or in between? A thread of the kernel's own only where it is all the time."""
    if not now.alive:
        return False
    if now.kernel:
        return now.movable and then is not None and (then.state, now.state) == ("R", "R")
    return now.state == "R" or then is None or then.slices != now.slices or then.run_s != now.run_s


def _stays(now: Thread, place: Place) -> bool:
    """Is it the CPU's own: pinned there, or, on an isolated CPU, put there by whatever it was?"""
    if now.cpu in place.isolated or now.allowed is None:
        return now.cpu in place.isolated
    return not now.allowed & place.elsewhere if place.elsewhere else now.allowed < place.cpus


def said(found: Mapping[int, Collection[Occupant]]) -> dict[int, str]:
    """For each CPU that somebody wants: why nothing of ours goes there."""
    return {
        cpu: "; ".join(f"{occupant.shown} runs there" for occupant in list(there)[:3]) for cpu, there in found.items()
    }


def refusal(found: Mapping[int, Collection[Occupant]]) -> str:
    """The same for all CPUs, in a sentence."""
    why = "; ".join(f"CPU {cpu}: {text}" for cpu, text in said(found).items())
    return f"nothing of ours goes to {named_cpus(found)}, where somebody else's threads run ({why})"
