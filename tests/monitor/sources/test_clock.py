"""The source `clock`: fresh, stale, no data, absent; and the windows of the sentinel's gaps."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.monitor.live import Live
from tests.probe.conftest import cpu, installed, program  # noqa: F401
from tunectl.monitor.model import Freshness, Sample
from tunectl.monitor.sources import clock
from tunectl.monitor.sources.clock import SOURCE

Snapshot = Callable[[float], dict[str, Sample]]


@pytest.fixture
def watched(installed: Path, cpu: int, tmp_path: Path) -> Iterator[Live]:  # noqa: F811
    live = Live(tmp_path, f"[monitor.sla]\nwindow_s = 2\n[monitor.sentinel]\ncpu = {cpu}\n")
    yield live
    pid: int = live.watched_host._lasting._there["clock"][1].sentinel.pid
    live.watched_host.close()
    assert not Path(f"/proc/{pid}").exists()


def read(live: Live) -> dict[str, Sample]:
    return {sample.quantity: sample for sample in SOURCE.read(live.watched_host)}


def until(live: Live, wanted: Callable[[dict[str, Sample]], bool], step_s: float = 0.05) -> dict[str, Sample]:
    """Looks, in the machine's own time, until it holds."""
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        found = read(live)
        if wanted(found):
            return found
        time.sleep(step_s)
        live.pass_time(step_s)
    raise AssertionError("it never came")


@pytest.mark.slow
def test_fresh_then_stale_then_gone_then_back(watched: Live, cpu: int) -> None:  # noqa: F811
    first = read(watched)["core_khz"]
    kept = watched.watched_host._lasting._there["clock"][1]
    assert first.freshness is Freshness.STALE or kept.sentinel.spoke_at is not None
    core = until(watched, lambda found: found["core_khz"].freshness is Freshness.FRESH)["core_khz"]
    assert (core.subject, core.cpus) == (f"cpu{cpu}", frozenset({cpu}))
    assert isinstance(core.value, int)
    assert 1e5 < core.value < 1e7

    os.kill(kept.sentinel.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, kept.sentinel.pid, os.WSTOPPED | os.WNOWAIT)
    read(watched)
    watched.pass_time(10)
    stale = read(watched)
    assert stale["core_khz"].freshness is Freshness.STALE
    assert {sample.freshness for name, sample in stale.items() if name != "base_khz"} == {Freshness.STALE}

    os.kill(kept.sentinel.pid, signal.SIGKILL)
    until(watched, lambda found: found["core_khz"].freshness is Freshness.NO_DATA)
    until(watched, lambda found: found["core_khz"].freshness is Freshness.FRESH)
    assert kept.sentinel.starts == 2


@pytest.mark.slow
def test_a_line_that_is_exactly_as_old_as_allowed_is_fresh(watched: Live) -> None:
    until(watched, lambda found: found["core_khz"].freshness is Freshness.FRESH)
    kept: Any = watched.watched_host._lasting._there["clock"][1]
    kept.sentinel.spoke_at = 0.0
    assert clock._freshness(kept, kept.stale_s)[0] is Freshness.FRESH
    assert clock._freshness(kept, kept.stale_s + 0.001)[0] is Freshness.STALE


@pytest.mark.slow
def test_its_gaps_are_windows_of_the_subject_sentinel(watched: Live, cpu: int) -> None:  # noqa: F811
    found = until(watched, lambda found: found["latency_max_ns"].freshness is Freshness.FRESH)
    longest, p99_9 = found["latency_max_ns"], found["latency_p99_9_ns"]
    assert (longest.subject, longest.cpus) == ("sentinel", frozenset({cpu}))
    assert isinstance(longest.value, float)
    assert isinstance(p99_9.value, float)
    assert 0 <= p99_9.value <= longest.value


def test_without_a_cpu_of_its_own_there_is_none(tmp_path: Path) -> None:
    (sample,) = SOURCE.read(Live(tmp_path, "").watched_host)
    assert (sample.freshness, sample.quantity) == (Freshness.ABSENT, "core_khz")


@pytest.mark.parametrize("khz", [17.0, 3594.0, 4e12])
def test_a_clock_that_cannot_be_is_no_data(khz: float) -> None:
    sample = clock._sample(2, khz, Freshness.FRESH)
    assert (sample.freshness, sample.value) == (Freshness.NO_DATA, None)
