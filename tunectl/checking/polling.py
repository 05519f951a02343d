"""Does each busy-polled socket of a process have a thread, and a CPU, for itself? As far as that can be told. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from tunectl.cpulist import CpuSet
from tunectl.host.busypoll import Polled
from tunectl.host.procs import Thread
from tunectl.wording import plural


class Room(Enum):
    """Is there a thread and a CPU for each?"""

    ENOUGH = "enough"
    UNKNOWN = "unknown"
    TOO_LITTLE = "too little"


class Defaults(NamedTuple):
    """What a socket and an epoll instance poll by default, us: net.core.busy_read and busy_poll."""

    read: int
    poll: int

    def __str__(self) -> str:
        on = {"busy_read": self.read, "busy_poll": self.poll}
        return " ".join(f"{name}={usecs}" for name, usecs in on.items() if usecs)


def pollers(polled: Iterable[Polled], defaults: Defaults) -> list[Polled]:
    """Those that are really polled: an epoll instance by its own parameters, or by default."""
    return [one for one in polled if one.usecs or (one.is_epoll and defaults.poll)]


def cpus_for(threads: Sequence[Thread]) -> int:
    """On how many CPUs at once these threads can be; on one each where nobody says where they may run."""
    places: list[CpuSet | None] = [one.allowed for one in threads]
    if not all(places):
        return len(threads)
    return min(len(threads), len(frozenset().union(*(place for place in places if place))))


def room_for(polled: Sequence[Polled], defaults: Defaults, declared: int, most: int) -> Room:
    """`declared`: the CPUs of the process's declared threads; `most`: those that all its threads can have at once.

    Too little is said only of what must be polled by a thread of its own: epoll instances with parameters of their own,
    and sockets with SO_BUSY_POLL of their own whose reads wait, where no epoll or poll(2) can poll several. A thread
    can go round sockets whose reads do not wait, and an epoll instance waits for all sockets of one receive queue.
    """
    found = pollers(polled, defaults)
    if len(found) <= declared:
        return Room.ENOUGH
    own = [one for one in found if one.is_epoll and one.usecs]
    if not defaults.poll and not any(one.is_epoll for one in polled):
        own += [one for one in found if one.blocks and one.usecs != defaults.read]
    return Room.TOO_LITTLE if len(own) > most else Room.UNKNOWN


def named(found: Sequence[Polled]) -> str:
    """`2 sockets and 1 epoll instance`."""
    sockets, epolls = sum(not one.is_epoll for one in found), sum(one.is_epoll for one in found)
    parts = [plural(sockets, "socket")] * bool(sockets) + [plural(epolls, "epoll instance")] * bool(epolls)
    return " and ".join(parts)
