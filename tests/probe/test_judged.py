"""The self-test's judge: known interruptions against recorded gaps, as values."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.probe.samples import raw_cpu, raw_run
from tests.schemas import fits
from tunectl.errors import TunectlError
from tunectl.probe.raw import Cpu
from tunectl.probe.selftest import Gap, Phase, Recall, judged, recall

GAPS: list[Gap] = [(100, 130), (200, 260), (300, 310), (400, 500)]


def against(*truths: Gap, room: int = len(GAPS)) -> Recall:
    """These truths against the gaps, of which the list had room for the first."""
    found = recall(truths, GAPS[:room], len(GAPS) - room)
    assert found.found + found.beyond + found.missed == len(truths)
    return found


def test_all_are_found() -> None:
    found = against((105, 125), (210, 220), (230, 240), (400, 500))
    assert (found.found, found.gaps, found.shortest, found.shortfall) == (4, 3, 30, 0)
    assert found.errors == [0, 10, 50, 50]


def test_missed_ones_are_told() -> None:
    """Between two gaps, before the first and after the last: a probe that sees nothing there has missed it."""
    found = against((10, 20), (140, 150), (205, 206), (600, 700))
    assert (found.found, found.missed, found.beyond) == (1, 3, 0)
    assert (against().found, against().missed, against().errors) == (0, 0, [])


def test_a_gap_that_is_too_short_is_told() -> None:
    found = against((90, 125), (290, 320))
    assert (found.found, found.shortfall, found.errors) == (2, 20, [-20, -5])


def test_beyond_the_list_is_no_miss() -> None:
    """Only where gaps were counted as lost, and never before the list's end."""
    truths: list[Gap] = [(140, 150), (205, 206), (305, 306), (405, 406)]
    found = against(*truths, room=2)
    assert (found.found, found.missed, found.beyond) == (1, 1, 2)
    found = against(*truths, room=0)
    assert (found.found, found.missed, found.beyond) == (0, 0, 4)
    assert (against((600, 601)).missed, against((600, 601)).beyond) == (1, 0)


def test_the_largest_overlap_counts() -> None:
    found = against((120, 280))
    assert (found.found, found.gaps, found.shortest, found.shortfall) == (1, 1, 60, 100)


def phase(kind: str = "preemption", **changes: Any) -> dict[str, Any]:
    """Three interruptions of 20 us, all found, a tick being a nanosecond."""
    gaps = [[at, at + 20_500] for at in (1_000_000, 2_000_000, 3_000_000)]
    values: dict[str, Any] = {
        "name": kind,
        "kind": kind,
        "asked_ns": 20_000,
        "injected": 3,
        "truths": [[start + 200, end - 200] for start, end in gaps],
        "tsc_start": 0,
        "tsc_end": 10_000_000,
        "turns": 1_000_003,
        "quiet_turns": 1_000_000,
        "quiet_ticks": 10_000_000 - 3 * 20_500,
        "steps_back": 0,
        "turns_merged": 0,
        "gaps_total": 3,
        "gaps_lost": 0,
        "stolen_ticks": 3 * 20_500,
        "max_ticks": 20_500,
        "gaps": gaps,
        "clock_readings": [[0, 0], [10_000_000, 10_000_000]],
    }
    return values | changes


def stop(**changes: Any) -> dict[str, Any]:
    """A process that was stopped for 2.5 s of 3.1."""
    values = phase(
        "stop",
        truths=[],
        gaps=[[300_000_000, 2_800_000_000]],
        gaps_total=1,
        tsc_end=3_100_000_000,
        max_ticks=2_500_000_000,
        stopped_ticks=[2_499_900_000, 2_500_100_000],
    )
    return values | changes


def typed_phase(values: dict[str, Any]) -> Phase:
    """With what a CPU recorded of it; without, where it did not run."""
    gaps = [[start, end, 0] for start, end in values["gaps"]]
    renamed = {"interruptions": values["gaps_total"], "events_lost": values["gaps_lost"], "events": gaps}
    recorded = None if values.get("error") else msgspec.convert(raw_cpu(**values | renamed), Cpu)
    return replace(msgspec.convert(values, Phase), recorded=recorded)


