"""The verdict on simulated runs: the bars and the measured figures of docs/compare.md. The whole counts are `long`."""

from __future__ import annotations

import random

import pytest

from tests.compare.hosts import (
    Host,
    drifting,
    iid,
    outcome,
    per_run,
    share_of,
    storms,
    tick_and_rare,
    waves,
    wrong_sign,
)
from tests.compare.runs import sample_of
from tunectl.compare.chance import fewest_runs
from tunectl.compare.judged import judge_sets
from tunectl.compare.tables import set_rows

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
    sides = [
        [sample_of(iid(scale * per_run(rng, spread))(rng, 1.0), 1.0) for _ in range(runs)] for scale in (1.0, factor)
    ]
    _, ratios, values = set_rows(sides[0], sides[1], 0.95)
    return str(judge_sets(values, ratios, 0.95).outcome)


@pytest.mark.slow
def test_sets_of_one_host_whose_runs_disagree() -> None:
    found = [sets(seed, 1.0) for seed in range(20)]
    assert found.count("different") <= 2
    assert found.count("no-difference") <= 2
    assert [sets(seed, 0.05) for seed in range(5)].count("different") >= 4


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
