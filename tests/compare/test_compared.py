"""The comparison's document: what changed, what did not, and what else differed."""

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from tests.compare.reading import Read, compared
from tests.compare.runs import cpu_of, document, simulated, steady
from tests.compare.wakes import cell, wake_document
from tunectl.compare.estimate import sample
from tunectl.errors import TunectlError
from tunectl.shapes import Jitter, typed

NOISY = cpu_of(simulated(1, 10.0), 10.0)
GAPS_ALIKE = simulated(2, 10.0)
ALIKE = cpu_of(GAPS_ALIKE, 10.0)
QUIET = cpu_of(simulated(3, 10.0, per_second=20.0, length=lambda rng: 400 + rng.random()), 10.0)


def verdict(made: Mapping[str, Any]) -> dict[str, str]:
    """What the rows that decide came to."""
    return {row["measure"]: row["change"] for row in made["judged"]["rows"]}


def off(group: Mapping[str, Any], measure: str) -> bool:
    """Do the bounds of any ratio of that measure exclude 1?"""
    ratios = [row["ratio"] for row in group["rows"] if row["measure"] == measure and row["ratio"]]
    known = [one for one in ratios if one["low"] is not None]
    return any(one["low"] > 1 or (one["high"] is not None and one["high"] < 1) for one in known)


def test_two_runs_of_the_same_do_not_differ(read: Read) -> None:
    made = compared(read("a", document(NOISY)), read("b", document(ALIKE, at="2026-11-21T10:00:00Z")))
    assert made["judged"]["outcome"] == "no-difference"
    assert set(verdict(made).values()) == {"none"}
    assert not any(off(made["groups"][0], measure) for measure in ("arrival_ns", "gap_ns", "interruptions_per_s"))
    assert made["warnings"] == []


def test_a_run_that_was_tuned_does(read: Read) -> None:
    made = compared(read("a", document(NOISY)), read("b", document(QUIET, at="2026-11-21T10:00:00Z")))
    assert (made["judged"]["outcome"], made["judged"]["of"]) == ("different", "runs")
    assert verdict(made) == {"arrival_ns": "none", "interruptions_per_s": "lower", "stolen_ppm": "lower"}
    assert all(off(made["groups"][0], measure) for measure in ("gap_ns", "arrival_ns", "stolen_ppm"))
    back = compared(read("b", document(QUIET)), read("a", document(NOISY, at="2026-11-21T10:00:00Z")))
    assert verdict(back) == {"arrival_ns": "none", "interruptions_per_s": "higher", "stolen_ppm": "higher"}


def test_only_the_rows_of_all_cpus_together_have_a_verdict(read: Read) -> None:
    sides = document(NOISY, {**QUIET, "cpu": 3}), document(ALIKE, {**QUIET, "cpu": 3}, at="2026-11-21T10:00:00Z")
    made = compared(read("a", sides[0]), read("b", sides[1]))
    assert [(row["measure"], row["percentile"]) for row in made["judged"]["rows"]] == [
        ("arrival_ns", "99.9"),
        ("interruptions_per_s", None),
        ("stolen_ppm", None),
    ]
    assert not [row for group in made["groups"] for row in group["rows"] if "change" in row]


def test_one_storm_is_no_difference_though_a_poisson_count_would_say_so(read: Read) -> None:
    base = simulated(5, 10.0, per_second=50.0)
    storm = [(4_000_000_000 + i * 20_000, 2_000) for i in range(400)]
    one, other = cpu_of(base, 10.0), cpu_of([*base, *storm], 10.0)
    made = compared(read("a", document(one)), read("b", document(other, at="2026-11-21T10:00:00Z")))
    assert made["judged"]["outcome"] == "cannot-tell"
    assert made["judged"]["reason"].startswith("too few independent interruptions")
    assert made["judged"]["would_help"].startswith("make the runs ")
    unlisted = [{**cpu, "events": [], "events_lost": cpu["interruptions"]} for cpu in (one, other)]
    made = compared(read("a", document(unlisted[0])), read("b", document(unlisted[1], at="2026-11-21T10:00:00Z")))
    assert off(made["groups"][0], "interruptions_per_s")  # and it says so:
    assert len([text for text in made["warnings"] if "bursts make them too narrow" in text]) == 2
    assert made["judged"]["outcome"] == "cannot-tell"
    assert made["judged"]["reason"].startswith("neither a list of all gaps nor a series")


