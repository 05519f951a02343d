"""What is busy-polled, and on how many CPUs at once: on values alone."""

from __future__ import annotations

from tunectl.checking.traders import Defaults, cpus_for, named, pollers
from tunectl.host.openfiles import Polled
from tunectl.host.procs import Thread

OFF = Defaults(0, 0)
SOCKET = Polled(is_epoll=False, usecs=50)
EPOLL = Polled(is_epoll=True, usecs=64)
IDLE_EPOLL = EPOLL._replace(usecs=0)


def thread(tid: int, allowed: frozenset[int] | None) -> Thread:
    return Thread(7, tid, "rx", "R", 0, 2, 0.0, 0.0, 0, allowed)


def test_threads_that_are_held_to_one_cpu_poll_no_two_sockets_at_once() -> None:
    two, both = frozenset({2}), frozenset({2, 3})
    assert cpus_for([thread(1, two), thread(2, two)]) == 1
    assert cpus_for([thread(1, two), thread(2, both)]) == 2
    assert cpus_for([thread(1, both)]) == 1
    assert cpus_for([thread(1, two), thread(2, None)]) == 2


def test_what_is_polled_is_named() -> None:
    assert pollers([SOCKET, IDLE_EPOLL], OFF) == [SOCKET]
    assert named(pollers([SOCKET, IDLE_EPOLL], Defaults(0, 50))) == "1 socket and 1 epoll instance"
    assert named([SOCKET] * 2) == "2 sockets"
    assert named([EPOLL]) == "1 epoll instance"
    assert str(Defaults(50, 20)) == "busy_read=50 busy_poll=20"
