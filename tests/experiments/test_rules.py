"""Rules of `wake`, `feed` and `hedge`, each at its limit: what is counted, when a case is void, when a run collapses.

On the types of the raw documents, one function at a time; what becomes of whole documents is in test_*_cells.py.
"""

from typing import Any

import pytest

from tests.experiments import feeds, hedges
from tests.experiments.feeds import message
from tests.experiments.wakes import CALM, block, minimal
from tests.experiments.wakes import case as wake_case
from tests.experiments.wakes import raw_document as wake_document
from tunectl.experiments import feed_cells, hedge_cells, wake_cells
from tunectl.experiments.feed_cells import FEED
from tunectl.experiments.hedge import HedgeRequest
from tunectl.experiments.hedge_cells import HEDGE
from tunectl.experiments.pair import cpu_share, unkept
from tunectl.experiments.tick_figures import Figures, halved, ratio
from tunectl.experiments.wake_cells import WAKE, occupancy
from tunectl.shapes import nearest_rank


def hedge_run(*cases: dict[str, Any], **changes: Any) -> hedge_cells.RawHedge:
    return HEDGE.read(hedges.raw_document(*cases, **changes))


def hedged(**changes: Any) -> hedge_cells.RawCase:
    return hedge_run(hedges.case([3_000] * 1000, **changes)).cases[0]


def feed_run(*cases: dict[str, Any], **changes: Any) -> feed_cells.RawFeed:
    return FEED.read(feeds.raw_document(*cases, **changes))


def wake_run(*cases: dict[str, Any], **changes: Any) -> wake_cells.RawWake:
    return WAKE.read(wake_document(*cases, **changes))


# ---- figures


@pytest.mark.parametrize(
    ("count", "share", "rank"),
    [(100, 0.99, 99), (101, 0.99, 100), (1000, 0.999, 999), (1, 0.5, 1), (2, 0.5, 1), (3, 0.5, 2)],
)
def test_a_percentile_is_the_nearest_rank(count: int, share: float, rank: int) -> None:
    assert nearest_rank(count, share) == rank


def test_values_beyond_have_no_figure() -> None:
    found = Figures([10, 98, 20, 1], 1e9, beyond=1)
    assert found.n == 100
    assert found.spread_ns() == {
        "min": 10, "mean": None, "50": 10, "90": 10, "95": 10, "99": 20, "99.9": None, "99.99": None, "max": None,
    }  # fmt: skip
    assert Figures([10, 98, 20, 1], 1e9, beyond=0).spread_ns({"99": 100, "90": 99}) == {
        "min": 10, "mean": 10.1, "50": 10, "90": 10, "95": 10, "99": None, "99.9": 20, "99.99": 20, "max": 20,
    }  # fmt: skip
    assert Figures([], 1e9).spread_ns() is None


def test_ticks_become_whole_nanoseconds_rounded_down() -> None:
    found = Figures([5, 1, 7, 1], 2e9)
    assert (found.ns(5), found.ns(7), found.summary_ns()["mean_ns"], found.known_ns(float("inf"))) == (2, 3, 3.0, None)
    for value, low, high in ((127, 127, 128), (255, 255, 256), (256, 256, 258), (257, 256, 258)):
        assert Figures([value, 3], 1e9).histogram_ns() == [[low, high, 3]]


def test_halves_and_ratios() -> None:
    assert halved([10, 3, 11, 5]) == [5, 3, 5, 5]
    assert [ratio(1, 3), ratio(0, 3), ratio(1, 0), ratio(1, -1)] == [0.333, 0.0, None, None]


# ---- who had the CPU


@pytest.mark.parametrize(
    ("ns", "ticks", "hz", "share"),
    [(900, 1000, 1e9, 0.9), (900, 2000, 2e9, 0.9), (1001, 1000, 1e9, 1.0), (5, 0, 1e9, 0.0)],
)
def test_the_share_of_a_cpu_is_at_most_all_of_it(ns: int, ticks: int, hz: float, share: float) -> None:
    assert cpu_share(ns, ticks, hz) == share


def occupied(**changes: Any) -> Any:
    run = wake_run(block(occupancy=CALM | changes))
    return occupancy(run.cases[0], run)


