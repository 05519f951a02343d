"""A finding as a sentence: its name, its values, its reason."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis.strategies import floats

from tunectl.model import Finding, Match, Outcome
from tunectl.wording import by_chance, in_tenths, percent, plain, sentence, standing, written, written_as


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
    assert in_tenths(value, value, 100) not in ("100.0 %", "0.0 %")
    assert value >= 99.95 or percent(value) == f"{plain(value)} %"


def test_a_column_of_shares() -> None:
    assert [in_tenths(value, value, 100) for value in (0, 0.01, 0.05, 50, 99.9, 99.96, 100)] == [
        *("0.0 %", "<0.1 %", "0.1 %", "50.0 %", "99.9 %", ">99.9 %", "100.0 %")
    ]


def test_how_rare_a_score_is() -> None:
    assert [by_chance(score) for score in (3.5, 3, 2.5)] == [
        "beyond 3.5: 1 of 2,000 by chance",
        "beyond 3: 1 of 400 by chance",
        "beyond 2.5: 1 of 80 by chance",
    ]


@pytest.mark.parametrize(
    ("quantity", "value", "limit", "said"),
    [
        ("stolen_ppm", 137_000, 100, "137,000 ppm"),
        ("stolen_ppm", 137_000, 999_999, "13.7 %"),
        ("max_ns", 1_920_000, 50_000, "1,920 µs"),
        ("max_ns", 812, 50_000, "0.812 µs"),
        ("max_ns", 12_300_000, 5e9, "0.0123 s"),
        ("interruptions_per_s", 20, 10, "20/s"),
        ("smis_per_s", 0, 0, "0/s"),
    ],
)
def test_a_figure_has_the_unit_of_its_limit(quantity: str, value: float, limit: float, said: str) -> None:
    assert written_as(quantity, value, limit) == said
