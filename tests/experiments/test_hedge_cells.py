"""What Python makes of the counts of `hedge`: figures, cells that are void, warnings. On values alone."""

from typing import Any

import pytest

from tests.experiments.feeds import GOOD, pairs
from tests.experiments.hedges import at_once, case, tail, together
from tests.experiments.test_laws import HEDGE, SIMULATED

cell = HEDGE.cell


def about(found: list[str], word: str) -> list[str]:
    return [text for text in found if word in text]


def test_a_cell_has_the_figures_of_its_counts() -> None:
    made = cell(case(tail(20_000), won=[9_000] * 10, hedged=40, wasted_ticks=12_345))
    assert (made["n"], made["offered"], made["answered"]) == (20_000, 20_000, 20_000)
    assert (made["hedged"], made["won"]) == (40, 10)
    found = made["percentiles_ns"]
    assert (found["50"], found["99"], found["99.9"], found["99.99"]) == (3_048, 6_000, 6_000, None)
    assert (made["min_ns"], made["max_ns"]) == (3_000, 300_000)
    assert (made["delay_ns"], made["floor_ns"]) == (5_000, 7_900)
    assert (made["wasted_ns"], made["utilisation"], made["joint_ratio"]) == (12_345, 0.1, None)
    assert made["single_ns"]["a"]["50"] == 3_000
    assert (made["collapsed"], made["budget"], made["shed_at"]) == (False, None, None)
    assert (made["cpus"], made["late_ns"]["max"], made["warnings"]) == ([2, 3, 4], 50, [])
    assert sum(count for _, _, count in made["histogram"]) == 20_000


def test_the_floor_is_of_the_least_delay_and_the_delay_is_the_median() -> None:
    made = cell(case([9_000] * 10, won=[9_000], hedged=3, hedged_after=pairs([4_000, 5_000, 7_000])))
    assert (made["floor_ns"], made["delay_ns"]) == (6_900, 5_000)


def test_without_second_copies_there_is_no_floor() -> None:
    made = cell(case([3_000] * 10, fastest_ticks=None, budget=0.1, shed_at=4))
    assert (made["budget"], made["shed_at"]) == (0.1, 4)  # limits that there are stand there
    assert (made["floor_ns"], made["delay_ns"], made["hedged"]) == (None, None, 0)


# ---- what missed


@pytest.mark.parametrize(
    ("missed", "said", "known", "unknown"),
    [
        (100, "100 of 10000 requests", ["99"], ["99.9"]),  # 1 %: P99 is the last that is known
        (101, "more than 1 % missed: ", ["95"], ["99", "99.9"]),
        (11, "more than 0.1 % missed: ", ["99"], ["99.9"]),
        (10, "10 of 10000 requests", ["99.9"], []),
        (5_001, "more than 1 % missed: ", [], ["50", "90", "95", "99", "99.9"]),
    ],
)
def test_percentiles_beyond_the_answered_share_are_null(
    missed: int, said: str, known: list[str], unknown: list[str]
) -> None:
    made = cell(case([3_000] * (10_000 - missed), shed=missed, shed_at=4))
    assert {name: made["percentiles_ns"][name] for name in known} == dict.fromkeys(known, 3_000)
    assert {name: made["percentiles_ns"][name] for name in unknown} == dict.fromkeys(unknown)
    assert (made["mean_ns"], made["max_ns"]) == (None, None)
    (text,) = made["warnings"]
    assert said in text
    for name in unknown:
        assert f"P{name}" in text


FULL: dict[str, Any] = {"free_ticks": 19_999, "measured_ticks": 1_000_000}
ROOM = FULL | {"free_ticks": 20_000}


def queues(*sums: int) -> dict[str, Any]:
    return case([3_000] * 4_000, queue_sums=[*sums], queue_arrivals=[1000] * 4)