def test_what_the_kernel_counted_of_a_cpu() -> None:
    found = occupied(cpu_ns=9_000_000, cpu_slices=140)
    assert found._asdict() == {
        "elapsed_ns": 1e9, "cpu_ns": 9_000_000, "own_ns": 2_000_000, "own_slices": 100, "cpu_slices": 140, "step_ns": 0,
    }  # fmt: skip
    steps = occupied(cpu_ns=30_000_000, cpu_slices=None)
    assert (steps.cpu_ns, steps.cpu_slices, steps.step_ns) == (30_000_000, None, 10_000_000)


def changed_files(run: dict[str, Any], path: str, at: str, text: str) -> Any:
    run["cells"][0][at]["files"][path] = text
    read = WAKE.read(run)
    return occupancy(read.cases[0], read)


@pytest.mark.parametrize("at", ["before", "after"])
@pytest.mark.parametrize(
    "text", ["", "cpu3 0 0 0 0 0 0 50 60\n", "cpu3 0 0 0 0 0 0 50 60 x\n", "cpu33 0 0 0 0 0 0 50 60 70\n"]
)
def test_a_line_that_cannot_be_read_says_nothing(at: str, text: str) -> None:
    assert changed_files(wake_document(block()), "/proc/schedstat", at, text) is None


def test_time_that_does_not_pass_says_nothing() -> None:
    for changes in ({"ticks": 0}, {"ticks": -5}):
        assert occupied(**changes) is None
    run = wake_run(block(occupancy=None))
    assert occupancy(run.cases[0], run) is None


@pytest.mark.parametrize(
    ("cpus", "shares_main", "own"), [((2, 3), False, 1), ((3, 3), False, 2), ((3, 3), True, 3), ((2, 3), True, 1)]
)
def test_our_own_threads_on_the_cpu(cpus: tuple[int, int], shares_main: bool, own: int) -> None:
    run = wake_document(block(), cpus=list(cpus), facts={"shares_main": shares_main})
    for name, (ran, slices) in (("before", (0, 0)), ("after", (5, 2))):
        files = run["cells"][0][name]["files"]
        files.update({path: f"{ran} 1 {slices}" for path in files if path.endswith("/schedstat") and "task" in path})
    read = WAKE.read(run)
    found = occupancy(read.cases[0], read)
    assert found
    assert (found.own_ns, found.own_slices) == (5 * own, 2 * own)


@pytest.mark.parametrize(
    ("occupied_by", "preemptions", "met"),
    [
        ({}, 0, 0.0),
        ({}, 2, 0.02),
        ({"cpu_slices": 101}, 0, 0.0),  # one run in a hundred messages, however long
        ({"cpu_slices": 101, "cpu_ns": 900_000_000}, 0, 0.0),
        ({"cpu_slices": 102, "cpu_ns": 103_000_000}, 0, 0.1002),  # 101 ms less our millisecond of doubt; 2 flights
        ({"cpu_slices": 102, "cpu_ns": 103_000_000}, 30, 0.3),
        ({"cpu_slices": 102, "cpu_ns": 2_000_000}, 0, 0.0002),
        ({"cpu_slices": None, "cpu_ns": 130_000_000}, 0, 0.107),  # less two steps of 10 ms
        ({"cpu_slices": 500, "cpu_ns": 5_000_000_000}, 0, 1.0),
        (None, 0, None),
        (None, 3, 0.03),
    ],
)
def test_how_many_messages_met_another_task(
    occupied_by: dict[str, Any] | None, preemptions: int, met: float | None
) -> None:
    changes = None if occupied_by is None else CALM | occupied_by
    run = wake_run(block(occupancy=changes, preemptions=preemptions))
    assert wake_cells.met_others(run.cases[0], run) == (None if met is None else pytest.approx(met, abs=2e-3 * met))


@pytest.mark.parametrize(
    ("mechanism", "cpus", "met"), [("tcp", [2, 3], 0.05), ("tcp", [3, 3], 0.0), ("timerfd", [3, 3], 0.05)]
)
def test_on_one_cpu_the_sender_preempts_and_is_no_other(mechanism: str, cpus: list[int], met: float) -> None:
    run = wake_run(block(mechanism=mechanism, preemptions=5), cpus=cpus)
    assert wake_cells.met_others(run.cases[0], run) == met


