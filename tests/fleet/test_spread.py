"""Work in other processes: in its order, whole also where a worker is killed or cannot be had, and none is left."""

import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tunectl.fleet.spread import spread

ITEMS = range(1000)


def children() -> str:
    """This process' own."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()


def test_results_come_in_their_order_from_two_other_processes() -> None:
    made = [*spread(ITEMS, lambda item: (item, os.getpid()))]
    assert [item for item, _ in made] == [*ITEMS]
    workers = {pid for _, pid in made}
    assert len(workers) == min(2, len(os.sched_getaffinity(0)))
    assert (os.getpid() in workers) == (len(workers) == 1)
    assert [*spread(range(5), lambda item: os.getpid())] == [os.getpid()] * 5


def test_what_a_killed_worker_does_not_deliver_is_done_here() -> None:
    own = os.getpid()

    def work(item: int) -> str:
        if item == 700 and os.getpid() != own:
            os.kill(os.getpid(), signal.SIGKILL)
        return "x" * item

    assert [*spread(ITEMS, work)] == ["x" * item for item in ITEMS]


def test_an_error_is_that_of_here(capfd: pytest.CaptureFixture[str]) -> None:
    def work(item: int) -> int:
        return 1000 // (item - 500)

    before = children()
    with pytest.raises(ZeroDivisionError):
        [*spread(ITEMS, work)]
    assert capfd.readouterr() == ("", "")
    assert children() == before


def test_nobody_is_left_where_the_reader_goes() -> None:
    before = children()
    results = spread(range(100_000), lambda item: "x" * 10_000)
    assert next(results) == "x" * 10_000
    assert isinstance(results, Iterator)
    results.close()  # type: ignore[attr-defined]
    assert children() == before


def test_it_does_without_descriptors() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 1, hard))
    try:
        assert [*spread(ITEMS, str)] == [*map(str, ITEMS)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
