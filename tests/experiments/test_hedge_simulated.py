"""What hedging does on simulated time: the same client and policy as live, the same result everywhere.

The bars are those of a measurement with three isolated CPUs; here they hold on every machine.
"""

import json
import math
import subprocess
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.test_hedge_native import check_balance
from tunectl.experiments.hedge_cells import HEDGE, explained_hedge
from tunectl.experiments.hedge_states import counts_of

pytestmark = pytest.mark.slow  # a second each; the quick ring has the laws of every experiment (test_laws.py)

Cell = dict[str, Any]
Raw = Callable[..., Cell]
CALM_P95 = 5_000  # of a server at load 0.1, about, in ns: a fixed delay


@pytest.fixture(scope="module")
def documents(program: Path) -> Callable[..., dict[str, Any]]:
    made: dict[str, dict[str, Any]] = {}

    def simulated(*flags: str, **options: object) -> dict[str, Any]:
        words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        argv = [str(program), "hedge", "--simulate", *(f"--{flag}" for flag in flags), *words]
        key = " ".join(argv)
        if key not in made:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
            assert (done.returncode, done.stderr) == (0, "")
            made[key] = json.loads(done.stdout)
        return made[key]

    return simulated


@pytest.fixture
def raw(documents: Callable[..., dict[str, Any]]) -> Raw:
    def cell(*flags: str, **options: object) -> Cell:
        (found,) = documents(*flags, **{"duration": 1, **options})["cells"]
        return dict(found) | counts_of(found["states"])

    return cell


@pytest.fixture
def cell(documents: Callable[..., dict[str, Any]]) -> Raw:
    def explained(*flags: str, **options: object) -> Cell:
        (found,) = explained_hedge(documents(*flags, **{"duration": 1, **options}))["cells"]
        return dict(found)

    return explained


@pytest.mark.parametrize("delay", ["none", "0", "p95", CALM_P95])
@pytest.mark.parametrize("stall", ["none", "both"])
@pytest.mark.parametrize("load", [0.1, 0.85])
@pytest.mark.parametrize("flags", [(), ("no-cancel",)])
@pytest.mark.parametrize("limits", [{}, {"budget": 0.1, "shed": 4}])
def test_every_request_and_every_copy_is_accounted_for(
    documents: Callable[..., dict[str, Any]],
    load: float,
    stall: str,
    delay: object,
    flags: Sequence[str],
    limits: dict[str, float],
) -> None:
    asked = {"load": load, "delay": delay, "stall": stall, "duration": 0.2}
    (case,) = HEDGE.read(documents(*flags, **asked, **limits)).cases  # which compares the floor
    check_balance(case, flags, limits)


def test_the_same_seed_is_the_same_run_and_another_is_another(program: Path) -> None:
    def cells(seed: int) -> list[Cell]:
        argv = [str(program), "hedge", "--simulate", "--duration", "0.1", "--delay", "p95", "--seed", str(seed)]
        found: list[Cell] = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)["cells"]
        return found

    assert cells(3) == cells(3)
    assert cells(3)[0]["latency"] != cells(4)[0]["latency"]


def counted(values: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(values[::2], values[1::2], strict=True))


def survival(values: Sequence[int], above: float) -> float:
    """The share of them that are longer."""
    found = counted(values)
    return sum(count for value, count in found if value > above) / sum(count for _, count in found)


@pytest.mark.parametrize("stall", ["none", "both"])
def test_of_two_copies_at_once_both_are_slow_as_often_as_chance_has_it(raw: Raw, stall: str) -> None:
    """S_A(x) S_B(x) is how often the shorter service time of the two is longer than x, within five deviations."""
    one = raw("no-cancel", delay=0, load=0.1, stall=stall, duration=2)
    n = one["together"]["pairs"]
    assert n == one["offered"] == 133_333
    for above in (2_800, 2_900, 3_000, 3_300, 3_600, 4_000):
        expected = survival(one["service"]["a"], above) * survival(one["service"]["b"], above)
        # Values that share a bucket are at most 1/128 off: a little more either way.
        near = [survival(one["shorter_of_pair"], above * scale) for scale in (1 + 1 / 128, 1 - 1 / 128)]
        doubt = 5 * math.sqrt(expected * (1 - expected) / n)
        assert near[0] - doubt <= expected <= near[1] + doubt, above


def test_independent_servers_have_a_ratio_of_one(cell: Raw) -> None:
    one = cell("no-cancel", delay=0, load=0.1, stall="both", duration=10)
    assert one["joint_ratio"] == pytest.approx(1, abs=5 / math.sqrt(0.0001 * one["n"]))
    assert one["warnings"] == []


def test_servers_that_stop_together_have_not_and_no_hedge_helps(cell: Raw) -> None:
    for delay in (0, "p95"):
        one = cell(delay=delay, load=0.1, stall="common", duration=10)
        assert one["joint_ratio"] > 3
        (text,) = one["warnings"]
        assert text.startswith("no hedge helps here: both servers were slow with the same request")
        assert text.endswith("they stall at the same instants, as was asked for")