@pytest.mark.parametrize(
    ("made", "step_ns"),
    [
        (minimal(occupancy=None), None),
        (block(delay=[], arrived=0, sent=0), None),
        (block(occupancy=None), 0.0),
        (block(), None),
        (block(occupancy=CALM | {"cpu_slices": None, "ticks": 2_000_000_000, "cpu_ns": 0}), None),  # a hundredth
        (block(occupancy=CALM | {"cpu_slices": None, "ticks": 1_999_000_000, "cpu_ns": 0}), 10_000_000.0),
    ],
)
def test_a_case_too_short_for_the_kernels_steps(made: dict[str, Any], step_ns: float | None) -> None:
    run = wake_run(made)
    assert wake_cells.step_of_doubt_ns(run.cases[0], run) == step_ns


# ---- wake


def test_the_first_sleeper_with_figures_is_what_the_others_are_compared_with() -> None:
    poll = wake_case("poll", "sleeping", 50_000)
    run = wake_run(block(preemptions=99), poll, minimal(), minimal(idle_ms=5.0), minimal(mechanism="udp"))
    found = WAKE.judged(run)
    assert [one.has_figures for one in found] == [False, True, True, True, True]
    (made,) = wake_cells.speedups(run, found)
    assert (made["way"], made["over"], made["mean"]) == ("minimal", "poll", 10.0)
    assert (made["percentiles"]["99"], made["max"]) == (10.0, 10.0)


def test_a_sender_without_a_message_is_not_late() -> None:
    assert list(unkept(Figures([], 1e9))) == []


# ---- feed


@pytest.mark.parametrize(
    ("stamped", "without", "cost"),
    [
        ([{}], [{"stamped": False}], 0),
        ([{"messages": [message(read=4_300)] * 1000}], [{"stamped": False}], 300),
        ([{}], [{"stamped": False, "messages": [message(read=4_300)] * 1000}], -300),
        ([{}], [], None),
        ([{"stamped": False}], [{"stamped": False}], None),
        ([{"throttled_us": 1}], [{"stamped": False}], None),
        ([{}], [{"stamped": False, "throttled_us": 1}], None),
        ([{"stamped": False}, {}], [{"stamped": False}], 0),
    ],
)
def test_what_time_stamps_cost(stamped: list[dict[str, Any]], without: list[dict[str, Any]], cost: int | None) -> None:
    run, other = (feed_run(*(feeds.case(**one) for one in cases)) for cases in (stamped, without))
    assert feed_cells.stamp_cost_ns(run, FEED.judged(run), other if without else None) == cost


@pytest.mark.parametrize(
    ("rate", "burst", "seconds"),
    [(1000, 1, 0.2), (100, 1, 1.0), (499, 1, 100 / 499), (1_000_000, 1, 0.02), (1000, 64, 0.256), (1, 1, 100),
     (1, 256, 256)],
)  # fmt: skip
def test_the_warm_up_is_a_fifth_of_a_second_in_whole_bursts(rate: int, burst: int, seconds: float) -> None:
    case = feed_cells.RawCase.of("tcp", "json", 1, rate, burst, "poll", "off", 0)
    assert case.warm_up_s == pytest.approx(seconds)


# ---- hedge


@pytest.mark.parametrize(
    ("load", "service_ns", "duration_s", "requests", "warm_up_s"),
    [
        (0.5, 3000, 3.0, 1_000_000, 10_000 * 3e-6),
        (0.5, 3000, 3e-4, 100, 100 * 3e-6),
        (0.1, 1000, 0.01, 2000, 1000 * 5e-6),
    ],
)
def test_how_many_requests_come(
    load: float, service_ns: int, duration_s: float, requests: int, warm_up_s: float
) -> None:
    request = HedgeRequest(service_ns=service_ns, duration_s=duration_s)
    assert request.requests(load) == requests
    assert request.warm_up_s(load) == pytest.approx(warm_up_s)


def test_what_chance_would_have_slow_with_both() -> None:
    found = hedge_cells.Together(served=(1000, 2000), slow=(10, 40), first_slow=(100, 50))
    assert found.expected == pytest.approx(100 * 0.02 + 50 * 0.01)
    assert hedge_cells.Together(served=(0, 2000), slow=(0, 40), first_slow=(100, 50)).expected == pytest.approx(2.0)


