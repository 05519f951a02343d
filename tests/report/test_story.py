"""The pages about the gap that ended a run (--until), and about stops of all CPUs: text and HTML say the same."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from tests.report.documents import body, document
from tests.report.pages import EVIL, JITTER, file, page
from tunectl.cpulist import named_cpus
from tunectl.report.text import render

GAP: dict[str, Any] = {
    "cpu": 3,
    "tsc_start": 1_000,
    "tsc_end": 56_000,
    "at_ns": 1_200_000_000,
    "length_ns": 55_000,
    "cause": f"thread {EVIL}",
    "before": [[-2_000, "local timer"]],
    "events": [[1_500, f"thread {EVIL} has the CPU"], [54_000, "the probe has the CPU again"]],
    "events_left_out": 0,
    "others": [{"cpu": 2, "gaps": [[-500, 3_000, "irq 9 x"]]}, {"cpu": 4, "gaps": []}],
    "unseen": ["what is not seen"],
}
UNTIL = {"ended_by": "until", "until": {"least_ns": 50_000, "gap": GAP}}
STOPS = {
    "count": 12,
    "total_ns": 1_200_000,
    "max_ns": 110_000,
    "least_ns": 50_000,
    "by_chance": 0.01,
    "explanation": "an SMI or the hardware",
    "reason": "",
}
SAID = (
    "a gap of 50 µs or longer ended the run (--until): CPU 3 was away for 55 µs, 1.2 s after the start",
    "-2µs local timer 0 CPU 3 goes away +1.5µs thread",
    "+54µs the probe has the CPU again +55µs CPU 3 is back",
    "CPU 2 was away, too: from -500ns for 3 µs (irq 9 x)",
    "not away at that time: CPU 4",
    "what is not seen",
)


def text(**changed: Any) -> str:
    return " ".join(render(document("probe.jitter", **changed), width=100).split())


def html(**changed: Any) -> str:
    """The words of the page, with a blank between two cells."""
    return " ".join(unescape(re.sub("<[^>]+>", " ", page(file("probe.jitter", {**JITTER, **changed})).raw)).split())


def test_both_pages_tell_the_story_in_order() -> None:
    for said in (text(**UNTIL), html(**UNTIL)):
        assert [one for one in SAID if one not in said] == []
    raw = page(file("probe.jitter", {**JITTER, **UNTIL})).raw
    assert EVIL not in raw


def test_a_run_without_such_a_gap_says_so_and_one_that_did_not_wait_says_nothing() -> None:
    none = {"until": {"least_ns": 50_000, "gap": None}}
    for said in (text(**none), html(**none)):
        assert "no gap of 50 µs or longer (--until): the run ended after its time" in said
    assert "--until" not in text() + html()


def test_each_run_has_its_story() -> None:
    runs = [{**body("probe.jitter"), "at": "2026-11-21T09:30:00Z", **extra} for extra in ({}, UNTIL)]
    told = text_of_runs(runs)
    assert told.count("a gap of 50 µs or longer ended the run") == 1
    assert "for 2 to 10 s:" in text_of_runs(
        [{**run, "duration_s": length} for run, length in zip(runs, (10, 2), strict=True)]
    )
    made = " ".join(
        page(
            file("probe.jitter.runs", {**body("probe.jitter.runs"), "runs": [JITTER, {**JITTER, **UNTIL}]})
        ).words.split()
    )
    assert "Run 2: the gap that was waited for" in made
    assert "Run 1: the gap" not in made


def text_of_runs(runs: list[dict[str, Any]]) -> str:
    return " ".join(render(document("probe.jitter.runs", runs=runs), width=100).split())


def test_where_periods_were_looked_for_is_said_where_that_was_not_everywhere() -> None:
    assert "were looked for" not in text() + html()
    first, second, *rest = JITTER["cpus"]
    first, second = first | {"periods_searched_ns": 820_000_000}, second | {"periods_searched_ns": 4_000_000_000}
    why = "of the listed gaps at most 4,096 of a kind are searched"
    one = {"cpus": [first, JITTER["cpus"][1], *rest]}
    for said in (text(**one), html(**one)):
        assert f"periods were looked for in the first 820 ms of CPU {first['cpu']} alone: {why}" in said
    both = {"cpus": [first, second, *rest]}
    for said in (text(**both), html(**both)):
        assert f"the first 820 ms to 4 s of {named_cpus([first['cpu'], second['cpu']])} alone: {why}" in said


def test_simultaneous_stops_are_said_beside_the_smis_and_only_where_there_are_any() -> None:
    sentence = "12 times all probed CPUs stood still together, and the kernel had no part in it: 1.2 ms in all, 110 µs"
    for said in (text(simultaneous_stops=STOPS), html(simultaneous_stops=STOPS)):
        assert sentence in said
        assert "What can do so: an SMI or the hardware" in said
    for quiet in (STOPS | {"count": 0}, STOPS | {"count": None, "reason": "why"}):
        assert "stood still" not in text(simultaneous_stops=quiet) + html(simultaneous_stops=quiet)


def test_a_comparison_with_runs_that_are_not_there_is_not_drawn() -> None:
    """Somebody took them out of the file."""
    made = body("probe.jitter.loaded")
    assert made["comparison"]
    assert "nothing was measured under load" in page(file("probe.jitter.loaded", {**made, "loaded": []})).words
