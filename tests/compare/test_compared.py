"""The comparison's document: what changed, what did not, and what else differed."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.compare.runs import cpu_of, document, simulated, steady
from tests.compare.wakes import cell, wake_document
from tunectl.compare.compared import compared
from tunectl.errors import TunectlError
from tunectl.probe.document import ProbeFile, read_document

NOISY = cpu_of(simulated(1, 10.0), 10.0)
ALIKE = cpu_of(simulated(2, 10.0), 10.0)
QUIET = cpu_of(simulated(3, 10.0, per_second=20.0, length=lambda rng: 400 + rng.random()), 10.0)


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """A document as a file that was read."""

    def write(name: str, body: Mapping[str, Any]) -> ProbeFile:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(body))
        return read_document(path)

    return write


def changes(group: Mapping[str, Any]) -> dict[str, str]:
    return {f"{row['measure']} {row['percentile'] or ''}".strip(): row["change"] for row in group["rows"]}


def test_two_runs_of_the_same_do_not_differ(read: Any) -> None:
    made = compared(read("a", document(NOISY)), read("b", document(ALIKE, at="2026-11-21T10:00:00Z")))
    assert set(changes(made["groups"][0]).values()) == {"not-significant"}
    assert made["warnings"] == []


def test_a_run_that_was_tuned_does(read: Any) -> None:
    made = compared(read("a", document(NOISY)), read("b", document(QUIET, at="2026-11-21T10:00:00Z")))
    found = changes(made["groups"][0])
    assert found["gap_ns 99"] == "not-significant"  # two gaps of the second run lie above it: too few to say
    for measure in ("gap_ns 50", "max_ns", "interruptions_per_s", "stolen_ppm", "arrival_ns 99.99"):
        assert found[measure] == "lower", measure
    back = compared(read("b", document(QUIET)), read("a", document(NOISY, at="2026-11-21T10:00:00Z")))
    assert {changes(back["groups"][0])[measure] for measure in ("gap_ns 50", "max_ns", "stolen_ppm")} == {"higher"}


def test_one_storm_is_no_difference_in_rate_though_a_poisson_count_would_say_so(read: Any) -> None:
    base = simulated(5, 10.0, per_second=50.0)
    storm = [(4_000_000_000 + i * 20_000, 2_000) for i in range(400)]
    one, other = cpu_of(base, 10.0), cpu_of([*base, *storm], 10.0)
    made = compared(read("a", document(one)), read("b", document(other, at="2026-11-21T10:00:00Z")))
    assert changes(made["groups"][0])["interruptions_per_s"] == "not-significant"
    unlisted = [{**cpu, "events": [], "events_lost": cpu["interruptions"]} for cpu in (one, other)]
    made = compared(read("a", document(unlisted[0])), read("b", document(unlisted[1], at="2026-11-21T10:00:00Z")))
    assert changes(made["groups"][0])["interruptions_per_s"] == "higher"  # and it says so:
    assert len([text for text in made["warnings"] if "bursts make them too narrow" in text]) == 2


def test_the_series_tells_of_bursts_where_the_list_was_full(read: Any) -> None:
    base = simulated(5, 20.0, per_second=50.0)
    storm = [(4_000_000_000 + i * 20_000, 2_000) for i in range(800)]

    def with_series(gaps: list[tuple[int, int]]) -> dict[str, Any]:
        parts = [[ns for at, ns in gaps if at // 1_000_000_000 == second] for second in range(20)]
        intervals = [[len(one), sum(one), max(one, default=0)] for one in parts]
        series = {"tsc_start": 1000, "interval_s": 1, "intervals": intervals}
        return cpu_of(gaps, 20.0, events=[], events_lost=len(gaps), series=series)

    sides = [document(with_series(gaps), seconds=20.0) for gaps in (base, [*base, *storm])]
    made = compared(read("a", sides[0]), read("b", {**sides[1], "at": "2026-11-21T10:00:00Z"}))
    assert changes(made["groups"][0])["interruptions_per_s"] == "not-significant"
    assert not [text for text in made["warnings"] if "too narrow" in text]


def test_only_gaps_over_the_larger_threshold_are_compared(read: Any) -> None:
    short = [(at + 500_000, 150) for at, _ in steady(1_000_000, 10_000, 10.0)]
    low = document(cpu_of([*steady(1_000_000, 10_000, 10.0), *short], 10.0))
    high = document(cpu_of(steady(1_000_000, 10_000, 10.0), 10.0), threshold_ns=200, at="2026-11-21T10:00:00Z")
    made = compared(read("a", low), read("b", high))
    assert set(changes(made["groups"][0]).values()) == {"not-significant"}
    assert made["warnings"] == ["another threshold: 100 ns before, 200 ns after; only gaps over 200 ns are compared"]
    same = compared(read("a", low), read("b", {**high, "threshold_ns": 100}))
    assert changes(same["groups"][0])["interruptions_per_s"] == "lower"


def test_cpus_are_matched_by_number_and_pooled(read: Any) -> None:
    before = document(NOISY, {**QUIET, "cpu": 3}, {**NOISY, "cpu": 4})
    after = document({**QUIET, "cpu": 3}, {**ALIKE, "cpu": 2}, at="2026-11-21T10:00:00Z")
    made = compared(read("a", before), read("b", after))
    assert [(group["name"], group["cpu"]) for group in made["groups"]] == [
        ("CPUs 2-3 together", None),
        ("CPU 2", 2),
        ("CPU 3", 3),
    ]
    assert set(changes(made["groups"][2]).values()) == {"not-significant"}
    assert "other CPUs: 2-4 before, 2-3 after; only 2-3 are compared" in made["warnings"]


def test_other_cpus_altogether(read: Any) -> None:
    after = document({**QUIET, "cpu": 7}, at="2026-11-21T10:00:00Z")
    made = compared(read("a", document(NOISY)), read("b", after))
    assert [group["name"] for group in made["groups"]] == ["CPUs 2 before, 7 after"]
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
        ({"warnings": ["a virtual machine"]}, "only after: a virtual machine"),
        ({"at": "2026-11-21T08:00:00Z"}, "`before` was measured later (2026-11-21T09:00:00Z)"),
        ({"at": "2026-11-21T09:00:00Z"}, "both are the same run: nothing differs"),
        ({"host": {**HOST, "boot_id": "c"}}, ""),  # a reboot is what tuning needs
    ],
)
def test_conditions_that_differ_are_named(read: Any, change: dict[str, Any], said: str) -> None:
    after = document(ALIKE, **{"at": "2026-11-21T10:00:00Z", **change})
    warnings = compared(read("a", document(NOISY)), read("b", after))["warnings"]
    assert [text[: len(said)] for text in warnings] == ([said] if said else [])


def test_another_length_is_named(read: Any) -> None:
    after = document(cpu_of(simulated(1, 5.0), 5.0), seconds=5.0, at="2026-11-21T10:00:00Z")
    warnings = compared(read("a", document(NOISY)), read("b", after))["warnings"]
    assert warnings == ["another length: 10 s before, 5 s after; the longer run had more chance of a rare, long gap"]


def test_the_probe_inside_a_preflight(read: Any) -> None:
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
    assert changes(made["groups"][0])["stolen_ppm"] == "lower"
    with pytest.raises(TunectlError, match=r"c\.json: probe: was not run in this preflight"):
        compared(read("a", document(NOISY)), read("c", {**outer, "probe": None}))


def test_wake_cells_are_matched(read: Any) -> None:
    before = wake_document(cell("futex", "sleeping", 10), cell("tcp", "sleeping", 10), cell("udp", "sleeping", 1))
    after = copy.deepcopy(before)
    after["cells"] = [cell("futex", "sleeping", 10, scale=0.2), cell("tcp", "sleeping", 10), cell("udp", "spinning", 1)]
    made = compared(read("a", before), read("b", {**after, "at": "2026-11-21T10:00:00Z"}))
    assert [group["name"] for group in made["groups"]] == [
        "futex, sleeping (block), after 10 ms",
        "tcp, sleeping (block), after 10 ms",
    ]
    assert changes(made["groups"][0])["wake_ns 50"] == "lower"
    assert changes(made["groups"][1])["wake_ns 50"] == "not-significant"
    assert changes(made["groups"][0])["max_ns"] == "not-comparable"
    assert [text for text in made["warnings"] if text.startswith("only ")] == [
        "only before: udp, sleeping (block), after 1 ms",
        "only after: udp, spinning (block), after 1 ms",
    ]


def test_ways_of_one_kind_of_waiting_are_not_mixed_up(read: Any) -> None:
    """`sleeping` may be a blocking call or epoll: each is held against its own twin."""
    before = wake_document(cell("tcp", "sleeping", 1), cell("tcp", "sleeping", 1, scale=3, way="epoll"))
    after = {**before, "cells": before["cells"][::-1], "at": "2026-11-21T10:00:00Z"}
    made = compared(read("a", before), read("b", after))
    assert [group["name"] for group in made["groups"]] == [
        "tcp, sleeping (block), after 1 ms",
        "tcp, sleeping (epoll), after 1 ms",
    ]
    assert {changes(group)["wake_ns 50"] for group in made["groups"]} == {"not-significant"}


def test_a_cell_that_could_not_be_measured(read: Any) -> None:
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
    assert set(changes(group).values()) == {"not-comparable"}


def test_what_cannot_be_compared(read: Any) -> None:
    jitter, wake = read("a", document(NOISY)), read("b", wake_document(cell("tcp", "sleeping", 1)))
    with pytest.raises(TunectlError, match=r"a\.json is of `probe jitter`, .*b\.json is of `probe wake`"):
        compared(jitter, wake)
    with pytest.raises(TunectlError, match="no wait method in common"):
        compared(wake, read("c", wake_document(cell("udp", "sleeping", 1))))
