"""How far off the clock is, as the monitor has it: asked now and then, and a step seen at once."""

import itertools
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.monitor.live import Live
from tests.monitor.watched import watch
from tunectl.monitor.model import Freshness, Sample
from tunectl.monitor.sources import hosttime

really = time.clock_gettime_ns


def read(live: Live) -> dict[str, Sample]:
    return {sample.quantity: sample for sample in hosttime.read(live.watched_host)}


@pytest.fixture
def live(tmp_path: Path) -> Live:
    return Live(tmp_path, "")


@pytest.fixture
def ahead_ns(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How far somebody has set the clock forward."""
    ahead = [0]
    monkeypatch.setattr(
        time, "clock_gettime_ns", lambda clock: really(clock) + (ahead[0] if clock == time.CLOCK_REALTIME else 0)
    )
    return ahead


def test_a_clock_that_nobody_sets_makes_no_step(live: Live) -> None:
    for _ in range(20):
        assert read(live)["clock_step_ns"].value == 0
        live.pass_time(1.0)


@pytest.mark.parametrize("moved", [3_600_000_000_000, -50_000_000])
def test_a_step_is_seen_in_the_next_look_and_named_for_an_hour(live: Live, ahead_ns: list[int], moved: int) -> None:
    read(live)
    ahead_ns[0] = moved
    live.pass_time(1.0)
    assert float(read(live)["clock_step_ns"].value or 0) == pytest.approx(moved, abs=20e6)
    live.pass_time(3598.0)
    found = read(live)["clock_step_ns"]
    assert found.value
    assert found.reason == "3598 s ago"
    live.pass_time(3.0)
    assert read(live)["clock_step_ns"].value == 0


def test_the_owners_are_asked_every_ten_seconds_and_after_a_step(live: Live, ahead_ns: list[int]) -> None:
    kept = read(live)["clock_error_ns"]
    live.pass_time(1.0)
    assert read(live)["clock_error_ns"] is kept
    ahead_ns[0] = 10**12
    live.pass_time(1.0)
    again = read(live)["clock_error_ns"]
    assert again is not kept
    live.pass_time(3000.0)
    assert read(live)["clock_error_ns"] is not again


def test_who_kept_us_waiting_for_a_minute_is_asked_again_within_ten(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosttime, "time", SimpleNamespace(monotonic=itertools.count(0.0, 60.0).__next__))
    kept = read(live)["clock_error_ns"]
    for seconds, is_kept in ((599.0, True), (1.0, False)):
        live.pass_time(seconds)
        assert (read(live)["clock_error_ns"] is kept) is is_kept


def test_a_recorded_host_has_no_word(tmp_path: Path) -> None:
    found = [one for one in watch(tmp_path, "lab4", {2, 3}).look().samples if one.source == "time"]
    assert [(one.quantity, one.freshness) for one in found] == [("clock_error_ns", Freshness.ABSENT)]
