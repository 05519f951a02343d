"""What a process busy-polls, and on how many CPUs its threads can do that at once. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tunectl.cpulist import CpuSet
from tunectl.host.busypoll import Polled
from tunectl.host.procs import Thread
from tunectl.wording import plural


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


def named(found: Sequence[Polled]) -> str:
    """`2 sockets and 1 epoll instance`."""
    sockets, epolls = sum(not one.is_epoll for one in found), sum(one.is_epoll for one in found)
    parts = [plural(sockets, "socket")] * bool(sockets) + [plural(epolls, "epoll instance")] * bool(epolls)
    return " and ".join(parts)