def with_series(gaps: list[tuple[int, int]], seconds: int) -> dict[str, Any]:
    """A run whose list of gaps had no room."""
    parts = [[ns for at, ns in gaps if at // 1_000_000_000 == second] for second in range(seconds)]
    intervals = [[len(one), sum(one), max(one, default=0)] for one in parts]
    series = {"tsc_start": 1000, "interval_s": 1, "intervals": intervals}
    return cpu_of(gaps, seconds, events=[], events_lost=len(gaps), series=series)


def test_the_series_tells_where_the_list_was_full(read: Read) -> None:
    base = simulated(5, 45.0, per_second=20.0)
    storm = [(4_000_000_000 + i * 20_000, 2_000) for i in range(800)]
    sides = [document(with_series(gaps, 45), seconds=45.0) for gaps in (base, [*base, *storm], base[::3])]
    made = compared(read("a", sides[0]), read("b", {**sides[1], "at": "2026-11-21T10:00:00Z"}))
    assert not off(made["groups"][0], "interruptions_per_s")
    assert not [text for text in made["warnings"] if "too narrow" in text]
    assert made["judged"]["outcome"] == "cannot-tell"
    fewer = compared(read("a", sides[0]), read("b", {**sides[2], "at": "2026-11-21T10:00:00Z"}))
    assert verdict(fewer) == {"arrival_ns": "none", "interruptions_per_s": "lower", "stolen_ppm": "lower"}
    other = compared(read("a", sides[0]), read("b", {**sides[2], "threshold_ns": 200, "at": "2026-11-21T10:00:00Z"}))
    assert other["judged"]["outcome"] == "cannot-tell"  # a series has gaps over its own threshold


def test_long_gaps_behind_the_time_in_which_all_are_listed_are_no_part_of_it() -> None:
    listed = [(at * 100_000_000, 2_000) for at in range(50)]
    long = [(5_010_000_000, 90_000), (9_000_000_000, 90_000)]
    changes = {"interruptions": 100, "events_lost": 48, "complete_until_ns": 5_000_000_000}
    result = typed(document(cpu_of([*listed, *long], 10.0, **changes)), Jitter)
    some = sample(result, result.cpus, 0)
    assert some.covered == 0.5
    assert [ns for part in some.parts for ns in part] == [2_000] * 50


def test_runs_of_other_lengths_have_no_verdict(read: Read) -> None:
    """Each part of the longer one holds storms that a part of the shorter one misses."""
    shorter = document(cpu_of(simulated(1, 5.0), 5.0), seconds=5.0, at="2026-11-21T10:00:00Z")
    made = compared(read("a", document(NOISY)), read("b", shorter))
    assert made["judged"]["reason"] == "the runs last 10 s and 5 s of CPU time"
    assert made["judged"]["would_help"] == "measure both for the same time"


def set_of(*runs: dict[str, Any]) -> dict[str, Any]:
    """The same runs in one file."""
    return {"schema": "tunectl.probe.jitter.runs/1", "host": HOST, "at": runs[0]["at"], "runs": [*runs]}


def noisy_set(rates: list[float], at: str) -> dict[str, Any]:
    """Runs that each have another rate, as a host has."""
    made = ((cpu_of(simulated(i, 2.0, rate), 2.0), f"{at[:-3]}{i:02}Z") for i, rate in enumerate(rates))
    return set_of(*(document(cpu, seconds=2.0, at=when) for cpu, when in made))


STATES = [500.0, 130.0, 850.0, 200.0, 620.0]


def test_of_several_runs_a_side_each_is_one_observation(read: Read) -> None:
    """Runs of one host differ by more than their bounds: that is no difference between set-ups."""
    before, after = noisy_set(STATES, "2026-11-21T09:00:00Z"), noisy_set([*STATES[::-1]], "2026-11-21T10:00:00Z")
    made = compared(read("a", before), read("b", after))
    assert (made["judged"]["of"], made["judged"]["outcome"]) == ("sets", "cannot-tell")
    assert made["judged"]["reason"].startswith("runs of one side disagree")
    assert made["judged"]["would_help"].startswith("compare more runs a side than 5")
    assert made["before"]["runs"] == 5
    tuned = compared(read("a", before), read("b", noisy_set([20, 60, 90, 35, 10], "2026-11-21T10:00:00Z")))
    assert tuned["judged"]["outcome"] == "different"
    assert verdict(tuned)["interruptions_per_s"] == "lower"
    (rate,) = [row for row in tuned["groups"][0]["rows"] if row["measure"] == "interruptions_per_s"]
    assert rate["before"]["low"] < rate["before"]["value"] < rate["before"]["high"]
    assert rate["ratio"]["high"] < 1
    each = [row for row in tuned["groups"][0]["rows"] if row["before"]["value"] and row["after"]["value"]]
    assert len(each) > 5
    for row in each:
        assert row["ratio"]["value"] == pytest.approx(row["after"]["value"] / row["before"]["value"], rel=1e-4)
        assert row["ratio"]["low"] <= row["ratio"]["value"] <= row["ratio"]["high"]


def test_below_five_runs_a_side_there_is_no_verdict(read: Read) -> None:
    four = noisy_set(STATES[:4], "2026-11-21T09:00:00Z")
    made = compared(read("a", four), read("b", noisy_set([1, 2, 3, 4, 5], "2026-11-21T10:00:00Z")))
    assert made["judged"]["outcome"] == "cannot-tell"
    assert made["judged"]["reason"] == "runs before: 4, after: 5; below 5 a side they give no verdict"
    assert "--runs 5" in made["judged"]["would_help"]


def test_runs_of_a_side_that_are_not_alike_are_named(read: Read) -> None:
    mixed = noisy_set(STATES, "2026-11-21T09:00:00Z")
    mixed["runs"][3] = {**mixed["runs"][3], "threshold_ns": 200}
    made = compared(read("a", mixed), read("b", noisy_set(STATES, "2026-11-21T10:00:00Z")))
    assert "the runs of before differ in threshold: 100 ns, 200 ns" in made["warnings"]


@pytest.mark.slow
def test_only_gaps_over_the_larger_threshold_are_compared(read: Read) -> None:
    short = [(at + 500_000, 150) for at, _ in steady(1_000_000, 10_000, 10.0)]
    low = document(cpu_of([*steady(1_000_000, 10_000, 10.0), *short], 10.0))
    high = document(cpu_of(steady(1_000_000, 10_000, 10.0), 10.0), threshold_ns=200, at="2026-11-21T10:00:00Z")
    made = compared(read("a", low), read("b", high))
    assert set(verdict(made).values()) == {"none"}
    assert made["warnings"] == ["another threshold: 100 ns before, 200 ns after; only gaps over 200 ns are compared"]
    same = compared(read("a", low), read("b", {**high, "threshold_ns": 100}))
    assert verdict(same)["interruptions_per_s"] == "lower"


def test_cpus_are_matched_by_number_and_pooled(read: Read) -> None:
    before = document(NOISY, {**QUIET, "cpu": 3}, {**NOISY, "cpu": 4})
    after = document({**QUIET, "cpu": 3}, {**ALIKE, "cpu": 2}, at="2026-11-21T10:00:00Z")
    made = compared(read("a", before), read("b", after))
    assert [(group["name"], group["cpu"]) for group in made["groups"]] == [
        ("CPUs 2-3 together", None),
        ("CPU 2", 2),
        ("CPU 3", 3),
    ]
    assert not off(made["groups"][2], "interruptions_per_s")
    assert "other CPUs: 2-4 before, 2-3 after; only 2-3 are compared" in made["warnings"]


def test_other_cpus_altogether(read: Read) -> None:
    after = document({**QUIET, "cpu": 7}, at="2026-11-21T10:00:00Z")
    made = compared(read("a", document(NOISY)), read("b", after))
    assert [group["name"] for group in made["groups"]] == ["CPU 2 before, CPU 7 after"]
    assert "other CPUs: 2 before, 7 after; none is the same" in made["warnings"]


HOST = {"hostname": "h", "kernel": "6.12", "boot_id": "b", "machine": "x86_64"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"host": {**HOST, "hostname": "i"}}, "another hostname: h before, i after"),
        ({"host": {**HOST, "kernel": "6.13"}}, "another kernel: 6.12 before, 6.13 after"),
        ({"host": {**HOST, "machine": "aarch64"}}, "another machine: x86_64 before, aarch64 after"),
        ({"tunectl_version": "0.2.0"}, "another tunectl: 0.1.0 before, 0.2.0 after"),
        ({"fifo_priority": 5}, "another scheduling priority: ordinary before, 5 after"),
        ({"clock": {"source": "cntvct_el0", "hz": 1e9}}, "another clock: tsc before, cntvct_el0 after"),
        ({"interrupted": True}, "after was interrupted before its time"),
        ({"ended_by": "until"}, "after was ended by a gap (--until)"),
        ({"ended_by": "duration"}, ""),
        ({"warnings": ["a virtual machine"]}, "only after: a virtual machine"),
        ({"at": "2026-11-21T08:00:00Z"}, "`before` was measured later (2026-11-21T09:00:00Z)"),
        ({"at": "2026-11-21T09:00:00Z"}, ""),  # of the same second, and another run
        ({"host": {**HOST, "boot_id": "c"}}, ""),  # a reboot is what tuning needs
    ],
)
def test_conditions_that_differ_are_named(read: Read, change: dict[str, Any], said: str) -> None:
    after = document(ALIKE, **{"at": "2026-11-21T10:00:00Z", **change})
    warnings = compared(read("a", document(NOISY)), read("b", after))["warnings"]
    assert [text[: len(said)] for text in warnings] == ([said] if said else [])


