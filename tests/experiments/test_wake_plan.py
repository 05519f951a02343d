"""Which cases and which CPUs `wake` takes: on values alone."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tunectl.errors import UsageError
from tunectl.experiments.pair import Placed, place
from tunectl.experiments.wake import BETWEEN_HOSTS, MESSAGES, WAYS, Planned, WakeRequest, plan
from tunectl.experiments.wake_cells import TIMERS
from tunectl.host.cpusets import CpuFacts

NONE: frozenset[int] = frozenset()


def cases(sender: int = 2, receiver: int = 3, **asked: Any) -> list[Planned]:
    return plan(WakeRequest(**asked), Placed(sender, receiver))


def reasons(**asked: Any) -> dict[str, set[str]]:
    """By the reason, "" for what is measured: mechanism and way."""
    found: dict[str, set[str]] = {}
    for case in cases(**asked):
        found.setdefault(case.reason, set()).add(f"{case.mechanism} {case.way}")
    return found


def test_the_default_is_every_message_mechanism_by_every_way() -> None:
    names = [(case.mechanism, case.way, case.idle_ms) for case in cases()]
    assert names == list(itertools.product(MESSAGES, WAYS, (0, 1, 10, 100)))


def test_groups_and_names_are_in_the_order_of_the_table() -> None:
    asked: dict[str, Any] = {"mechanisms": "udp,channel", "waiting": "minimal,sleeping", "idle_ms": "0.5,7"}
    assert [case.text for case in cases(**asked)][:3] == ["channel:block:0.5", "channel:block:7.0", "channel:poll:0.5"]
    assert {case.way for case in cases(**asked)} == {"block", "poll", "epoll", "minimal"}
    assert {case.mechanism for case in cases(mechanisms="timers")} == set(TIMERS)
    assert {case.mechanism for case in cases(connect="h:1")} == set(BETWEEN_HOSTS)


def test_what_cannot_be_measured_says_why() -> None:
    found = reasons(mechanisms="messages,eventloop,timers", idle_ms="1")
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
        "timerfd minimal",
        "timerfd epoll",
        "clock_nanosleep block",
        "eventloop epoll0",
        "tcp busy-poll",
    }


def test_a_timer_needs_a_period() -> None:
    assert set(reasons(mechanisms="timers", waiting="block", idle_ms="0")) == {
        "a timer without a period does not expire"
    }
    assert set(reasons(mechanisms="timers", waiting="block", idle_ms="0.1")) == {""}


def test_a_fifo_spinner_on_its_senders_cpu_is_left_out_and_a_timer_has_no_sender() -> None:
    asked: dict[str, Any] = {"mechanisms": "pipe,timerfd", "waiting": "block,minimal", "idle_ms": "1", "fifo": 1}
    left_out = [case for case in cases(3, 3, **asked) if case.reason]
    assert [(case.mechanism, case.way) for case in left_out] == [("pipe", "minimal")]
    assert "SCHED_FIFO spinner on CPU 3 would starve the sender" in left_out[0].reason
    assert not [case for case in cases(2, 3, **asked) if case.reason]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"mechanisms": "tpc"}, "--mechanisms tpc: there is no 'tpc'"),
        ({"mechanisms": ""}, "there is no ''"),
        ({"mechanisms": "tcp,pipe", "connect": "h:1"}, "only tcp and udp lead to the host of --connect"),
        ({"waiting": "sleeping,snoring"}, "there is no 'snoring'"),
        ({"idle_ms": "1,x"}, "--idle-ms 1,x: expected milliseconds from 0 to 60000"),
        ({"idle_ms": "inf"}, "--idle-ms inf"),
        ({"idle_ms": "nan"}, "--idle-ms nan"),
        ({"idle_ms": "-1"}, "--idle-ms -1"),
        ({"idle_ms": "60001"}, "--idle-ms 60001"),
        ({"idle_ms": ""}, "--idle-ms :"),
        ({"idle_ms": ",".join("1" * 17)}, "at most 16 of them"),
    ],
)
def test_what_there_is_not_is_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        cases(**asked)


def facts(online: int = 8, isolated: frozenset[int] = NONE, partitioned: frozenset[int] = NONE) -> CpuFacts:
    """CPU n and n + 4 share a core."""
    cpus = frozenset(range(online))
    siblings = {cpu: frozenset({cpu % 4, cpu % 4 + 4}) for cpu in cpus}
    return CpuFacts(cpus, cpus, cpus, online, isolated, NONE, siblings, partitioned)


def chosen(host: CpuFacts, allowed: frozenset[int], cpus: str | None = None, among: str | None = None) -> Placed:
    return place(cpus, among, host, allowed)


def test_without_two_isolated_cpus_the_allowed_ones_are_taken_and_said() -> None:
    found = chosen(facts(isolated=frozenset({3})), frozenset({0, 1, 2, 4, 60}))
    assert (found.sender, found.receiver) == (2, 4)
    assert found.note.startswith("no two CPUs are isolated on this host: CPUs 2,4 were chosen among the allowed ones")
    assert "CPU 1 was chosen" in chosen(facts(), frozenset({1})).note


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"cpus": "1"}, "expected the sender's CPU and the receiver's, like 2,3"),
        ({"cpus": "0-1"}, "like 2,3"),
        ({"cpus": "0,1,2"}, "like 2,3"),
        ({"cpus": "0,\u0661"}, "like 2,3"),
        ({"cpus": "0,8"}, "CPU 8 is not online"),
        ({"cpus": "0,99999999999999999999"}, "like 2,3"),
        ({"among": "60"}, "none of the CPUs to choose from is online"),
        ({"among": "x"}, "not a CPU list"),
    ],
)
def test_ends_that_are_none_are_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        chosen(facts(), frozenset({0, 1}), **asked)