@pytest.mark.parametrize(("first_slow", "ratio_"), [((250, 250), 2.0), ((250, 249), None), ((0, 500), 2.0)])
def test_a_ratio_needs_five_by_chance(first_slow: tuple[int, int], ratio_: float | None) -> None:
    found = hedges.together((1000, 1000), (10, 10), first_slow, both_slow=10, pairs=0)
    services = {"a": [3000, 1000], "b": [3000, 1000]}
    assert hedge_cells.joint_ratio(hedged(together=found, service=services)) == ratio_


@pytest.mark.parametrize(
    ("free", "measured", "share"), [(1000, 1000, 0.5), (2000, 1000, 1.0), (0, 1000, 0.0), (0, 0, 1.0)]
)
def test_the_time_that_two_servers_have_left(free: int, measured: int, share: float) -> None:
    assert hedged(free_ticks=free, measured_ticks=measured).free == share


@pytest.mark.parametrize(
    ("sums", "arrivals", "queues"),
    [
        ([10, 1, 1, 40], [10, 1, 1, 20], (1.0, 2.0)),
        ([10, 1, 1, 0], [10, 1, 1, 0], None),
        ([0, 1, 1, 40], [0, 1, 1, 20], None),
    ],
)
def test_what_the_queues_held_first_and_last(sums: list[int], arrivals: list[int], queues: Any) -> None:
    case = hedged(queue_sums=sums, queue_arrivals=arrivals)
    assert case.queues == queues
    assert not hedge_cells.why_collapsed(case)


def test_what_missed_and_what_was_late() -> None:
    run = hedge_run(hedges.case([3_000] * 1000, shed=5, unanswered=3, hedged=2, denied=4, over_budget=7, budget=0.01))
    (case,) = run.cases
    assert (case.offered, case.missed) == (1008, 8)
    assert any("7 of 13 had no second copy" in text for text in hedge_cells.case_warnings(case, run))


@pytest.mark.parametrize(
    ("both_slow", "first_slow", "is_told"),
    [
        *((times, (500, 500), times > 25) for times in (20, 21, 25, 36, 40)),  # by chance it is ten times
        (0, (0, 0), False),
        (4, (5, 5), True),
    ],
)
def test_both_slow_more_often_than_chance_has_it(both_slow: int, first_slow: tuple[int, int], is_told: bool) -> None:
    found = hedges.together((1000, 1000), (10, 10), first_slow, both_slow=both_slow, pairs=0)
    services = {"a": [3000, 1000], "b": [3000, 1000]}
    assert hedge_cells.is_dependent(hedged(together=found, service=services)) is is_told


@pytest.mark.parametrize(
    ("cores", "shared"),
    [
        (("", "", ""), set()),
        (("2-3", "2-3", ""), {(0, 1)}),
        (("", "3-4", "3-4"), {(1, 2)}),
        (("2,4", "", "2,4"), {(0, 2)}),
    ],
)
def test_which_of_three_share_a_core(cores: tuple[str, str, str], shared: set[tuple[int, int]]) -> None:
    run = hedge_run(facts={"cpus": [feeds.GOOD | {"core_cpus": core} for core in cores]})
    assert {(one, two) for one in range(3) for two in range(one + 1, 3) if run.shares_core(one, two)} == shared
    simulated = HEDGE.read(hedges.simulated_document())
    assert not simulated.facts


@pytest.mark.parametrize(
    ("budget", "over_budget", "shed", "starves"),
    [(0.05, 1, 0, False), (0.049, 1, 0, True), (0.049, 0, 0, False), (0.05, 1, 20, True)],
)
def test_a_budget_starves_where_it_is_below_the_late_share_of_what_is_admitted(
    budget: float, over_budget: int, shed: int, starves: bool
) -> None:
    """50 of 1,000 that were taken are late."""
    made = hedges.case(
        [3_000] * (1000 - shed), shed=shed, hedged=50 - over_budget, over_budget=over_budget, budget=budget
    )
    run = hedge_run(made)
    assert any("starves hedging" in text for text in hedge_cells.case_warnings(run.cases[0], run)) is starves
