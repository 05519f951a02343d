"""`tunectl-probe feed`: what the native program counts, on this machine."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.experiments import native
from tests.probe.running import stop_for, until_named
from tests.probe.spy import ENDED, spying_on

pytestmark = [
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="feed spins on two CPUs, and here is one"),
    pytest.mark.pins,
]
STAGES = ("send", "wire", "kernel", "read", "batch", "frame", "parse", "book")
CASES = (
    ("tcp", "ws-json"),
    ("tcp", "json"),
    ("tcp", "binary"),
    ("udp", "json"),
    ("udp", "binary"),
    ("multicast", "json"),
    ("multicast-ab", "binary"),
)


def words(program: Path, pair: str, **options: object) -> list[str]:
    return native.words(program, "feed", "intrude", cpus=pair, **options)


def measured(program: Path, pair: str, **options: object) -> dict[str, Any]:
    (cell,) = native.document_of(words(program, pair, **options))["cells"]
    return dict(cell)


def cell_of(written: str) -> dict[str, Any]:
    (cell,) = json.loads(written)["cells"]
    found: dict[str, Any] = cell
    return found


def count(values: Sequence[int]) -> int:
    return sum(values[1::2])


def total(values: Sequence[int]) -> int:
    return sum(value * times for value, times in zip(values[::2], values[1::2], strict=True))


@pytest.mark.parametrize(
    ("transport", "got"), [("udp", 131_072), ("multicast", 131_072), ("multicast-ab", 131_072), ("tcp", 0)]
)
def test_what_the_kernel_gave_a_receiving_socket_is_said(program: Path, pair: str, transport: str, got: int) -> None:
    """Twice what was asked for (socket(7)); a stream's window is left to grow by itself."""
    cell = measured(program, pair, transport=transport, format="binary", duration=0.05, rate=1000, rcvbuf=65_536)
    assert cell["rcvbuf_bytes"] == got


@pytest.mark.skipif(os.geteuid() != 0, reason="beyond net.core.rmem_max only root gets it")
def test_as_root_the_buffer_is_what_a_handler_takes(program: Path, pair: str) -> None:
    cell = measured(program, pair, transport="udp", format="binary", duration=0.05, rate=1000)
    assert cell["rcvbuf_bytes"] == 2 * 8_388_608


@pytest.mark.parametrize(("transport", "form"), CASES)
def test_each_message_is_accounted_for_and_its_stages_add_up(
    program: Path, pair: str, transport: str, form: str
) -> None:
    cell = measured(program, pair, transport=transport, format=form, duration=0.1, rate=2000, symbols=4)
    assert (cell["due"], cell["failed"], cell["reason"], cell["strangers"]) == (200, "", "", 0)
    assert cell["sent"] + cell["unsent"] == 200
    assert count(cell["total"]) == cell["arrived"] <= cell["sent"]
    assert count(cell["unsent_ticks"]) == cell["unsent"]
    assert cell["sent"] - cell["arrived"] <= cell["sent"] * (transport != "tcp")
    assert cell["doubled"] <= cell["arrived"] * (transport == "multicast-ab")
    assert {name: count(cell["stages"][name]) for name in STAGES} == dict.fromkeys(STAGES, cell["arrived"])
    # A mean of values that share a bucket is rounded: by a tick a message at most.
    summed = sum(total(values) for values in cell["stages"].values())
    assert summed == pytest.approx(total(cell["total"]), abs=9 * cell["arrived"])
    rows = cell["profile"]
    assert sum(row[2] for row in rows) == cell["arrived"]
    assert sum(sum(row[3:]) for row in rows) == pytest.approx(total(cell["total"]), abs=cell["arrived"])
    assert sum(part[0] for part in cell["series"]["intervals"]) == cell["arrived"]
    batches = cell["batch_sizes"]
    assert cell["reads"] == count(batches)


def test_what_comes_by_both_lines_is_counted_as_double(program: Path, pair: str) -> None:
    """Slowly: a receiver that is kept waiting may have every message by the first line before it reads the second."""
    for seconds in (0.5, 2, 8):
        cell = measured(program, pair, transport="multicast-ab", format="binary", duration=seconds, rate=200)
        assert cell["doubled"] <= cell["arrived"] <= 200 * seconds
        if cell["doubled"]:
            break
    assert cell["doubled"] > 0