def test_what_would_help_runs_that_a_gap_ended_is_no_other_length(read: Read) -> None:
    short = document(ALIKE, at="2026-11-21T10:00:00Z", ended_by="until", duration_s=0.5)
    short["cpus"] = [cpu_of([gap for gap in GAPS_ALIKE if gap[0] < 4 * 10**8], 0.5)]
    made = compared(read("a", document(NOISY)), read("b", short))["judged"]
    assert (made["outcome"], made["would_help"]) == ("cannot-tell", "measure without --until")


def test_a_file_without_a_loaded_run_is_not_compared_by_its_quiet_one(read: Read) -> None:
    kept = {key: value for key, value in document(NOISY).items() if key in ("tunectl_version", "host", "at")}
    body = {"schema": "tunectl.probe.jitter.loaded/1", **kept, "pause_s": 0.0, "warnings": [], "comparison": None}
    beside = {"names": ["memory"], "cpus": "0", "program": "stress-ng", "ran": True, "reason": "", "stressors": []}
    run = document(ALIKE, load=beside)
    assert compared(read("a", document(NOISY)), read("b", {**body, "quiet": [document(NOISY)], "loaded": [run]}))
    for loaded in ([], [{**run, "load": {**beside, "ran": False, "reason": "it ended"}}]):
        with pytest.raises(TunectlError, match=r"b\.json: nothing was measured under load"):
            compared(read("a", document(NOISY)), read("b", {**body, "quiet": [document(NOISY)], "loaded": loaded}))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (["CPU 2 was busy 3 %"], ["CPU 2 was busy 4.5 %"], []),  # one warning, with its own figure on each side
        (
            ["not isolated: CPUs 2-3"],
            ["not isolated: CPUs 2-4"],
            ["only before: not isolated: CPUs 2-3", "only after: not isolated: CPUs 2-4"],
        ),
    ],
)
def test_a_warning_of_both_sides_is_not_told_as_one_sides(
    read: Read, before: list[str], after: list[str], said: list[str]
) -> None:
    later = document(ALIKE, warnings=after, at="2026-11-21T10:00:00Z")
    assert compared(read("a", document(NOISY, warnings=before)), read("b", later))["warnings"] == said