@pytest.mark.parametrize("delay", ["0", "p95", CALM_P95])
def test_a_second_copy_helps_where_one_server_stalls(cell: Raw, delay: object) -> None:
    without = cell(load=0.1, stall="a")["percentiles_ns"]["99.9"]
    assert without / cell(load=0.1, stall="a", delay=delay)["percentiles_ns"]["99.9"] >= 5


@pytest.mark.parametrize("delay", ["0", "p95", CALM_P95])
def test_it_does_not_where_both_stall_at_once(cell: Raw, delay: object) -> None:
    without = cell(load=0.1, stall="common")["percentiles_ns"]["99.9"]
    assert without / cell(load=0.1, stall="common", delay=delay)["percentiles_ns"]["99.9"] <= 1.1


@pytest.mark.parametrize("stall", ["none", "a", "both"])
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("delay", ["0", "p95", CALM_P95])
def test_hedging_a_high_load_collapses_without_limits(cell: Raw, delay: object, seed: int, stall: str) -> None:
    """Also where the delay follows the queues, which then stand still: what is hedged takes what 0.85 leaves."""
    one = cell("no-cancel", load=0.85, delay=delay, seed=seed, stall=stall)
    assert one["collapsed"]
    assert any(text.startswith("collapsed: ") for text in one["warnings"])
    without = cell(load=0.85, seed=seed, stall=stall)
    assert not without["collapsed"]
    assert one["percentiles_ns"]["50"] > 100 * without["percentiles_ns"]["50"]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 6))
def test_it_collapses_in_a_run_of_the_length_that_is_usual(cell: Raw, seed: int) -> None:
    """In ten seconds no queue grows after the first quarter, and the last ones are less than 1 % of the requests."""
    one = cell("no-cancel", load=0.85, delay="p95", seed=seed, duration=10)
    assert one["collapsed"]
    assert any("the queues stand still at their worst" in text for text in one["warnings"])


@pytest.mark.parametrize("delay", ["0", "p95", CALM_P95])
def test_with_a_budget_and_cancellation_it_does_not(cell: Raw, delay: object) -> None:
    one = cell(load=0.85, delay=delay, budget=0.1)
    assert not one["collapsed"]
    assert one["hedged"] <= 0.1 * one["offered"] + 100
    assert one["percentiles_ns"]["50"] <= 1.25 * cell(load=0.85)["percentiles_ns"]["50"]


def test_cancellation_alone_does_not_save_a_fixed_delay(cell: Raw) -> None:
    assert cell(load=0.85, delay=CALM_P95)["collapsed"]
    assert not cell(load=0.5, delay=CALM_P95)["collapsed"]


@pytest.mark.parametrize("load", [0.1, 0.5, 0.85])
def test_a_delay_that_follows_p95_hedges_one_request_in_twenty(cell: Raw, load: float) -> None:
    one = cell(load=load, delay="p95")
    assert one["hedged"] / one["offered"] == pytest.approx(0.05, abs=0.01)


def test_a_budget_below_that_starves_it(cell: Raw) -> None:
    one = cell(load=0.1, delay="p95", budget=0.01)
    assert one["hedged"] <= 0.01 * one["offered"] + 100
    assert [text for text in one["warnings"] if "starves hedging" in text]
    assert not [text for text in cell(load=0.1, delay="p95", budget=0.1)["warnings"] if "starves hedging" in text]


def test_what_is_refused_counts_as_missed(cell: Raw) -> None:
    one = cell(load=0.85, shed=4)
    assert one["shed"] / one["offered"] > 0.01
    assert (one["percentiles_ns"]["99"], one["percentiles_ns"]["99.9"], one["max_ns"]) == (None, None, None)
    assert one["percentiles_ns"]["50"] is not None
    (text,) = one["warnings"]
    assert text.startswith("more than 1 % missed: ")


@pytest.mark.parametrize("load", [0.1, 0.5, 0.8])
def test_the_wait_is_what_pollaczek_and_khinchine_say(raw: Raw, load: float) -> None:
    """Mean wait of a queue with random arrivals: load s (1 + cv^2) / (2 (1 - load)); cv is 0.1. An oracle of 1930."""
    one = raw(load=load, duration=2)
    mean = sum(value * count for value, count in counted(one["latency"])) / one["answered"]
    assert mean == pytest.approx(3_000 + load * 3_000 * 1.01 / (2 * (1 - load)), rel=0.02)


def test_the_published_table_does_not_come_from_hedging_at_p95(raw: Raw) -> None:
    """An answer that a hedge won is later than the delay and the fastest reply: P95 + that, and not below P95."""
    one = raw(load=0.1, stall="a", delay="p95", duration=2)
    values = counted(one["latency"])
    ranks = [*accumulate(count for _, count in values)]
    p96 = next(value for (value, _), rank in zip(values, ranks, strict=True) if rank >= 0.96 * one["answered"])
    least = one["hedged_after"][0]
    assert p96 > least
    assert all(value >= least + one["fastest_ticks"] for value in one["won_latency"][::2])