def test_stamps_are_there_unless_they_are_off(program: Path, pair: str) -> None:
    for _ in range(5):  # a machine that is stopped within a stamp, or whose clock is set, has such times now and then
        on = measured(program, pair, duration=0.05)
        assert on["stamped"]
        assert on["stamps"]["kind"] == "sw"
        assert count(on["stages"]["wire"]) == on["arrived"]
        if is_right := sum(on["negative"].values()) <= 0.001 * on["arrived"]:
            break
    assert is_right, on["negative"]
    off = measured(program, pair, duration=0.05, stamps="off")
    assert not off["stamped"]
    assert off["stamps"]["reason"] == "not asked for"
    assert off["stages"]["wire"] == []
    assert count(off["stages"]["kernel"]) == off["arrived"]


@pytest.mark.slow
def test_a_stop_is_in_every_message_that_was_due_in_it(program: Path, pair: str) -> None:
    """Coordinated omission: a message due inside a stop that ends at e has a latency of e - due at least."""
    lacking: list[float] = []
    for past_s in (0.6, 0.8, 1.2, 2, 4):  # a busy machine may still warm up, or be done, or itself be stopped
        lacking.append(missing_in_a_stop(program, pair, 100_000, past_s))
        if lacking[-1] <= 1:
            break
    assert lacking[-1] <= 1, lacking


def missing_in_a_stop(program: Path, pair: str, rate: int, past_s: float) -> float:
    """How many messages too few have the latency of a stop that comes so long after the threads are there."""
    duration = past_s + 0.9
    child = subprocess.Popen(words(program, pair, rate=rate, duration=duration), stdout=subprocess.PIPE, text=True)
    until_named(child.pid, "feed-sender", "feed-receiver")
    time.sleep(past_s)  # past the warm-up
    stop_s = stop_for(child, 0.06).least_ns / 1e9
    document = json.loads(child.communicate(timeout=60)[0])
    (cell,), hz = document["cells"], document["clock"]["hz"]
    values = [*cell["total"], *cell["unsent_ticks"]]
    assert cell["arrived"] + cell["unsent"] == cell["due"] == round(rate * duration)
    # Values that share a bucket are at most 1/128 below the longest of them.
    latencies_s = [(ticks / hz * (1 + 1 / 128), n) for ticks, n in zip(values[::2], values[1::2], strict=True)]
    missing = 0.0 if cell["sender_voluntary_switches"] >= 1 and stop_s > 0.02 else float(rate)
    for least_s in (stop_s * percent / 100 for percent in (2, 15, 35, 65, 90)):
        longer = sum(n for latency_s, n in latencies_s if latency_s >= least_s)
        missing = max(missing, rate * (stop_s - least_s - 2e-6) - longer)
    return missing


def test_what_was_not_sent_is_counted_with_how_long_it_waited_at_least(program: Path, pair: str) -> None:
    cell = measured(program, pair, transport="udp", format="binary", rate=1_000_000, duration=0.3)
    assert cell["sent"] + cell["unsent"] == cell["due"] == 300_000
    assert count(cell["unsent_ticks"]) == cell["unsent"]
    assert cell["unsent"] == 0 or cell["unsent_ticks"][0] > 0


def test_a_burst_is_due_at_once_and_is_read_together(program: Path, pair: str) -> None:
    for _ in range(5):  # who is away within a burst sends it in two parts
        cell = measured(program, pair, burst=8, rate=4000, duration=0.2)
        assert cell["due"] == 800
        assert cell["sender_voluntary_switches"] == 0
        if cell["reads"] <= 100 + 10 and cell["stamp_shared"] >= 700:
            break
    assert cell["reads"] <= 100 + 10
    assert cell["stamp_shared"] >= 700