def outcome(one: dict[str, Any], **clock: Any) -> tuple[str, str]:
    raw = raw_run()
    document = judged({**raw, "clock": raw["clock"] | clock}, 3, [typed_phase(one)])
    fits("probe.selftest", document)
    (found,) = document["phases"]
    assert document["passed"] is (found["outcome"] == "passed")
    return found["outcome"], found["reason"]


WRONG: dict[str, dict[str, Any]] = {
    "account differs": phase(gaps_total=4),
    "account differs from the loop's": phase(stolen_ticks=3 * 20_500 + 1),
    "the recorder's account": phase(turns=1_000_004),
    "1 of 4 were not found": phase(truths=[*phase()["truths"], [5_000_000, 5_020_000]]),
    "a gap was 51 ns shorter": phase(truths=[[999_949, 1_020_000], *phase()["truths"][1:]]),
    "list of gaps was full": phase(
        truths=[*phase()["truths"], [5_000_000, 5_020_000]], gaps_lost=1, gaps_total=4, turns=1_000_004
    ),
    "list of gaps was never full": phase("loss"),
    "longest gap is 1 ms off": stop(max_ticks=2_501_101_000),
    "a percentile is 1 ms off": stop(gaps=[[300_000_000, 2_798_899_000]]),
}
RIGHT: dict[str, dict[str, Any]] = {
    "exact": phase(),
    "merged turns": phase(turns=1_000_005, turns_merged=2),
    "50 ns": phase(truths=[[999_950, 1_020_000], *phase()["truths"][1:]]),
    "an interrupt's bracket": phase("ipi", truths=[[999_000, 1_020_000], *phase()["truths"][1:]]),
    "lost and counted": phase(
        "loss", truths=[*phase()["truths"], [5_000_000, 5_020_000]], gaps_lost=1, gaps_total=4, turns=1_000_004
    ),
    "stop": stop(max_ticks=2_501_100_000),
    "stop, waited": stop(max_ticks=2_502_000_000, gaps=[[300_000_000, 2_802_000_000]], waited_ns=1_000_000),
}


@pytest.mark.parametrize("reason", WRONG)
def test_what_is_wrong_is_the_reason(reason: str) -> None:
    found = outcome(WRONG[reason])
    assert found[0] == "failed"
    assert reason in found[1]


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_passes(name: str) -> None:
    assert outcome(RIGHT[name]) == ("passed", "")


def test_the_length_is_held_against_a_clock_that_can_disagree() -> None:
    late = phase(clock_readings=[[0, 0], [10_000_000, 10_010_100]])
    assert outcome(late) == ("passed", "")
    assert outcome(late, kernel_source="hpet") == ("failed", "loops and gaps miss the run's length by -1,009 ppm")


def test_what_did_not_run_is_no_pass() -> None:
    assert outcome(phase(error="why")) == ("not-run", "why")


@pytest.mark.parametrize(
    ("kinds", "vouched"),
    [(("stop", "ipi", "preemption"), 20_500), (("preemption",), 20_000), (("stop", "loss"), None)],
)
def test_what_is_vouched_for(kinds: tuple[str, ...], vouched: int | None) -> None:
    phases = [stop() if kind == "stop" else phase(kind) for kind in kinds]
    assert judged(raw_run(), 3, [typed_phase(values) for values in phases])["vouched_ns"] == vouched


def test_another_document_is_refused() -> None:
    with pytest.raises(TunectlError, match="clock"):
        judged(raw_run() | {"clock": None}, 3, [])


def test_what_the_list_had_no_room_for_is_lost_though_a_longer_gap_behind_it_is_listed() -> None:
    found = recall([(210, 220), (305, 309), (410, 420)], [*GAPS[:2], GAPS[3]], 1, 300)
    assert (found.found, found.beyond, found.missed) == (2, 1, 0)
