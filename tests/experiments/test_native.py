"""What `tunectl-probe` refuses of an experiment, in one line; and what it needs no privilege for."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.probe.conftest import Probe
from tunectl.experiments.contention import BUFFERS, HAND_OVERS
from tunectl.experiments.contention_cells import CONTENTION
from tunectl.experiments.hedge_cells import HEDGE

from .native import document_of, words
from .test_feed_native import CASES
from .test_wake import MECHANISMS

_PAIR = "expected the sender's CPU and the receiver's, like 2,3"
_DELAY = "expected none, p50 to p99.9, or ns up to 1000000000"
_NO_DELAYS = ("", "p", "p49", "p99.95", "p95x", "-1", "1e3", "1000000001", "nan", "pnan", "None", "p 95", "p0x60",
              "p+95")  # fmt: skip
_SIMULATED = "--simulate --duration 0.01"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("wake --bogus", "--bogus is no option here"),
        ("wake --cpus", "--cpus needs a value"),
        *((f"wake --cpus {cpus}", _PAIR) for cpus in ("1", "0-1", "0,1,2", "0,99999999999999999999")),
        ("wake --cpus 0,60000", "CPU 60000 is not online"),
        ("wake --case tpc:block:1", "--case tpc:block:1: there is no such case"),
        ("wake --case channel:poll:1", "there is no such case"),
        ("wake --case timerfd:block:0", "there is no such case"),
        ("wake --case tcp:block:inf", "like tcp:block:10"),
        ("wake --messages 0", "--messages 0"),
        ("wake --messages 99999999999", "--messages 99999999999"),
        ("wake --bytes 31", "--bytes 31: expected a whole number from 32 to 4096"),
        ("wake --fds 0", "--fds 0"),
        ("wake --dirty-kib 0", "--dirty-kib 0"),
        ("wake --busy-poll-us x", "--busy-poll-us x"),
        ("wake --fifo 0", "--fifo 0"),
        ("wake --socket 3", "--socket is for a case of tcp or udp"),
        ("wake --socket 3 --case pipe:block:0 --reflect", "--socket is for a case of tcp or udp"),
        ("wake more", "more is one argument too many"),
        ("feed --transport sctp", "--transport sctp: expected one of tcp, udp, multicast, multicast-ab"),
        ("feed --format xml", "--format xml: expected one of ws-json, json, binary"),
        ("feed --waiting block", "--waiting block: expected one of poll0, poll, busy-poll"),
        ("feed --tls on", "--tls on: expected one of off, ktls"),
        ("feed --stamps hw", "--stamps hw: expected one of sw, off"),
        ("feed --transport udp", "--transport udp: ws-json and ktls are of tcp alone"),
        ("feed --transport udp --format json --tls ktls", "ws-json and ktls are of tcp alone"),
        ("feed --transport multicast-ab --format json --waiting busy-poll", "cannot wait for two lines"),
        ("feed --rate 1000000 --duration 5", "at most 4000000 messages"),
        ("feed --rate 0", "--rate 0: expected a whole number from 1 to 1000000"),
        ("feed --burst 257", "--burst 257: expected a whole number from 1 to 256"),
        ("feed --symbols 65", "--symbols 65: expected a whole number from 1 to 64"),
        ("feed --alloc 65", "--alloc 65: expected a whole number from 0 to 64"),
        ("feed --intrude --cpus 0,0", "--cpus: the sender spins, so the receiver needs another CPU than 0"),
        *((f"hedge {_SIMULATED} --delay|{word}", f"--delay {word}: {_DELAY}") for word in _NO_DELAYS),
        (f"hedge {_SIMULATED} --stall b", "--stall b: expected one of none, a, both, common"),
        (f"hedge {_SIMULATED} --load 0", "--load 0: expected a number, from 0.001 to 2"),
        (f"hedge {_SIMULATED} --load nan", "--load nan: expected a number, from 0.001 to 2"),
        (f"hedge {_SIMULATED} --budget 1.1", "--budget 1.1: expected a number, from 0 to 1"),
        (f"hedge {_SIMULATED} --service-ns 499", "--service-ns 499: expected a whole number from 500 to 100000000"),
        (f"hedge {_SIMULATED} --cpus 0,1,2", "--cpus: a simulation has none"),
        ("hedge --simulate --load 1 --duration 9", "that is 6000000 requests of 3000 ns, expected 1 to 5990000"),
        ("hedge --cpus 0,1", "--cpus 0,1: expected the client's CPU and those of both servers, like 2,3,4"),
        ("hedge --cpus 0,1,2,3", "expected the client's CPU and those of both servers"),
        ("hedge --cpus 0,0,0", "--cpus: all three threads spin, so each needs a CPU of its own"),
        ("hedge --cpus 0,0,0 --shared --fifo 1", "each needs a CPU of its own"),
        ("hedge --cpus 0,0,99999", "CPU 99999 is not online on this host"),
        ("contention --buffers arena", "--buffers arena: expected one of malloc, pool"),
        ("contention --hand-over pipe", "--hand-over pipe: expected one of mutex, futex, ring"),
        ("contention --threads 1", "--threads 1: expected a whole number from 2 to 64"),
        ("contention --bytes 63", "--bytes 63: expected a whole number from 64 to 1048576"),
        ("contention --rate 1000000", "--rate and --duration: at most 3999000 buffers"),
        ("contention --intrude --cpus 0,0", "--cpus: the sender spins, so the receiver needs another CPU than 0"),
    ],
)
def test_a_wrong_request_is_one_line(probe: Probe, asked: str, said: str) -> None:
    """What is behind a bar is one argument, as it stands."""
    split, _, whole = asked.partition("|")
    done = probe(*split.split(" "), *[whole] * ("|" in asked))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("tunectl-probe: ")
    assert said in done.stderr


@pytest.fixture
def unprivileged(program: Path) -> Iterator[list[str]]:
    """The program, started as a user who may do nothing."""
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root without setpriv")
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"] * (os.geteuid() == 0)
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)  # pytest's own temporary directory is closed to others
        yield [*drop, shutil.copy(program, place)]


@pytest.mark.slow
@pytest.mark.pins
def test_wake_needs_no_privilege(unprivileged: list[str], pair: str) -> None:
    *drop, copy = unprivileged
    for mechanism in MECHANISMS:
        argv = [*drop, *words(copy, "wake", cpus=pair, case=f"{mechanism}:block:0", messages=5)]
        assert document_of(argv)["cells"][0]["sent"] == 5


@pytest.mark.slow
@pytest.mark.pins
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="feed spins on two CPUs, and here is one")
def test_feed_needs_no_privilege(unprivileged: list[str], pair: str) -> None:
    *drop, copy = unprivileged
    for transport, form in CASES:
        argv = words(copy, "feed", "intrude", cpus=pair, transport=transport, format=form, duration=0.05)
        (cell,) = document_of([*drop, *argv])["cells"]
        # In so short a time a busy machine may let no message come; what was not allowed would be said.
        assert (cell["failed"], cell["errno"]) == ("", 0), cell
        assert cell["due"] == 500


@pytest.mark.slow
@pytest.mark.pins
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="contention spins on two CPUs, and here is one")
@pytest.mark.parametrize(("buffers", "hand_over"), [*product(BUFFERS, HAND_OVERS)])
def test_contention_needs_no_privilege_and_loses_no_buffer(
    unprivileged: list[str], pair: str, buffers: str, hand_over: str
) -> None:
    *drop, copy = unprivileged
    argv = words(copy, "contention", "intrude", cpus=pair, buffers=buffers, hand_over=hand_over, duration=0.1)
    (case,) = CONTENTION.read(document_of([*drop, *argv])).cases
    assert (case.sent, case.allocations) == (2000, 2000 * (buffers == "malloc"))
    assert min(case.taking[0], case.giving[0]) > 0


@pytest.mark.slow
@pytest.mark.pins
@pytest.mark.skipif(len(os.sched_getaffinity(0)) != 2, reason="only of two CPUs is none left for a third thread")
def test_where_no_cpu_is_left_more_threads_than_two_are_not_measured(probe: Probe, pair: str) -> None:
    (case,) = json.loads(probe("contention", "--intrude", "--cpus", pair, "--threads", 3).stdout)["cells"]
    assert case["reason"]


def test_a_simulation_of_hedge_needs_no_privilege_and_no_cpu(unprivileged: list[str]) -> None:
    document = document_of([*unprivileged, "hedge", *_SIMULATED.split()])
    assert (document["simulated"], document["cpus"], document["facts"]) == (True, [], None)
    assert document["clock"] == {"source": "simulated", "hz": 1e9}
    (case,) = HEDGE.read(document).cases
    assert case.answered == case.offered == 667
