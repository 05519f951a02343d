"""How many busy-polled sockets a process may have: on values alone, at the limits."""

from __future__ import annotations

import pytest

from tunectl.checking.polling import Defaults, Room, cpus_for, named, pollers, room_for
from tunectl.host.busypoll import Polled
from tunectl.host.procs import Thread

OFF = Defaults(0, 0)
WAITS = Polled(is_epoll=False, usecs=50, blocks=True)
GOES_ON = WAITS._replace(blocks=False)
EPOLL = Polled(is_epoll=True, usecs=64)
IDLE_EPOLL = EPOLL._replace(usecs=0)


def thread(tid: int, allowed: frozenset[int] | None) -> Thread:
    return Thread(7, tid, "rx", "R", 0, 2, 0.0, 0.0, 0, allowed)


@pytest.mark.parametrize(
    ("polled", "defaults", "room"),
    [
        ([WAITS], OFF, Room.ENOUGH),
        ([WAITS] * 2, OFF, Room.UNKNOWN),  # two CPUs, of which one is a declared thread's
        ([WAITS] * 3, OFF, Room.TOO_LITTLE),
        ([GOES_ON] * 3, OFF, Room.UNKNOWN),  # one thread can go round them
        ([WAITS] * 3, Defaults(50, 0), Room.UNKNOWN),  # nobody asked for it but the default
        ([WAITS] * 3, Defaults(20, 0), Room.TOO_LITTLE),
        ([WAITS] * 3, Defaults(0, 50), Room.UNKNOWN),  # one poll(2) polls them all
        ([*[WAITS] * 3, IDLE_EPOLL], OFF, Room.UNKNOWN),  # and so may epoll
        ([EPOLL], OFF, Room.ENOUGH),
        ([EPOLL] * 2, OFF, Room.UNKNOWN),
        ([EPOLL] * 3, OFF, Room.TOO_LITTLE),
        ([IDLE_EPOLL] * 3, OFF, Room.ENOUGH),
        ([IDLE_EPOLL] * 3, Defaults(0, 50), Room.UNKNOWN),
        ([EPOLL, EPOLL, WAITS], OFF, Room.UNKNOWN),
    ],
)
def test_one_cpu_for_each(polled: list[Polled], defaults: Defaults, room: Room) -> None:
    assert room_for(polled, defaults, declared=1, most=2) is room


def test_threads_that_are_held_to_one_cpu_poll_no_two_sockets_at_once() -> None:
    two, both = frozenset({2}), frozenset({2, 3})
    assert cpus_for([thread(1, two), thread(2, two)]) == 1
    assert cpus_for([thread(1, two), thread(2, both)]) == 2
    assert cpus_for([thread(1, both)]) == 1
    assert cpus_for([thread(1, two), thread(2, None)]) == 2


def test_what_is_polled_is_named() -> None:
    assert pollers([WAITS, IDLE_EPOLL], OFF) == [WAITS]
    assert named(pollers([WAITS, IDLE_EPOLL], Defaults(0, 50))) == "1 socket and 1 epoll instance"
    assert named([WAITS] * 2) == "2 sockets"
    assert named([EPOLL]) == "1 epoll instance"
    assert str(Defaults(50, 20)) == "busy_read=50 busy_poll=20"
