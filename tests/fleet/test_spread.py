"""Work in other processes: in its order, whole also where a worker is killed or cannot be had, and none is left."""

import os
import resource
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.probe.running import until_ended
from tunectl.fleet.spread import WorkerError, answered, apart, spread

ITEMS = range(1000)
OWN = os.getpid()


def children() -> str:
    """This process' own."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()


def whose(item: int) -> tuple[int, int]:
    return item, os.getpid()


def killed(item: int) -> str:
    if item == 700 and os.getpid() != OWN:
        os.kill(os.getpid(), signal.SIGKILL)
    return "x" * item


def failing(item: int) -> int:
    return 1000 // (item - 500)


def long(item: int) -> str:
    return f"{item} " * 2000


def test_results_come_in_their_order_from_two_other_processes() -> None:
    made = [*spread(ITEMS, whose)]
    assert [item for item, _ in made] == [*ITEMS]
    workers = {pid for _, pid in made}
    assert 1 <= len(workers) <= 2
    assert (os.getpid() in workers) == (len(os.sched_getaffinity(0)) == 1)
    assert [*spread(range(5), whose)] == [(item, os.getpid()) for item in range(5)]


def test_what_a_killed_worker_does_not_deliver_is_done_here() -> None:
    assert [*spread(ITEMS, killed)] == ["x" * item for item in ITEMS]


def cut_off() -> Iterator[str]:
    yield str(os.getpid())
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGKILL)).start()
    yield "x" * (1 << 22)  # more than a pipe holds


def test_a_worker_that_is_killed_while_it_delivers_is_named() -> None:
    before = children()
    with apart([cut_off]) as (worker,):
        assert until_ended(int(next(worker)))  # who is killed later may have delivered it all
        with pytest.raises(WorkerError, match="a worker was killed by signal 9"):
            next(worker)
    assert children() == before


def test_an_error_is_that_of_the_work(capfd: pytest.CaptureFixture[str]) -> None:
    before = children()
    with pytest.raises(ZeroDivisionError):
        [*spread(ITEMS, failing)]
    assert capfd.readouterr() == ("", "")
    assert children() == before


def test_nobody_is_left_where_the_reader_goes() -> None:
    before = children()
    results = spread(range(10_000), long)
    assert next(results) == long(0)
    results.close()  # type: ignore[attr-defined]
    assert children() == before


def test_it_does_without_descriptors() -> None:
    [*spread(ITEMS, whose)]  # what is imported opens files
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 1, hard))
    try:
        assert [*spread(ITEMS, str)] == [*map(str, ITEMS)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_an_answer_is_that_of_the_work_within_its_limits() -> None:
    before = children()
    assert answered(os.getpid, 1 << 28, 60) != OWN
    with pytest.raises(ZeroDivisionError):
        answered(lambda: 1 // 0, 1 << 28, 60)
    with pytest.raises(MemoryError):
        answered(lambda: len(bytes(1 << 29)), 1 << 28, 60)
    with pytest.raises(MemoryError):
        answered(lambda: os.kill(os.getpid(), signal.SIGKILL), 1 << 28, 60)
    with pytest.raises(TimeoutError):
        answered(signal.pause, 1 << 28, 0.1)
    assert children() == before