def test_a_warning_counts_whichever_run_of_a_set_gave_it(read: Read) -> None:
    runs = [document(NOISY, at=f"2026-11-21T1{hour}:00:00Z", warnings=["w"] * (hour > 0)) for hour in range(3)]
    sides = [{"schema": "tunectl.probe.jitter.runs/1", "runs": each} for each in (runs[:2], runs[2:])]
    warnings = compared(read("a", sides[0]), read("b", sides[1]))["warnings"]
    assert not [text for text in warnings if text.startswith("only")]


def at_hours(*hours: int) -> dict[str, Any]:
    """A run at each of these hours."""
    runs = [document(NOISY, at=f"2026-11-21T1{hour}:00:00Z") for hour in hours]
    return {"schema": "tunectl.probe.jitter.runs/1", "runs": runs}


BOOT = {"hostname": "h", "kernel": "6.12", "boot_id": "b", "machine": "x86_64"}


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (document(NOISY), document(NOISY), "run"),
        (document(NOISY), document(NOISY, warnings=["a word more"]), "run"),  # a copy, and then edited
        (at_hours(1, 2, 3), at_hours(1, 2, 3), "runs"),
        (at_hours(1, 2, 3), at_hours(3, 1, 2), "runs"),
        (at_hours(1, 2, 3), at_hours(3, 4, 5), r"run: runs\[2\] of the one is runs\[0\] of the other"),
        (
            document(NOISY, at="2026-11-21T12:00:00Z"),
            at_hours(1, 2),
            r"run: runs\[0\] of the one is runs\[1\] of the other",
        ),
    ],
)
def test_a_run_is_not_compared_with_itself(
    read: Read, before: dict[str, Any], after: dict[str, Any], same: str
) -> None:
    with pytest.raises(TunectlError, match=rf"nothing to compare: \S+ and \S+ hold the same {same} \("):
        compared(read("a", before), read("b", after))