def copies(**changes: Any) -> dict[str, Any]:
    return case([3_000] * 1_000, won=[9_000] * 10, hedged=175, **changes)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (case([3_000] * 9_900, unanswered=100), ""),
        (case([3_000] * 9_899, unanswered=101), "collapsed: 1.01 % of the requests had no answer"),
        (case([3_000] * 100, shed=900), ""),
        (queues(500, 0, 0, 2000), ""),  # four times as many
        (queues(500, 0, 0, 2001), "collapsed: the queues held"),
        (queues(10, 0, 0, 1000), ""),  # a hundred times as many, and one on average
        (queues(10, 0, 0, 1001), "collapsed: the queues held"),
        (queues(0, 0, 0, 1001), "collapsed: the queues held"),
        # cut short: it has no last quarter
        (case([3_000] * 40, queue_sums=[9, 99, 0, 0], queue_arrivals=[9, 9, 0, 0]), ""),
        # without time to spare by the requests alone: they need no second copy for it, and it is no collapse
        (case([3_000] * 100, **ROOM), ""),
        (case([3_000] * 100, **FULL), "saturated: the servers were free for 1 % of the time"),
        (case([3_000] * 80, unanswered=20, **FULL), "collapsed: 20 % of the requests had no answer"),
        # by second copies: the queues stand still at their worst, and have grown before the first quarter is over
        (copies(**ROOM), ""),
        (
            copies(**FULL),
            "collapsed: second copies, of 17.5 % of the requests, fill the servers, which were free for 1",
        ),
        (copies(shed_at=4, **FULL), "saturated: the servers were free for 1 % of the time; what they cannot do is ref"),
    ],
)
def test_a_case_collapses_or_is_saturated_or_neither(made: dict[str, Any], said: str) -> None:
    found = cell(made)
    told = [text for text in found["warnings"] if text.startswith(("collapsed: ", "saturated: "))]
    assert (len(told), "".join(told).startswith(said)) == (bool(said), True)
    assert found["collapsed"] is said.startswith("collapsed")


# ---- the budget


def test_a_budget_below_the_natural_share_of_late_requests_starves_hedging() -> None:
    starved = case([9_000] * 1000, hedged=10, over_budget=40, budget=0.01, delay="p95")
    (text,) = cell(starved)["warnings"]
    assert text == (
        "the budget of 0.01 starves hedging: it is below the natural share of late requests (0.05 by the delay itself, "
        "0.05 here); 40 of 50 had no second copy"
    )
    (text,) = cell(starved | {"delay": "5000"})["warnings"]
    assert "natural share of late requests (0.05 here)" in text


# ---- both slow


def test_servers_that_are_slow_by_themselves_have_a_ratio_of_one() -> None:
    made = cell(at_once(100_000, both_slow=10))
    assert (made["joint_ratio"], made["warnings"]) == (1.0, [])


def test_servers_that_are_slow_together_are_told_with_why() -> None:
    made = cell(at_once(100_000, both_slow=200))
    assert made["joint_ratio"] == 20.0
    (text,) = made["warnings"]
    said = "both servers were slow with the same request 200 times, and by chance it would have been 10"
    assert text.startswith(f"no hedge helps here: {said}: ")
    assert "`tunectl probe jitter --attribute` on CPUs 3-4 shows simultaneous stops" in text


ONE_CORE = {"cpus": [GOOD, GOOD | {"core_cpus": "3-4"}, GOOD | {"core_cpus": "3-4"}]}
VIRTUAL = {"/proc/cpuinfo": "flags\t\t: constant_tsc nonstop_tsc hypervisor\n"}


@pytest.mark.parametrize(
    ("changes", "of_run", "why"),
    [
        ({}, {"facts": ONE_CORE}, "they share a core"),
        ({"throttled": 4}, {}, "their cores or their package were throttled 4 times"),
        ({"stall": "common"}, {}, "they stall at the same instants, as was asked for"),
        ({}, {"host_files": VIRTUAL}, "a hypervisor may have stopped both"),
        (
            {"throttled": 4},
            {"facts": ONE_CORE},
            "they share a core, and their cores or their package were throttled 4 times",
        ),
    ],
)
def test_each_reason_that_is_known_is_named(changes: dict[str, Any], of_run: dict[str, Any], why: str) -> None:
    (text,) = about(cell(at_once(100_000, 200, **changes), **of_run)["warnings"], "no hedge helps here")
    assert text.endswith(f": {why}")


def test_a_simulation_names_no_smi() -> None:
    (text,) = SIMULATED.cell(at_once(100_000, 200))["warnings"]
    assert text.endswith(": it is not known why")


def test_hedges_of_late_requests_alone_are_judged_by_what_is_usual_for_the_other() -> None:
    """Of 100 requests slow at A and hedged, 50 are slow at B, too; of all that B did a hundredth is."""
    found = together((10_000, 10_000), (100, 100), (100, 0), both_slow=50, pairs=400)
    made = cell(case([9_000] * 20_000, hedged=0, together=found, shorter_of_pair=[3000, 400], **_services(10_000)))
    assert made["joint_ratio"] is None  # 1 by chance
    assert len(about(made["warnings"], "no hedge helps here")) == 1


def _services(n: int) -> dict[str, Any]:
    return {"service": {"a": [3000, n], "b": [3000, n]}}


# ---- documents


def test_an_answer_at_the_floor_is_one() -> None:
    made = case([7_900] * 100, won=[7_900], hedged=1)
    assert cell(made)["floor_ns"] == made["won_latency"][0]