@pytest.mark.slow
def test_the_receiver_allocates_nothing_but_what_it_is_asked_to(program: Path, pair: str, tmp_path: Path) -> None:
    env = spying_on("feed-", tmp_path)

    def ended(**options: object) -> int:
        argv = words(program, pair, duration=0.05, **options)
        return subprocess.run(argv, env=env, capture_output=True, timeout=60).returncode

    for transport, form in CASES:
        for waiting in ("poll", "poll0"):
            assert ended(transport=transport, format=form, waiting=waiting) == 0
    assert ENDED in (ended(alloc=1) for _ in range(5))  # where one comes at all
    for seconds in (0.05, 0.5, 5):
        cell = measured(program, pair, duration=seconds, rate=round(50 / seconds), alloc=3)
        assert cell["due"] == 50 == cell["arrived"] + cell["unsent"]  # on a busy machine the last ones are not sent
        if cell["arrived"]:
            break
    assert cell["allocations"] in range(3 * cell["arrived"], 3 * cell["arrived"] + 7)
    assert cell["arrived"]


def test_a_signal_ends_it_early_with_what_came(program: Path, pair: str) -> None:
    argv = words(program, pair, duration=12)
    document = native.ended_by(signal.SIGINT, argv, ("feed-sender", "feed-receiver"), after_s=0.6)
    (cell,) = document["cells"]
    assert document["duration_s"] < 12
    assert cell["due"] == cell["sent"] + cell["unsent"] < 120_000


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"waiting": "busy-poll"}, "the socket's NAPI id is 0"),
        ({"waiting": "busy-poll", "transport": "udp", "format": "json"}, "the socket's NAPI id is 0"),
    ],
)
def test_what_cannot_be_measured_here_says_why(program: Path, pair: str, options: dict[str, str], reason: str) -> None:
    cell = measured(program, pair, duration=0.05, **options)
    assert reason in cell["reason"]
    assert "total" not in cell


def test_ktls_is_measured_without_stamps_or_says_why_not(program: Path, pair: str) -> None:
    cell = measured(program, pair, duration=0.05, tls="ktls")
    if cell["reason"]:
        assert cell["reason"].startswith("cannot use the kernel's TLS (module tls: is it there, and loaded? ")
        pytest.skip(cell["reason"])
    assert cell["arrived"] + cell["unsent"] == cell["due"]
    assert not cell["stamped"]
    assert cell["stamps"]["reason"] == "the kernel's TLS gives none"


def connected(kind: socket.SocketKind) -> tuple[socket.socket, socket.socket]:
    """Two sockets of 127.0.0.1, each the other's peer."""
    if kind == socket.SOCK_DGRAM:
        one, other = (socket.socket(socket.AF_INET, kind) for _ in range(2))
        for each in (one, other):
            each.bind(("127.0.0.1", 0))
        one.connect(other.getsockname())
        other.connect(one.getsockname())
        return one, other
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = socket.create_connection(listener.getsockname())
        return one, listener.accept()[0]


@pytest.mark.parametrize(("transport", "form"), [("tcp", "ws-json"), ("tcp", "binary"), ("udp", "json")])
def test_a_round_trip_comes_back_whole(program: Path, pair: str, transport: str, form: str) -> None:
    """The other end, here on the same host, sends back what it gets; no ping goes out, for the pong would come back."""
    one, other = connected(socket.SOCK_STREAM if transport == "tcp" else socket.SOCK_DGRAM)
    sender = pair.partition(",")[0]
    case = {"transport": transport, "format": form}
    argv = [*words(program, f"{sender},{sender}", **case), "--reflect", "--socket", str(other.fileno())]
    with one, subprocess.Popen(argv, pass_fds=[other.fileno()], stdout=subprocess.PIPE, text=True) as reflector:
        other.close()
        assert reflector.stdout
        assert json.loads(reflector.stdout.readline())["hz"] > 0
        argv = words(program, pair, socket=one.fileno(), duration=0.1, rate=1000, **case)
        done = subprocess.run(argv, pass_fds=[one.fileno()], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        cell = cell_of(done.stdout)
        assert (cell["due"], cell["strangers"], cell["failed"]) == (100, 0, "")
        assert cell["arrived"] == cell["sent"] or transport == "udp"
        if transport == "tcp":
            assert reflector.wait(20) == 0  # the stream ended
        reflector.terminate()


def test_a_card_without_a_clock_gives_no_stamps(program: Path, pair: str) -> None:
    cell = measured(program, pair, duration=0.05, phc="/dev/ptp4096")
    assert not cell["stamped"]
    assert (cell["stamps"]["asked"], cell["stamps"]["kind"]) == ("hw", "off")
    assert cell["stamps"]["reason"] == "not comparable: the network card's clock cannot be read"
