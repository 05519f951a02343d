"""The verdict on simulated runs: the bars of docs/compare.md. The whole counts are `long`."""

import random

import pytest

from tests.compare.drifts import (
    DRIFTS_MIN,
    SPREADS,
    different_percent,
    doubled_pair,
    drifting_pair,
    outcome_of,
    pair_in_turn,
    wandering,
)
from tests.compare.hosts import (
    Host,
    drifting,
    iid,
    outcome,
    share_of,
    storms,
    tick_and_rare,
    waves,
    wrong_sign,
)
from tunectl.compare.chance import fewest_runs

ALIKE = {
    "iid": (iid(), 5.0),
    "tick + rare": (tick_and_rare(), 5.0),
    "storms of 40 ms": (storms(), 10.0),
    "storms of 40 ms, short runs": (storms(), 4.0),
}
UNTELLABLE = {
    "bursts outlast a tenth": waves(0.25),
    "storms of 0.4 s": storms(each_s=0.4),
    "the rate drifts": drifting,
}
WORSE: dict[str, tuple[Host, Host]] = {
    "1.2 times as many": (iid(), iid(240)),
    "1.2 times as long": (tick_and_rare(), tick_and_rare(scale=1.2)),
    "1.2 times as long in storms": (storms(), storms(scale=1.2)),
    "twice as many storms": (storms(), storms(per_second=1.0)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ALIKE)
def test_runs_of_one_host_are_seldom_called_different(name: str) -> None:
    host, seconds = ALIKE[name]
    assert share_of("different", 12, host, seconds=seconds) <= 0.1


@pytest.mark.parametrize("name", UNTELLABLE)
def test_what_two_runs_cannot_tell_is_not_told(name: str) -> None:
    host = UNTELLABLE[name]
    assert share_of("cannot-tell", 12, host, seconds=4.0) >= 0.9


def test_half_of_the_interruptions_is_found() -> None:
    found = [outcome(seed, iid(), iid(100), 10.0) for seed in range(8)]
    assert sum(rows["interruptions_per_s"] == "lower" for _, rows in found) >= 7


def sets(seed: int, factor: float, runs: int = 5, spread: float = 0.7) -> str:
    """The outcome of two sets; each run has its own rate."""
    rng = random.Random(seed)
    before = wandering(rng, 0, spread, runs)
    return outcome_of(rng, before, [factor * at for at in wandering(rng, 0, spread, runs)])


@pytest.mark.parametrize("minutes", DRIFTS_MIN)
def test_sets_of_a_drifting_host_are_seldom_called_different(minutes: float) -> None:
    assert different_percent([drifting_pair(seed, minutes) for seed in range(40)]) <= 10


@pytest.mark.parametrize("spread", SPREADS)
def test_twice_the_rate_of_independent_runs_is_found(spread: float) -> None:
    assert different_percent([doubled_pair(seed, spread) for seed in range(20)]) >= 90


def test_measured_in_turn_a_drift_is_no_difference_and_a_difference_is_found() -> None:
    assert different_percent([pair_in_turn(seed, 60, 1.0) for seed in range(20)]) <= 6
    assert different_percent([pair_in_turn(seed, 60, 2.0) for seed in range(20)]) >= 70


@pytest.mark.slow
def test_sets_of_one_host_whose_runs_disagree() -> None:
    found = [sets(seed, 1.0) for seed in range(20)]
    assert found.count("different") <= 2
    assert found.count("no-difference") <= 2
    assert [sets(seed, 0.02) for seed in range(5)].count("different") >= 4


def test_five_runs_a_side_are_the_fewest_for_three_tests() -> None:
    assert fewest_runs(0.95, 3) == 5
    assert fewest_runs(0.99, 3) == 6


@pytest.mark.long
@pytest.mark.parametrize("name", ALIKE)
def test_runs_of_one_host_all_counts(name: str) -> None:
    host, seconds = ALIKE[name]
    assert share_of("different", 1000, host, seconds=seconds) <= 0.05


@pytest.mark.long
@pytest.mark.parametrize("name", UNTELLABLE)
def test_what_two_runs_cannot_tell_all_counts(name: str) -> None:
    assert share_of("cannot-tell", 500, UNTELLABLE[name], seconds=4.0) >= 0.95


@pytest.mark.long
def test_the_wrong_sign_is_rare() -> None:
    """2,000 pairs in all; a row that does not differ in truth counts, too."""
    assert sum(wrong_sign(500, *pair, "lower", 5.0) for pair in WORSE.values()) <= 10


@pytest.mark.long
def test_power_at_a_minute() -> None:
    assert share_of("cannot-tell", 200, iid(), seconds=60.0) <= 0.05
    assert share_of("different", 200, iid(), iid(100), seconds=60.0) >= 0.9


@pytest.mark.long
def test_sets_of_one_host_all_counts() -> None:
    assert [sets(seed, 1.0) for seed in range(1000)].count("different") <= 50


@pytest.mark.long
@pytest.mark.parametrize("minutes", DRIFTS_MIN)
def test_sets_of_a_drifting_host_all_counts(minutes: float) -> None:
    assert different_percent([drifting_pair(seed, minutes) for seed in range(1000)]) <= 6
