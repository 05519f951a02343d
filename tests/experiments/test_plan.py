"""Which cases each experiment takes, in what words the native program is asked, what is refused: on values alone."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from tunectl.errors import UsageError
from tunectl.experiments import contention, contention_cells, feed, feed_cells, hedge, hedge_cells, wake, wake_cells
from tunectl.experiments.contention import BUFFERS, HAND_OVERS, ContentionRequest
from tunectl.experiments.ends import Placed
from tunectl.experiments.feed import FORMATS, TLS, TRANSPORTS, WAITS, FeedRequest
from tunectl.experiments.hedge import MOST_REQUESTS, HedgeRequest
from tunectl.experiments.hedge_cells import natural_share
from tunectl.experiments.link import TYPES
from tunectl.experiments.wake import MESSAGES, WAYS, WakeRequest
from tunectl.experiments.wake_cells import TIMERS

TWO, ONE = Placed((2, 3)), Placed((3, 3))


def wake_cases(placed: Placed = TWO, **asked: Any) -> list[wake_cells.RawCase]:
    return wake.plan(WakeRequest(**asked), placed)


def feed_cases(placed: Placed = TWO, **asked: Any) -> list[feed_cells.RawCase]:
    return feed.plan(FeedRequest(**asked), placed)


def hedge_cases(**asked: Any) -> list[hedge_cells.RawCase]:
    return hedge.plan(HedgeRequest(**asked))


# ---- which cases


def test_the_default_of_wake_is_every_message_mechanism_by_every_way() -> None:
    names = [(case.mechanism, case.way, case.idle_ms) for case in wake_cases()]
    assert names == list(product(MESSAGES, WAYS, (0, 1, 10, 100)))


def test_groups_and_names_are_in_the_order_of_the_table() -> None:
    asked: dict[str, Any] = {"mechanisms": "udp,channel", "waiting": "minimal,sleeping", "idle_ms": "0.5,7"}
    words = [case.words()[1] for case in wake_cases(**asked)]
    assert words[:3] == ["channel:block:0.5", "channel:block:7.0", "channel:poll:0.5"]
    assert {case.way for case in wake_cases(**asked)} == {"block", "poll", "epoll", "minimal"}
    assert {case.mechanism for case in wake_cases(mechanisms="timers")} == set(TIMERS)
    assert {case.mechanism for case in wake_cases(connect="h:1")} == set(TYPES)


def test_the_default_of_feed_is_one_case() -> None:
    (one,) = feed_cases()
    assert one == feed_cells.RawCase.of("tcp", "ws-json", 1, 10_000, 1, "poll0", "off", 0)
    assert one.words() == [
        *("--transport", "tcp", "--format", "ws-json", "--symbols", "1", "--rate", "10000", "--burst", "1"),
        *("--waiting", "poll0", "--tls", "off", "--alloc", "0"),
    ]
    assert one.title == "tcp ws-json, 1 symbol, poll0"


def test_every_combination_of_the_lists_is_a_case() -> None:
    found = feed_cases(
        transport=",".join(TRANSPORTS), format=",".join(FORMATS), symbols="4,1", waiting="poll0,poll", alloc="0,2"
    )
    names = [(one.transport, one.format, one.symbols, one.waiting, one.alloc) for one in found]
    assert names == list(product(TRANSPORTS, FORMATS, (4, 1), ("poll", "poll0"), (0, 2)))
    assert found[-1].title == "multicast-ab binary, 1 symbol, poll0, 2 allocations"
    assert len(feed_cases(symbols="1,1,4")) == 2


def test_each_load_is_measured_without_second_copies_first() -> None:
    found = hedge_cases(load="0.1,0.5", delay="0,p95,7000")
    assert [(one.load, one.delay) for one in found] == list(product((0.1, 0.5), ("none", "0", "p95", "7000")))
    assert {(one.stall, one.service_ns, one.cancel, one.budget, one.shed_at) for one in found} == {
        ("none", 3000, True, 1.0, 0)
    }
    assert [one.delay for one in hedge_cases(load="0.1", delay="none")] == ["none"]
    assert [one.delay for one in hedge_cases(load="0.1", delay="p95,none,p95")] == ["none", "p95"]
    assert len(hedge_cases()) == 5 * 3


def test_each_stall_has_a_baseline_of_its_own() -> None:
    found = hedge_cases(load="0.1", delay="p95", stall="common,a")
    assert [(one.stall, one.delay) for one in found] == list(product(("a", "common"), ("none", "p95")))


def test_the_words_of_a_case() -> None:
    (_, one) = hedge_cases(
        load="0.85", delay="p95", budget=0.1, shed=4, cancel=False, seed=7, stall="both", service_ns=5000
    )
    assert one.words() == [
        *("--load", "0.85", "--delay", "p95", "--stall", "both", "--service-ns", "5000", "--seed", "7"),
        *("--budget", "0.1", "--shed", "4", "--no-cancel"),
    ]
    assert one.title == "load 0.85, second copy at P95, stall both"
    asked = {"load": 0.85, "delay": "p95", "stall": "both", "service_ns": 5000, "cancel": False, "budget": 0.1}
    assert one.cell == asked | {"shed_at": 4, "seed": 7, "reason": ""}


def contention_cases(placed: Placed = TWO, **asked: Any) -> list[contention_cells.RawCase]:
    return contention.plan(ContentionRequest(**asked), placed)


def test_every_kind_of_buffers_is_handed_over_in_every_way() -> None:
    found = contention_cases(buffer_bytes=4096)
    assert [(case.buffers, case.hand_over) for case in found] == list(product(BUFFERS, HAND_OVERS))
    assert found[-1].words() == [
        *("--buffers", "pool", "--hand-over", "ring"),
        *("--threads", "2", "--bytes", "4096", "--rate", "20000"),
    ]
    assert (found[0].title, found[0].cell["bytes"]) == ("malloc, mutex", 4096)


def test_an_unmeasured_case_says_what_was_asked() -> None:
    (one,) = feed_cases(transport="udp")
    asked = {"transport": "udp", "format": "ws-json", "symbols": 1, "rate": 10_000, "burst": 1}
    assert one.cell == {**asked, "waiting": "poll0", "tls": "off", "alloc": 0, "reason": one.reason}


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (FeedRequest(), ["--duration", "10.000000"]),
        (
            FeedRequest(duration_s=0.25, fifo=7, busy_poll_us=20, intrude=True),
            ["--duration", "0.250000", "--fifo", "7", "--busy-poll-us", "20", "--intrude"],
        ),
        (HedgeRequest(duration_s=0.25, fifo=7, intrude=True), ["--duration", "0.250000", "--fifo", "7", "--intrude"]),
        (
            ContentionRequest(duration_s=0.25, fifo=7),
            ["--duration", "0.250000", "--fifo", "7"],
        ),
        (HedgeRequest(simulate=True), ["--duration", "10.000000", "--simulate"]),
    ],
)
def test_the_words_that_all_cases_share(
    request_: FeedRequest | HedgeRequest | ContentionRequest, words: list[str]
) -> None:
    assert list(request_.words()) == words


# ---- what cannot be measured


def by_reason(**asked: Any) -> dict[str, set[str]]:
    """By the reason, "" for what is measured: mechanism and way."""
    found: dict[str, set[str]] = {}
    for case in wake_cases(**asked):
        found.setdefault(case.reason, set()).add(f"{case.mechanism} {case.way}")
    return found


def test_what_wake_cannot_measure_says_why() -> None:
    found = by_reason(mechanisms="messages,eventloop,timers", idle_ms="1")
    assert found["there is no descriptor to poll"] == {f"channel {way}" for way in ("poll", "epoll", "poll0", "epoll0")}
    assert found["an event loop waits by epoll or epoll0"] == {
        f"eventloop {way}" for way in ("block", "poll", "poll0", "nonblock", "minimal")
    }
    assert found["it is a call that sleeps, and nothing else"] == {
        f"clock_nanosleep {way}" for way in WAYS if way not in ("block", "busy-poll")
    }
    unfed = found["no network device feeds it: there is nothing the kernel could poll"]
    assert {name.split()[1] for name in unfed} == {"busy-poll"}
    assert not {"tcp busy-poll", "udp busy-poll"} & unfed
    assert found[""] >= {
        *("timerfd minimal", "timerfd epoll", "clock_nanosleep block", "eventloop epoll0", "tcp busy-poll")
    }


def test_a_timer_needs_a_period() -> None:
    asked = {"mechanisms": "timers", "waiting": "block"}
    assert set(by_reason(**asked, idle_ms="0")) == {"a timer without a period does not expire"}
    assert set(by_reason(**asked, idle_ms="0.1")) == {""}


def test_a_fifo_spinner_on_its_senders_cpu_is_left_out_and_a_timer_has_no_sender() -> None:
    asked: dict[str, Any] = {"mechanisms": "pipe,timerfd", "waiting": "block,minimal", "idle_ms": "1", "fifo": 1}
    (left_out,) = (case for case in wake_cases(ONE, **asked) if case.reason)
    assert (left_out.mechanism, left_out.way) == ("pipe", "minimal")
    assert "SCHED_FIFO spinner on CPU 3 would starve the sender" in left_out.reason
    assert not [case for case in wake_cases(**asked) if case.reason]


def test_what_feed_cannot_measure_says_why() -> None:
    found = feed_cases(transport=",".join(TRANSPORTS), format=",".join(FORMATS), tls=",".join(TLS))
    reasons: dict[str, set[tuple[str, str, str]]] = {}
    for one in found:
        reasons.setdefault(one.reason.partition(":")[0], set()).add((one.transport, one.format, one.tls))
    datagrams = TRANSPORTS[1:]
    assert reasons.pop("WebSocket frames are a stream of bytes") == set(product(datagrams, ["ws-json"], TLS))
    encrypted = set(product(datagrams, ["json", "binary"], ["ktls"]))
    assert reasons.pop("the kernel encrypts a stream of bytes") == encrypted
    assert set(reasons) == {""}
    assert "and not over multicast-ab" in found[-1].reason


def test_a_receive_that_blocks_cannot_wait_for_two_lines() -> None:
    found = feed_cases(transport="multicast,multicast-ab", format="binary", waiting=",".join(WAITS))
    assert [(one.transport, one.waiting) for one in found if one.reason] == [("multicast-ab", "busy-poll")]
    assert "cannot wait for two lines" in found[-1].reason


# ---- what is refused


# More of it, each with all of its words: tests/golden/expected/refused-command-lines.txt.
@pytest.mark.parametrize(
    ("cases", "asked", "said"),
    [
        (wake_cases, {"mechanisms": ""}, "there is no ''"),
        (wake_cases, {"mechanisms": "tcp,pipe", "connect": "h:1"}, "only tcp and udp lead to the host of --connect"),
        (wake_cases, {"waiting": "sleeping,snoring"}, "there is no 'snoring'"),
        (wake_cases, {"idle_ms": "1,x"}, "--idle-ms 1,x: expected milliseconds from 0 to 60000"),
        (wake_cases, {"idle_ms": "nan"}, "--idle-ms nan"),
        (wake_cases, {"idle_ms": "-1"}, "--idle-ms -1"),
        (wake_cases, {"idle_ms": "60001"}, "--idle-ms 60001"),
        (wake_cases, {"idle_ms": ""}, "--idle-ms :"),
        (wake_cases, {"idle_ms": ",".join("1" * 17)}, "at most 16 of them"),
        (feed_cases, {"transport": ""}, "there is no ''"),
        (feed_cases, {"waiting": "epoll"}, "there is no 'epoll'"),
        (feed_cases, {"tls": "on"}, "there is no 'on'"),
        (feed_cases, {"symbols": "0"}, "--symbols 0: expected whole numbers from 1 to 64, like 1,4"),
        (feed_cases, {"symbols": "65"}, "--symbols 65: expected"),
        (feed_cases, {"symbols": "1,x"}, "--symbols 1,x: expected"),
        (feed_cases, {"symbols": ""}, "--symbols : expected"),
        (feed_cases, {"symbols": "\u0661"}, "expected whole numbers"),
        (feed_cases, {"alloc": "-1"}, "--alloc -1: expected whole numbers from 0 to 64, like 0,4"),
        (feed_cases, {"alloc": "99999999999999999999"}, "--alloc 9"),
        (feed_cases, {"alloc": ",".join(map(str, range(17)))}, "at most 16 of them"),
        (feed_cases, {"duration_s": math.nan}, "--duration nan"),
        (feed_cases, {"duration_s": math.inf}, "--duration inf"),
        (feed_cases, {"duration_s": 86_401.0}, "--duration 86401"),
        (feed_cases, {"rate": 400_001}, "--rate 400001 for --duration 10: that is 4,000,010 messages (at most 4,0"),
        (feed_cases, {"rate": 1, "duration_s": 0.9}, "that is 0 messages"),
        (feed_cases, {"rate": 99, "burst": 100, "duration_s": 1.0}, "that is 99 messages (--burst 100 needs at"),
        (feed_cases, {"placed": ONE, "cpus": "3,3"}, "--cpus 3,3: the sender spins, so the receiver needs"),
        (feed_cases, {"placed": ONE}, "the sender spins, so two CPUs are needed: only CPU 3 can be chosen here"),
        (contention_cases, {"hand_over": "ring,pipe"}, "--hand-over ring,pipe: there is no 'pipe'"),
        (contention_cases, {"duration_s": 0}, "--duration 0: seconds, above 0"),
        (contention_cases, {"rate": 1_000_000}, "that is 5,000,000 buffers"),
        (contention_cases, {"placed": ONE, "cpus": "3,3"}, "the receiver needs another CPU than 3"),
        (contention_cases, {"placed": ONE}, "two CPUs are needed: only CPU 3 can be chosen here"),
        (hedge_cases, {"load": "0"}, "--load 0: expected numbers from 0.001 to 2"),
        (hedge_cases, {"load": "2.1"}, "--load 2.1: expected numbers"),
        (hedge_cases, {"load": "nan"}, "--load nan: expected numbers"),
        (hedge_cases, {"load": "0.1,"}, "--load 0.1,: expected numbers"),
        (hedge_cases, {"load": ",".join(f"0.{n}" for n in range(10, 27))}, "at most 16 of them"),
        (hedge_cases, {"delay": "p49"}, "--delay p49: expected none, p50 to p99.9, or ns up to 1000000000"),
        *(
            (hedge_cases, {"delay": word}, f"--delay {word}: expected")
            for word in ("p99.95", "p9", "-1", "07", "1000000001", "٣", "")
        ),
        (hedge_cases, {"duration_s": math.nan}, "--duration nan: seconds"),
        (hedge_cases, {"duration_s": 86_401}, "at most a day"),
        (hedge_cases, {"duration_s": 86_400}, "that is 5,760,000,000 requests"),
        (hedge_cases, {"budget": 1.01}, "--budget 1.01: second copies for each request, from 0 to 1"),
        (hedge_cases, {"budget": -0.1}, "--budget -0.1: second copies"),
        (hedge_cases, {"budget": math.nan}, "--budget nan: second copies"),
        (hedge_cases, {"simulate": True, "fifo": 1}, "--simulate: --cpus"),
        (hedge_cases, {"load": "0.001", "duration_s": 1e-9}, "that is 0 requests"),
    ],
)
def test_what_there_is_not_is_refused(cases: Callable[..., Any], asked: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        cases(**asked)
    assert said in str(caught.value)


def test_the_limits_themselves_are_taken() -> None:
    assert feed_cases(rate=400_000, symbols="1,64", alloc="0,64")
    assert feed_cases(rate=100, burst=100, duration_s=1.0)
    assert feed_cases(alloc=",".join(map(str, range(16))))
    assert len(feed_cases(transport="tcp,udp", connect="10.0.0.2:7000", stamps="hw")) == 2
    most_s = MOST_REQUESTS * 3000 / 2 / 0.5 / 1e9
    assert hedge_cases(load="0.5", duration_s=most_s)
    with pytest.raises(UsageError, match="that is 5,990,001 requests"):
        hedge_cases(load="0.5", duration_s=most_s + 3e-6)


@pytest.mark.parametrize(("delay", "share"), [("p95", 0.05), ("p50", 0.5), ("p99.9", 0.001)])
def test_the_natural_share_of_late_requests(delay: str, share: float) -> None:
    assert natural_share(delay) == pytest.approx(share)


@pytest.mark.parametrize("delay", ["none", "0", "95", "p49.99", "p100"])
def test_a_delay_that_follows_nothing_has_no_natural_share(delay: str) -> None:
    assert math.isnan(natural_share(delay))
