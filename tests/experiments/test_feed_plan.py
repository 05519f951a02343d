"""Which cases `feed` takes, in what words the native program is asked, and what is refused: on values alone."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tunectl.errors import UsageError
from tunectl.experiments.feed import FORMATS, TLS, TRANSPORTS, WAITS, FeedRequest, Planned, plan
from tunectl.experiments.pair import Placed

TWO = Placed(2, 3)


def cases(placed: Placed = TWO, **asked: Any) -> list[Planned]:
    return plan(FeedRequest(**asked), placed)


def test_the_default_is_one_case() -> None:
    (one,) = cases()
    assert one == Planned("tcp", "ws-json", 1, 10_000, 1, "poll0", "off", 0)
    assert one.words() == [
        *("--transport", "tcp", "--format", "ws-json", "--symbols", "1", "--rate", "10000", "--burst", "1"),
        *("--waiting", "poll0", "--tls", "off", "--alloc", "0"),
    ]
    assert one.title == "tcp ws-json, 1 symbol, poll0"


def test_every_combination_of_the_lists_is_a_case() -> None:
    found = cases(
        transport=",".join(TRANSPORTS), format=",".join(FORMATS), symbols="4,1", waiting="poll0,poll", alloc="0,2"
    )
    names = [(one.transport, one.format, one.symbols, one.waiting, one.alloc) for one in found]
    assert names == list(itertools.product(TRANSPORTS, FORMATS, (4, 1), ("poll", "poll0"), (0, 2)))
    assert found[-1].title == "multicast-ab binary, 1 symbol, poll0, 2 allocations"
    assert len(cases(symbols="1,1,4")) == 2


def test_what_cannot_be_measured_says_why() -> None:
    found = cases(transport=",".join(TRANSPORTS), format=",".join(FORMATS), tls=",".join(TLS))
    reasons: dict[str, set[tuple[str, str, str]]] = {}
    for one in found:
        reasons.setdefault(one.reason.partition(":")[0], set()).add((one.transport, one.format, one.tls))
    datagrams = TRANSPORTS[1:]
    assert reasons.pop("WebSocket frames are a stream of bytes") == set(itertools.product(datagrams, ["ws-json"], TLS))
    assert reasons.pop("the kernel encrypts a stream of bytes") == set(
        itertools.product(datagrams, ["json", "binary"], ["ktls"])
    )
    assert set(reasons) == {""}
    assert "and not over multicast-ab" in found[-1].reason


def test_a_receive_that_blocks_cannot_wait_for_two_lines() -> None:
    found = cases(transport="multicast,multicast-ab", format="binary", waiting=",".join(WAITS))
    assert [(one.transport, one.waiting) for one in found if one.reason] == [("multicast-ab", "busy-poll")]
    assert "cannot wait for two lines" in found[-1].reason


def test_the_sender_needs_a_cpu_of_its_own() -> None:
    with pytest.raises(UsageError, match="--cpus 3,3: the sender spins, so the receiver needs another CPU than 3"):
        cases(Placed(3, 3), cpus="3,3")


def test_an_option_that_nobody_gave_is_not_named_as_wrong() -> None:
    with pytest.raises(UsageError, match="only CPU 3 can be chosen here"):
        cases(Placed(3, 3))


def test_an_unmeasured_case_says_what_was_asked() -> None:
    (one,) = cases(transport="udp")
    asked = {"transport": "udp", "format": "ws-json", "symbols": 1, "rate": 10_000, "burst": 1}
    assert one.cell == {**asked, "waiting": "poll0", "tls": "off", "alloc": 0, "reason": one.reason}


def test_the_words_that_all_cases_share() -> None:
    asked = FeedRequest(duration_s=0.25, fifo=7, busy_poll_us=20, intrude=True)
    assert list(asked.words()) == ["--duration", "0.250000", "--fifo", "7", "--busy-poll-us", "20", "--intrude"]
    assert list(FeedRequest().words()) == ["--duration", "10.000000"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"transport": "tpc"}, r"--transport tpc: there is no 'tpc' \(of tcp, udp, multicast, multicast-ab\)"),
        ({"transport": ""}, "there is no ''"),
        ({"format": "xml"}, "--message-format xml: there is no 'xml'"),
        ({"waiting": "epoll"}, "there is no 'epoll'"),
        ({"tls": "on"}, "there is no 'on'"),
        ({"symbols": "0"}, "--symbols 0: expected whole numbers from 1 to 64, like 1,4"),
        ({"symbols": "65"}, "--symbols 65: expected"),
        ({"symbols": "1,x"}, "--symbols 1,x: expected"),
        ({"symbols": ""}, "--symbols : expected"),
        ({"symbols": "\u0661"}, "expected whole numbers"),
        ({"alloc": "-1"}, "--alloc -1: expected whole numbers from 0 to 64, like 0,4"),
        ({"alloc": "99999999999999999999"}, "--alloc 9"),
        ({"alloc": ",".join(map(str, range(17)))}, "at most 16 of them"),
        ({"stamps": "hw"}, r"--stamps hw: only with --connect \(on one host no network card is on the way\)"),
        (
            {"transport": "tcp,multicast", "connect": "10.0.0.2:7000"},
            "--transport: only tcp and udp lead to the host of --connect",
        ),
        ({"duration_s": 0.0}, "--duration 0: seconds, above 0 and at most a day"),
        ({"duration_s": float("nan")}, "--duration nan"),
        ({"duration_s": float("inf")}, "--duration inf"),
        ({"duration_s": 86_401.0}, "--duration 86401"),
        ({"rate": 400_001}, r"--rate 400001 for --duration 10: that is 4,000,010 messages \(at most 4,000,000"),
        ({"rate": 1, "duration_s": 0.9}, "that is 0 messages"),
        ({"rate": 99, "burst": 100, "duration_s": 1.0}, r"that is 99 messages \(--burst 100 needs at least so many"),
    ],
)
def test_what_there_is_not_is_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        cases(**asked)


def test_the_limits_themselves_are_taken() -> None:
    assert cases(rate=400_000, symbols="1,64", alloc="0,64")
    assert cases(rate=100, burst=100, duration_s=1.0)
    assert cases(alloc=",".join(map(str, range(16))))
    assert len(cases(transport="tcp,udp", connect="10.0.0.2:7000", stamps="hw")) == 2
