"""A repair is asked for, not too often, and not for ever."""

from pathlib import Path

import pytest

from tests.monitor.receivers.samples import fired
from tunectl.errors import TunectlError
from tunectl.monitor.repair import MAX_TRIES, Repair

DRIFT = fired(rule="KnobDrift", subject="irq.affinity[42]")


def test_a_drifted_knob_is_asked_for_once(tmp_path: Path) -> None:
    repair = Repair(str(tmp_path))
    assert repair.consider([fired(rule="ThermalThrottle")], 0.0) == ""  # heat is not for apply to mend
    assert not Path(repair.path).exists()
    assert repair.consider([DRIFT], 1.0) == "repair: asked for apply, because of KnobDrift[irq.affinity[42]]"
    assert Path(repair.path).exists()
    Path(repair.path).unlink()
    assert repair.consider([DRIFT], 30.0) == ""
    assert not Path(repair.path).exists()


def test_what_only_a_reboot_brings_is_not_asked_for(tmp_path: Path) -> None:
    assert Repair(str(tmp_path)).consider([fired(rule="KnobDrift", subject="boot.nohz_full")], 0.0) == ""


def test_what_stays_drifted_is_asked_for_ever_less_and_then_no_more(tmp_path: Path) -> None:
    repair = Repair(str(tmp_path), pause_s=60)
    asked = {second: said for second in range(10_000) if (said := repair.consider([DRIFT], float(second)))}
    assert list(asked) == [0, 60, 180, 420]
    assert len(asked) == MAX_TRIES + 1
    assert "not asked for any more" in asked[420]


def test_once_mended_the_count_starts_anew(tmp_path: Path) -> None:
    repair = Repair(str(tmp_path))
    assert repair.consider([DRIFT], 0.0)
    assert repair.consider([], 1.0) == ""
    assert repair.consider([DRIFT], 2.0) == ""  # it flaps: the pause holds all the same
    assert repair.consider([DRIFT], 61.0).startswith("repair: asked for apply")


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(TunectlError, match="cannot write"):
        Repair(str(tmp_path / "gone")).consider([DRIFT], 0.0)


def test_what_a_repair_only_made_worse_is_told_once_and_asked_for_no_more(tmp_path: Path) -> None:
    worse: set[str] = set()
    repair = Repair(str(tmp_path), taken_back=lambda: frozenset(worse))
    repair.consider([DRIFT], 0.0)
    worse.add("irq.affinity[42]")
    told = {second: said for second in range(1, 10_000) if (said := repair.consider([DRIFT], float(second)))}
    assert list(told) == [60]
    assert "made things worse" in told[60]
