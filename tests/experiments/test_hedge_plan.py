"""Which cases `hedge` takes, on which CPUs, in what words the native program is asked, what is refused: on values."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tunectl.cpulist import CpuSet
from tunectl.errors import UsageError
from tunectl.experiments.hedge import MOST_REQUESTS, HedgeRequest, Planned, plan
from tunectl.experiments.hedge_cells import natural_share
from tunectl.experiments.pair import PlacedServers, place_servers
from tunectl.host.cpusets import CpuFacts


def cases(**asked: Any) -> list[Planned]:
    return plan(HedgeRequest(**asked))


def test_each_load_is_measured_without_second_copies_first() -> None:
    found = cases(load="0.1,0.5", delay="0,p95,7000")
    assert [(one.load, one.delay) for one in found] == [
        (load, delay) for load in (0.1, 0.5) for delay in ("none", "0", "p95", "7000")
    ]
    assert {(one.stall, one.service_ns, one.cancel, one.budget, one.shed_at) for one in found} == {
        ("none", 3000, True, 1.0, 0)
    }
    assert [one.delay for one in cases(load="0.1", delay="none")] == ["none"]
    assert [one.delay for one in cases(load="0.1", delay="p95,none,p95")] == ["none", "p95"]


def test_each_stall_has_a_baseline_of_its_own() -> None:
    found = cases(load="0.1", delay="p95", stall="common,a")
    assert [(one.stall, one.delay) for one in found] == [
        *(("a", "none"), ("a", "p95"), ("common", "none"), ("common", "p95"))
    ]


def test_the_defaults_are_those_of_the_help() -> None:
    assert len(cases()) == 5 * 3


def test_the_words_of_a_case() -> None:
    (_, one) = cases(load="0.85", delay="p95", budget=0.1, shed=4, cancel=False, seed=7, stall="both", service_ns=5000)
    assert one.words() == [
        *("--load", "0.85", "--delay", "p95", "--stall", "both", "--service-ns", "5000", "--seed", "7"),
        *("--budget", "0.1", "--shed", "4", "--no-cancel"),
    ]
    assert one.title == "load 0.85, second copy at P95, stall both"
    asked = {"load": 0.85, "delay": "p95", "stall": "both", "service_ns": 5000, "cancel": False, "budget": 0.1}
    assert one.cell == asked | {"shed_at": 4, "seed": 7, "reason": ""}


def test_the_words_that_all_cases_share() -> None:
    assert list(HedgeRequest(duration_s=0.25, fifo=7, intrude=True).words()) == [
        *("--duration", "0.250000", "--fifo", "7", "--intrude")
    ]
    assert list(HedgeRequest(simulate=True).words()) == ["--duration", "10.000000", "--simulate"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"load": "0"}, "--load 0: expected numbers from 0.001 to 2"),
        ({"load": "2.1"}, "--load 2.1: expected numbers"),
        ({"load": "nan"}, "--load nan: expected numbers"),
        ({"load": "0.1,"}, "--load 0.1,: expected numbers"),
        ({"load": ",".join(f"0.{n}" for n in range(10, 27))}, "at most 16 of them"),
        ({"delay": "p49"}, "--delay p49: expected none, p50 to p99.9, or ns up to 1000000000"),
        ({"delay": "p99.95"}, "--delay p99.95: expected"),
        ({"delay": "p9"}, "--delay p9: expected"),
        ({"delay": "-1"}, "--delay -1: expected"),
        ({"delay": "07"}, "--delay 07: expected"),
        ({"delay": "1000000001"}, "--delay 1000000001: expected"),
        ({"delay": "٣"}, "--delay ٣: expected"),
        ({"delay": ""}, "--delay : expected"),
        ({"stall": "b"}, "--stall b: there is no 'b'"),
        ({"duration_s": 0}, "--duration 0: seconds, above 0"),
        ({"duration_s": math.nan}, "--duration nan: seconds"),
        ({"duration_s": 86_401}, "at most a day"),
        ({"duration_s": 86_400}, "that is 5,760,000,000 requests"),
        ({"budget": 1.01}, "--budget 1.01: second copies for each request, from 0 to 1"),
        ({"budget": -0.1}, "--budget -0.1: second copies"),
        ({"budget": math.nan}, "--budget nan: second copies"),
        ({"simulate": True, "cpus": "1,2,3"}, "--simulate: --cpus, --fifo and --intrude are of a measurement"),
        ({"simulate": True, "fifo": 1}, "--simulate: --cpus"),
        ({"load": "0.001", "duration_s": 1e-9}, "that is 0 requests"),
    ],
)
def test_what_is_no_case(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as error:
        cases(**asked)
    assert said in f"{error.value.message} {error.value.hint}"


def test_as_many_requests_as_the_program_keeps_and_not_one_more() -> None:
    most_s = MOST_REQUESTS * 3000 / 2 / 0.5 / 1e9
    assert cases(load="0.5", duration_s=most_s)
    with pytest.raises(UsageError, match="that is 5,990,001 requests"):
        cases(load="0.5", duration_s=most_s + 3e-6)


@pytest.mark.parametrize(("delay", "share"), [("p95", 0.05), ("p50", 0.5), ("p99.9", 0.001)])
def test_the_natural_share_of_late_requests(delay: str, share: float) -> None:
    assert natural_share(delay) == pytest.approx(share)


@pytest.mark.parametrize("delay", ["none", "0", "95", "p49.99", "p100"])
def test_a_delay_that_follows_nothing_has_no_natural_share(delay: str) -> None:
    assert math.isnan(natural_share(delay))


# ---- placement


def facts(online: range, isolated: CpuSet = frozenset(), cores: int = 1) -> CpuFacts:
    """CPUs whose cores have so many hardware threads, one after the other."""
    cpus = frozenset(online)
    siblings = {cpu: frozenset(range(cpu - cpu % cores, cpu - cpu % cores + cores)) & cpus for cpu in cpus}
    return CpuFacts(cpus, cpus, cpus, max(cpus) + 1, isolated, frozenset(), siblings)


ALL = frozenset(range(64))


def test_the_last_three_cores() -> None:
    eight = facts(range(8))
    assert place_servers(None, None, eight, ALL)[:3] == (5, 6, 7)
    assert place_servers(None, None, facts(range(8), cores=2), ALL)[:3] == (3, 5, 7)
    assert place_servers(None, None, facts(range(8), frozenset({2, 3, 4, 5})), ALL) == PlacedServers(3, 4, 5)
    assert place_servers(None, "1-3,6", eight, ALL) == PlacedServers(2, 3, 6)


def test_two_that_share_a_core_are_better_than_none() -> None:
    assert place_servers(None, None, facts(range(4), cores=2), ALL)[:3] == (2, 1, 3)


def test_a_choice_that_nobody_asked_for_is_told() -> None:
    chosen = "CPUs 5-7 were chosen among the allowed ones (--cpus C,A,B names others)"
    said = f"no three CPUs are isolated on this host: {chosen}"
    assert place_servers(None, None, facts(range(8)), ALL).note == said
    assert place_servers(None, None, facts(range(8), frozenset({1, 2})), ALL).note == said
    assert place_servers("1,2,3", None, facts(range(8)), ALL) == PlacedServers(1, 2, 3)
    assert PlacedServers(4, 2, 3).text == "4,2,3"


@pytest.mark.parametrize(
    ("cpus", "said"),
    [
        ("1,2", "expected the client's CPU and those of both servers, like 2,3,4"),
        ("1,2,3,4", "expected the client's CPU and those of both servers"),
        ("1-3", "expected the client's CPU"),
        ("1,2,9", "CPU 9 is not online on this host"),
        ("1,2,2", "all three threads spin, so each needs a CPU of its own"),
    ],
)
def test_cpus_that_cannot_be(cpus: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        place_servers(cpus, None, facts(range(8)), ALL)


def test_two_cpus_are_too_few() -> None:
    with pytest.raises(UsageError) as error:
        place_servers(None, None, facts(range(2)), ALL)
    assert error.value.message == "a client and two servers spin, each on a CPU of its own: here 2 can be chosen"
    assert error.value.hint == "name three with --cpus C,A,B, or say --simulate, which needs none"
    with pytest.raises(UsageError, match="here 2 can be chosen"):
        place_servers(None, None, facts(range(8)), frozenset({1, 2}))
