"""`probe feed --replay`: a capture decides when each message is due, and how long it is."""

import json
import os
from pathlib import Path

import pytest

from tests.probe.conftest import Probe
from tunectl.compare.conditions import case_conditions as differences
from tunectl.errors import UsageError
from tunectl.experiments.capture import Capture, Message, Replay
from tunectl.experiments.feed import MOST_A_SECOND, FeedRequest, replayed
from tunectl.probe.budget import LONGEST_S
from tunectl.report.feed import feed_conditions
from tunectl.shapes import Feed, FeedCase, FeedReplay

from .pcaps import DATAGRAMS, SNAP, made_up, pcap, udp
from .test_feed_native import cell_of, count

NS = 1_700_000_000 * 10**9


def request_of(tmp_path: Path, times_ns: list[int], speed: float | None = None, rate: int | None = None) -> FeedRequest:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap([(NS + at_ns, udp(100)) for at_ns in times_ns]))
    return replayed(FeedRequest(), str(path), speed, rate)


def test_the_capture_decides_rate_and_duration(tmp_path: Path) -> None:
    every_ms = [number * 1_000_000 for number in range(11)]
    asked = request_of(tmp_path, every_ms)
    assert (asked.rate, asked.duration_s) == (1000, 0.01)
    asked = request_of(tmp_path, every_ms, speed=4)
    assert (asked.rate, asked.duration_s) == (4000, 0.0025)
    asked = request_of(tmp_path, every_ms, rate=500)
    assert (asked.rate, asked.duration_s) == (500, 0.02)
    assert asked.replay is not None
    assert asked.replay.lines.splitlines()[:2] == ["0 100", "2000000 100"]


def test_a_capture_without_a_duration_is_refused(tmp_path: Path) -> None:
    for times_ns in ([0], [0, 0]):
        with pytest.raises(UsageError, match="datagrams at one time"):
            request_of(tmp_path, times_ns)


@pytest.mark.slow
def test_rates_and_durations_are_bounded(tmp_path: Path) -> None:
    assert request_of(tmp_path, [0, 1000]).rate == MOST_A_SECOND
    with pytest.raises(UsageError, match="between 1 and 1,000,000 a second"):
        request_of(tmp_path, [0, 999])
    with pytest.raises(UsageError, match="between 1 and 1,000,000 a second"):
        request_of(tmp_path, [0, 3_000_000_000])
    capture = Capture([Message(0, 1), Message(LONGEST_S * 10**9, 1)], 0, 0)
    assert Replay("a", capture, 1.0).seconds == LONGEST_S
    most = [number * 1_000_000_000 for number in range(3)]
    with pytest.raises(UsageError, match="at most a day"):
        replayed_slowly(tmp_path, most)


def replayed_slowly(tmp_path: Path, times_ns: list[int]) -> FeedRequest:
    """So many datagrams a second that the mean rate is above one, for more than a day."""
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap([(NS + at_ns, udp(10)) for at_ns in times_ns for _ in range(60_000)], snap=48))
    return replayed(FeedRequest(), str(path), 2 / (LONGEST_S + 10), None)


@pytest.mark.pins
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="feed spins on two CPUs, and here is one")
def test_the_program_sends_what_came_when_it_came(probe: Probe, pair: str, tmp_path: Path) -> None:
    plan, path = tmp_path / "plan", tmp_path / "feed.pcap"
    path.write_bytes(pcap(made_up(), snap=SNAP))
    asked = replayed(FeedRequest(), str(path), None, None)
    assert asked.replay is not None
    plan.write_text(asked.replay.lines)
    for transport, form in (("tcp", "ws-json"), ("tcp", "binary"), ("tcp", "json"), ("udp", "json")):
        done = probe("feed", "--intrude", "--cpus", pair, "--plan", plan, "--transport", transport, "--format", form)
        assert (done.returncode, done.stderr) == (0, "")
        cell = cell_of(done.stdout)
        assert (cell["due"], cell["is_replayed"]) == (DATAGRAMS, True)
        assert count(cell["total"]) == cell["arrived"]
        duration_s = json.loads(done.stdout)["duration_s"]
        assert duration_s == pytest.approx(asked.duration_s, abs=0.01)
        # No record has less than 64 bytes, and every datagram of the capture has 90.
        assert (cell["grown"] == 0) == (form == "binary")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected 1 to 4000000 lines of NS BYTES"),
        ("1 2\nx\n", "line 2: expected NS BYTES"),
        ("5 1\n4 1\n", "line 2: expected NS BYTES, ascending"),
        ("0 9001\n", "line 1"),
        ("0 1 2\n", "line 1"),
    ],
)
def test_a_plan_that_is_none_is_one_line(probe: Probe, tmp_path: Path, text: str, said: str) -> None:
    plan = tmp_path / "plan"
    plan.write_text(text)
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("feed spins on two CPUs, and here is one")
    done = probe("feed", "--intrude", "--cpus", f"{cpus[0]},{cpus[-1]}", "--plan", plan)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr


def result(replay: FeedReplay | None) -> Feed:
    case = FeedCase("tcp", "ws-json", 1, 900, 1, "poll0", "off", 0, 500, [])
    return Feed([case], replay=replay)


def test_pages_and_compare_name_the_capture() -> None:
    replay = FeedReplay("day\x1b.pcap", 2.0, 500, 3, 7)
    (said, *_) = feed_conditions(result(replay))
    assert "replayed: 500 messages of day" in said
    assert "\x1b" not in said
    assert "2 times its speed" in said
    assert "3 packets left out" in said
    assert any("replayed capture" in text for text in differences(result(None), result(replay)))
    assert not any("replayed capture" in text for text in differences(result(replay), result(replay)))
