"""A finding as a sentence: its name, its values, its reason."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis.strategies import floats

from tunectl.model import Finding, Match, Outcome
from tunectl.shapes import LIMITS, Looser
from tunectl.wording import (
    beside_limit,
    by_chance,
    looser_limits,
    nanoseconds,
    percent,
    plain,
    seconds_of,
    sentence,
    standing,
    times,
    written,
)


def test_a_sentence_has_the_name_the_values_and_the_reason() -> None:
    assert sentence("mm.swappiness", "is 5", "because") == "mm.swappiness is 5: because"
    assert sentence("journal", "", "cannot be read") == "journal: cannot be read"
    assert sentence("mm.swap", "is on", "") == "mm.swap is on"


DRIFTED, DARK = Outcome.DRIFTED, Outcome.UNREADABLE


@pytest.mark.parametrize(
    ("knob", "outcome", "observed", "desired", "match", "stands"),
    [
        ("mm.swappiness", DRIFTED, 9, 2, Match.AT_MOST, "is 9, should be at most 2"),
        ("thermal.clock", DRIFTED, 9, 12, Match.AT_LEAST, "is 9, should be at least 12"),
        ("mm.ksm", DRIFTED, "running", "stopped", Match.EQUAL, "is running, should be stopped"),
        ("mm.ksm", DRIFTED, None, "", Match.EQUAL, "is not set, should be empty"),
        ("cpufreq.boost", DRIFTED, False, True, Match.EQUAL, "is off, should be on"),
        ("mm.ksm", DRIFTED, None, None, Match.EQUAL, ""),
        ("boot.tsc", DRIFTED, "reliable", None, Match.EQUAL, "is reliable, should not be there"),
        ("boot.tsc", DRIFTED, None, "reliable", Match.EQUAL, "is not set, should be reliable"),
        ("check.ipis", DRIFTED, "many", None, Match.EQUAL, "is many"),
        ("thermal.clock", DARK, 3594650, None, Match.EQUAL, "is 3594650"),
        ("mm.ksm", DARK, None, "stopped", Match.EQUAL, "could not be read, should be stopped"),
        ("check.tick_off", DARK, None, None, Match.EQUAL, "could not be read"),
        ("mm.ksm", Outcome.UNSUPPORTED, 1, 2, Match.EQUAL, ""),
    ],
)
def test_how_its_values_stand(
    knob: str, outcome: Outcome, observed: Any, desired: Any, match: Match, stands: str
) -> None:
    assert standing(Finding(knob, "", outcome, observed, desired, match=match)) == stands


@pytest.mark.parametrize(
    ("value", "said"),
    [
        *((None, "- %"), (0, "0 %"), (0.000_012, "1.20e-05 %"), (5, "5 %"), (12.34, "12.3 %"), (99.9, "99.9 %")),
        *((99.95, "99.95 %"), (99.96, "99.96 %"), (99.99, "99.99 %"), (100 * 0.9999, "99.99 %")),
        *((99.995, "99.995 %"), (99.9999, "99.9999 %"), (100, "100 %"), (100.04, "100 %"), (250, "250 %")),
    ],
)
def test_a_share_is_all_or_nothing_only_where_it_is(value: float | None, said: str) -> None:
    assert percent(value) == said


@given(floats(0, 100, exclude_min=True, exclude_max=True))
def test_no_part_is_rounded_to_all_or_nothing(value: float) -> None:
    assert 0 < float(percent(value).removesuffix(" %")) < 100
    assert written("stolen_ppm", value * 1e4) not in ("100 %", "0 %", "0 ppm")
    assert value >= 99.95 or percent(value) == f"{plain(value)} %"


def test_how_rare_a_score_is() -> None:
    assert [by_chance(score) for score in (3.5, 3, 2.5)] == [
        "beyond 3.5: 1 of 2,000 by chance",
        "beyond 3: 1 of 400 by chance",
        "beyond 2.5: 1 of 80 by chance",
    ]


@pytest.mark.parametrize(
    ("quantity", "value", "limit", "stands", "allowed"),
    [
        ("stolen_ppm", 794_851, 100, "79.5 %", "100 ppm"),
        ("stolen_ppm", 1_824, 100, "1,824 ppm", "100 ppm"),
        ("stolen_ppm", 137_000, 999_999, "13.7 %", "99.9999 %"),
        ("max_ns", 516_071_725, 50_000, "516 ms", "50 µs"),
        ("max_ns", 50_001, 50_000, "50.001 µs", "50 µs"),
        ("max_ns", 50_000, 50_000, "50 µs", "50 µs"),
        ("interruptions_per_s", 1_000.4, 1_000, "1,000.4/s", "1,000/s"),
        ("smis_per_s", 0, 0, "0/s", "0/s"),
    ],
)
def test_a_figure_and_its_limit_have_each_their_own_unit(
    quantity: str, value: float, limit: float, stands: str, allowed: str
) -> None:
    assert beside_limit(quantity, value, limit) == (stands, allowed)


@given(floats(1, 1e13), floats(1, 1e13))
def test_what_differs_from_its_limit_is_not_written_like_it(value: float, limit: float) -> None:
    for quantity in LIMITS:
        stands, allowed = beside_limit(quantity, value, limit)
        assert stands != allowed or math.isclose(value, limit, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("ns", "said"),
    [
        *((None, "-"), (0, "0 ns"), (812, "812 ns"), (12_345, "12.3 µs"), (-12_345, "-12.3 µs"), (999_960, "1 ms")),
        *((999.4, "999 ns"), (4.56e6, "4.56 ms"), (5e9, "5 s"), (3.6e12, "3,600 s"), (math.inf, "-")),
    ],
)
def test_a_time_has_the_unit_that_suits_it(ns: float | None, said: str) -> None:
    assert nanoseconds(ns) == said
    assert not ns or seconds_of(ns / 1e9) == said


def test_no_time_at_all() -> None:
    assert (nanoseconds(0), seconds_of(0)) == ("0 ns", "0 s")


def test_looser_limits_are_told_in_the_words_and_units_of_the_bars() -> None:
    keys = {"max_ns": (5e9, 50_000), "stolen_ppm": (995_000, 100), "interruptions_per_s": (20, 10), "of_later": (2, 1)}
    looser = [Looser(key, *both, "low-latency") for key, both in keys.items()]
    assert looser_limits(looser) == (
        "judged by looser limits than profile low-latency has: longest interruption 5 s (profile 50 µs), stolen time "
        "99.5 % (profile 100 ppm), interruptions 20/s (profile 10/s), of_later 2 (profile 1)"
    )


@pytest.mark.parametrize(("ratio", "said"), [(22.22, "22.2 times"), (1_234.5, "1,234 times"), (0.045, "0.045 times")])
def test_a_multiple(ratio: float, said: str) -> None:
    assert times(ratio) == said
