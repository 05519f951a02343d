"""The resident sentinel as the monitor sees it: started, read without waiting, buried and started again."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.probe.conftest import cpu, installed, program  # noqa: F401
from tunectl.cpulist import CpuSet
from tunectl.errors import TunectlError, UsageError
from tunectl.host.run import Resident
from tunectl.monitor.sources.clock import SCHEMA, Sentinel, sample_clock

Started = Callable[[Sequence[str], CpuSet], Resident]


def script(text: str) -> Started:
    """A program of our own in the sentinel's place."""
    return lambda words, cpus: Resident(["/bin/sh", "-c", text])


def line(khz: float) -> str:
    return json.dumps({"schema": SCHEMA, "core_khz": khz, "spin_ns": 1e7, "gap_ns": [[500, 2]]})


@pytest.fixture(autouse=True)
def _some_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNECTL_PROBE", "/bin/true")


@pytest.fixture
def started() -> Iterator[Callable[[str], Sentinel]]:
    """Makes a sentinel whose program is a shell's; all of them are closed at the end."""
    with ExitStack() as opened:
        yield lambda text: opened.enter_context(closing(Sentinel(1, script(text))))


def until(sentinel: Sentinel, wanted: Callable[[], bool], start: float = 0.0) -> float:
    """Looks until it holds; the seconds on the sentinel's own clock."""
    limit, now = time.monotonic() + 60, start
    while time.monotonic() < limit:
        sentinel.look(now)
        if wanted():
            return now
        time.sleep(0.02)
        now += 0.02
    raise AssertionError("it never came")


def test_lines_are_read_as_they_come(started: Callable[[str], Sentinel]) -> None:
    text = f"echo '{line(3e6)}'; printf '%s' '{line(2e6)[:20]}'; sleep 0.3; echo '{line(2e6)[20:]}'; exec sleep 60"
    sentinel = started(text)
    until(sentinel, lambda: sentinel.core_khz == 3e6)
    until(sentinel, lambda: sentinel._earlier_khz == 2e6)
    assert sentinel.core_khz == 3e6  # the faster of the last two: a disturbance can only slow a line down


def test_what_is_no_line_of_ours_is_as_if_it_had_not_come(started: Callable[[str], Sentinel]) -> None:
    odd = ["", "{", "[]", "null", '{"schema":"other/1"}', '{"schema":"tunectl.probe.sentinel/1"}', "\\377"]
    text = "; ".join(f"printf '{one}\\n'" for one in odd) + f"; echo '{line(9e5)}'; exec sleep 60"
    sentinel = started(text)
    until(sentinel, lambda: sentinel.spoke_at is not None)
    assert sentinel.core_khz == 9e5


def test_one_that_died_says_why_and_is_started_again_later_and_later() -> None:
    sentinel = Sentinel(1, script("echo 'tunectl-probe: CPU 1 went away' >&2; exit 1"))
    started: list[float] = []
    for tick in range(1000):
        sentinel.look(tick * 0.1)
        if sentinel.starts > len(started):
            started.append(tick * 0.1)
        while sentinel.pid is not None:  # it dies at once; how soon is the scheduler's affair
            time.sleep(0.005)
            sentinel.look(tick * 0.1)
    assert "CPU 1 went away" in sentinel.problem
    assert started == pytest.approx([0, 1, 3, 7, 15, 31, 63], abs=0.8)


def test_one_that_is_killed_is_no_data_until_it_speaks_again(started: Callable[[str], Sentinel]) -> None:
    sentinel = started(f"echo '{line(3e6)}'; exec sleep 60")
    now = until(sentinel, lambda: sentinel.spoke_at is not None)
    assert sentinel.pid is not None
    os.kill(sentinel.pid, signal.SIGKILL)
    until(sentinel, lambda: sentinel.pid is None, now)
    assert (sentinel.core_khz, sentinel.spoke_at) == (None, None)
    until(sentinel, lambda: sentinel.core_khz == 3e6, now + 1.5)
    assert sentinel.starts == 2


def test_a_flood_without_a_newline_is_bounded(started: Callable[[str], Sentinel]) -> None:
    sentinel = started("exec cat /dev/zero")
    for _ in range(50):
        sentinel.look(0.0)
    assert sentinel._program is not None
    assert len(sentinel._program._rest) <= Resident.MOST_BYTES


def test_no_program_is_a_problem_and_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNECTL_PROBE", "/nonexistent")
    sentinel = Sentinel(1)
    assert sentinel.look(0.0) == []
    assert "/nonexistent is not a program" in sentinel.problem


def test_reading_never_waits_and_closing_ends_the_program() -> None:
    sentinel = Sentinel(1, script("exec sleep 60"))
    sentinel.look(0.0)
    pid = sentinel.pid
    assert pid is not None
    sentinel.close()
    assert not Path(f"/proc/{pid}").exists()
    forgotten = Sentinel(1, script("exec sleep 60"))
    forgotten.look(0.0)
    pid = forgotten.pid
    del forgotten
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.slow
def test_the_real_one(installed: Path, cpu: int) -> None:  # noqa: F811
    with closing(Sentinel(cpu)) as sentinel:
        until(sentinel, lambda: sentinel.core_khz is not None)
        assert 1e5 < (sentinel.core_khz or 0) < 1e7


def test_a_short_sample_on_request(installed: Path, cpu: int) -> None:  # noqa: F811
    assert 1e5 < sample_clock(cpu) < 1e7
    with pytest.raises(UsageError, match="not online"):
        sample_clock(60_000)


def test_a_sample_that_is_none_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TunectlError):
        sample_clock(0)  # /bin/true says nothing
