"""The monitor's own disturbance: what comes during a snapshot, less what comes at any time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.monitor.watched import Watched, of, watch
from tunectl.monitor.model import Freshness, Snapshot
from tunectl.monitor.sources import SOURCES, take_snapshot
from tunectl.monitor.watched_host import Source


@pytest.fixture
def lab4(tmp_path: Path) -> Watched:
    return watch(tmp_path, "lab4", {2, 3})


def look_while(host: Watched, *rises: tuple[str, int, int], between_s: float = 10, look_s: float = 0.005) -> Snapshot:
    """A snapshot during which these rows rise: row, CPU, by how much."""

    def disturb(_: object) -> tuple[()]:
        for row, cpu, more in rises:
            host.count(row, cpu, more)
        host.clock += look_s
        return ()

    host.clock += between_s
    midst = Source("midst", (), "", "", disturb)
    return take_snapshot(host.watched_host, (*SOURCES[:-1], midst, SOURCES[-1]))


def test_a_quiet_look_disturbs_nobody(lab4: Watched) -> None:
    lab4.look()
    found = of(lab4.look(10), "own_interruptions")
    assert {name: (one.value, one.freshness) for name, one in found.items()} == {
        "cpu2": (0, Freshness.FRESH),
        "cpu3": (0, Freshness.FRESH),
    }


def test_what_comes_only_during_a_look_is_its_own(lab4: Watched) -> None:
    lab4.look()
    found = of(look_while(lab4, ("CAL", 2, 1), ("RES", 2, 1)), "own_interruptions")
    assert (found["cpu2"].value, found["cpu3"].value) == (2, 0)
    assert "CAL +1, RES +1" in found["cpu2"].reason


def test_what_comes_all_the_time_is_not(lab4: Watched) -> None:
    lab4.look()
    lab4.count("LOC", 3, 10_000_000)
    found = of(look_while(lab4, ("LOC", 3, 1)), "own_interruptions")["cpu3"]
    assert found.value == 0
    assert "LOC +1" in found.reason


def test_a_starved_monitor_that_looks_all_the_time_is_not_why_interruptions_come(lab4: Watched) -> None:
    lab4.look()
    found = of(look_while(lab4, ("LOC", 2, 8), between_s=0.1, look_s=0.9), "own_interruptions")["cpu2"]
    assert found.value == 0
    assert "LOC +8 in the 900.0 ms of this snapshot; 7.2 come by chance" in found.reason


def test_the_same_in_a_short_look_is_its_own(lab4: Watched) -> None:
    lab4.look()
    found = of(look_while(lab4, ("LOC", 2, 8), between_s=0.9, look_s=0.1), "own_interruptions")["cpu2"]
    assert found.value == 8


def test_the_first_look_cannot_tell_and_lays_nothing_at_its_own_door(lab4: Watched) -> None:
    assert of(look_while(lab4, ("CAL", 2, 1)), "own_interruptions")["cpu2"].value == 0


def test_looks_between_audits_are_stale(lab4: Watched) -> None:
    lab4.look()
    lab4.watched_host.table.cost_s = 1.0
    lab4.watched_host.keep("audit", dict).next_at = lab4.clock + 100  # type: ignore[attr-defined]
    assert {one.freshness for one in of(lab4.look(), "own_interruptions").values()} == {Freshness.STALE}