@pytest.mark.parametrize(
    "after",
    [
        document(NOISY | {"tsc_start": 1_001}),  # the next run, in the same second
        document(NOISY, at="2026-11-21T10:00:00Z"),
        document(NOISY, host=BOOT | {"boot_id": "c"}),
        document(NOISY | {"cpu": 3}),  # beside it
        at_hours(2, 3),
    ],
)
def test_two_runs_are_compared_however_alike(read: Read, after: dict[str, Any]) -> None:
    assert compared(read("a", document(NOISY, host=BOOT)), read("b", after))["groups"]


def test_a_table_of_cases_is_not_compared_with_itself(read: Read) -> None:
    one = wake_document(cell("tcp", "sleeping", 1)) | {"duration_s": 2.0, "host": BOOT}
    for again in (one, one | {"warnings": ["a word more"]}):
        with pytest.raises(TunectlError, match=r"hold the same run \("):
            compared(read("a", one), read("b", again))
    cases = [cell("tcp", "sleeping", 1, 1.01)]
    for other in ({"at": "2026-11-21T10:00:00Z"}, {"host": BOOT | {"boot_id": "c"}}, {"cells": cases}):
        assert compared(read("a", one), read("b", one | other))["groups"]


def test_another_length_is_named(read: Read) -> None:
    after = document(cpu_of(simulated(1, 5.0), 5.0), seconds=5.0, at="2026-11-21T10:00:00Z")
    warnings = compared(read("a", document(NOISY)), read("b", after))["warnings"]
    assert warnings == ["another length: 10 s before, 5 s after; the longer run had more chance of a rare, long gap"]


