"""The documents that a host keeps: whole, none lost by a kill or a full disk; missed runs are said."""

import errno
import os
import shutil
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from tests.tuning.calls import count_calls, failing_at, killed_at, needs_space
from tunectl.errors import TunectlError
from tunectl.preflight.keeping import MOST, keep, kept, missed, open_place, to_remove

MONDAY = datetime(2026, 11, 30, 7, 47, 12, tzinfo=UTC)
LONDON = "Mon..Fri 07:45 Europe/London"
needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")


def filled(place: str, *days: int) -> None:
    for day in days:
        keep(place, MONDAY + timedelta(days=day), b"%d" % day, 3, waits=False)


def test_the_last_ones_are_kept(tmp_path: Path) -> None:
    place = open_place(str(tmp_path / "state"))
    filled(place, 0, 1, 2, 3)
    assert [Path(place, name).read_bytes() for name in kept(place)] == [b"1", b"2", b"3"]
    assert kept(place)[0] == "20261201T074712Z.json"


def test_what_waits_stays_until_it_was_taken_or_there_are_a_thousand() -> None:
    waiting = [f"{number:04}.waiting.json" for number in range(MOST + 2)]
    assert to_remove(waiting[:50], 3) == []
    assert to_remove(["0.json", "1.refused.json", "2.json", "3.json"], 2) == ["0.json"]
    assert to_remove(waiting, 3) == waiting[:2]


def test_no_kill_leaves_half_a_document_or_takes_another(tmp_path: Path) -> None:
    count = 1
    while True:
        place = open_place(str(tmp_path / str(count)))
        filled(place, 0, 1, 2)
        if not killed_at(count, partial(filled, place, 3)):
            break
        assert {"20261201T074712Z.json", "20261202T074712Z.json"} <= set(kept(place))
        assert all(Path(place, name).read_bytes() for name in kept(place))
        filled(place, 4)
        left = {Path(place, name).read_bytes() for name in os.listdir(place)}
        assert left in ({b"1", b"2", b"4"}, {b"2", b"3", b"4"}), "and what the kill left is gone"
        count += 1
    assert count > 6


def test_a_full_disk_is_said_and_takes_no_document(tmp_path: Path) -> None:
    def work(place: str) -> str:
        try:
            filled(place, 3)
        except TunectlError as error:
            return error.message
        return ""

    base = open_place(str(tmp_path / "counted"))
    for place_ in range(1, count_calls(needs_space, partial(filled, base, 3)) + 1):
        place = open_place(str(tmp_path / str(place_)))
        filled(place, 0, 1, 2)
        said = failing_at(place_, needs_space, errno.ENOSPC, partial(work, place))
        assert said == f"cannot keep the document in {place}: No space left on device"
        assert len(kept(place)) >= 3
        assert set(os.listdir(place)) == set(kept(place))


@needs_systemd
def test_missed_runs_are_said_and_a_late_one_is(tmp_path: Path) -> None:
    place = open_place(str(tmp_path))
    assert missed(place, LONDON, MONDAY) == []
    filled(place, 0)
    assert missed(place, LONDON, MONDAY + timedelta(days=1)) == []
    assert missed(place, "", MONDAY + timedelta(days=9)) == []
    assert missed(place, LONDON, MONDAY + timedelta(days=3, hours=2)) == [
        "missed runs of the timer: 2, the last on 2026-12-02 07:45 UTC",
        "this run was due on 2026-12-03 07:45 UTC, and is made up for now",
    ]
    # a weekend is not missed; what summer time moves is London's affair
    assert missed(place, LONDON, MONDAY + timedelta(days=5)) != []
    filled(place, 4)
    assert missed(place, LONDON, MONDAY + timedelta(days=6)) == []
    (said,) = missed(place, "hourly", MONDAY + timedelta(days=99, minutes=14))
    assert said.startswith("missed runs of the timer: 49 or more")
    Path(place, "zzz.json").mkdir()  # nor is what is no document of ours
    filled(place, 400)  # the clock was wrong
    (said,) = missed(place, "hourly", MONDAY + timedelta(days=99, minutes=14))
    assert said.startswith("missed runs of the timer: 49 or more")
    (said,) = missed(place, "no time", MONDAY)
    assert said.startswith("whether runs of the timer were missed is not known: ")