def test_the_probe_inside_a_preflight(read: Read) -> None:
    outer = {
        "schema": "tunectl.preflight/1",
        "verdict": "go",
        "reasons": [],
        "host": HOST,
        "at": "2026-11-21T10:00:00Z",
    }
    inner = {key: value for key, value in document(QUIET).items() if key not in ("schema", "host", "at")}
    file = read("b", {**outer, "probe": inner})
    made = compared(read("a", document(NOISY)), file)
    assert made["after"]["host"]["hostname"] == "h"
    assert verdict(made)["stolen_ppm"] == "lower"
    with pytest.raises(TunectlError, match=r"c\.json: probe: was not run in this preflight"):
        compared(read("a", document(NOISY)), read("c", {**outer, "probe": None}))


def test_wake_cells_are_matched(read: Read) -> None:
    before = wake_document(cell("futex", "sleeping", 10), cell("tcp", "sleeping", 10), cell("udp", "sleeping", 1))
    after = copy.deepcopy(before)
    after["cells"] = [cell("futex", "sleeping", 10, scale=0.2), cell("tcp", "sleeping", 10), cell("udp", "spinning", 1)]
    made = compared(read("a", before), read("b", {**after, "at": "2026-11-21T10:00:00Z"}))
    assert [group["name"] for group in made["groups"]] == [
        "futex, sleeping (block), after 10 ms",
        "tcp, sleeping (block), after 10 ms",
    ]
    assert off(made["groups"][0], "wake_ns")
    assert not off(made["groups"][1], "wake_ns")
    assert not off(made["groups"][0], "max_ns")
    assert made["judged"] is None
    assert [text for text in made["warnings"] if text.startswith("only ")] == [
        "only before: udp, sleeping (block), after 1 ms",
        "only after: udp, spinning (block), after 1 ms",
    ]


def test_ways_of_one_kind_of_waiting_are_not_mixed_up(read: Read) -> None:
    """`sleeping` may be a blocking call or epoll: each is held against its own twin."""
    before = wake_document(cell("tcp", "sleeping", 1), cell("tcp", "sleeping", 1, scale=3, way="epoll"))
    after = {**before, "cells": before["cells"][::-1], "at": "2026-11-21T10:00:00Z"}
    made = compared(read("a", before), read("b", after))
    assert [group["name"] for group in made["groups"]] == [
        "tcp, sleeping (block), after 1 ms",
        "tcp, sleeping (epoll), after 1 ms",
    ]
    assert not any(off(group, "wake_ns") for group in made["groups"])


def test_a_cell_that_could_not_be_measured(read: Read) -> None:
    nothing: dict[str, Any] = {
        "n": 0,
        "histogram": [],
        "percentiles_ns": None,
        "max_ns": None,
        "min_ns": None,
        "mean_ns": None,
    }
    empty = cell("tcp", "busy-poll", 1, **nothing, reason="the kernel has none", receiver_cpu_percent=None)
    both = wake_document(cell("tcp", "sleeping", 1), empty)
    later = {**both, "at": "2026-11-21T10:00:00Z"}
    assert len(compared(read("a", both), read("b", later))["groups"]) == 1
    filled = {**later, "cells": [both["cells"][0], cell("tcp", "busy-poll", 1)]}
    (_, group) = compared(read("a", both), read("b", filled))["groups"]
    assert {row["reason"] for row in group["rows"] if row["measure"] == "wake_ns"} == {"none in one of the runs"}


def test_what_cannot_be_compared(read: Read) -> None:
    jitter, wake = read("a", document(NOISY)), read("b", wake_document(cell("tcp", "sleeping", 1)))
    with pytest.raises(TunectlError, match=r"a\.json is of `probe jitter`, .*b\.json is of `probe wake`"):
        compared(jitter, wake)
    with pytest.raises(TunectlError, match="no wait method in common"):
        compared(wake, read("c", wake_document(cell("udp", "sleeping", 1))))
