"""Documents that are handed on: none lost, none twice where that can be known, whatever the receiver does."""

import errno
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from tests.tuning.calls import count_calls, failing_at, killed_at, needs_space
from tunectl.address import DeliveryError
from tunectl.errors import UsageError
from tunectl.fleet.store import LARGEST_ANSWER
from tunectl.host.filesystem import mount_of
from tunectl.host.sysroot import Sysroot
from tunectl.hostfile.report import check_report
from tunectl.hostfile.shape import Report
from tunectl.preflight.handing import Hand, hand_on, open_receiver
from tunectl.preflight.keeping import keep, kept, open_place

MONDAY = datetime(2026, 11, 30, 7, 47, 12, tzinfo=UTC)


ONE, TWO, THREE = (b'{"schema": "tunectl.preflight/1", "number": %d}' % number for number in (1, 2, 3))


def waiting(state: Path, *documents: bytes, hours: int = 24) -> str:
    place = open_place(str(state))
    for number, document in enumerate(documents):
        keep(place, MONDAY + timedelta(hours=number * hours), document, 9, waits=True)
    return place


def to_folder(folder: Path, mount: str | None = "/", host: str = "tx-04") -> Hand:
    hand = open_receiver(Report(folder=str(folder), mount=mount), host)
    assert hand
    return hand


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def late(_: float) -> None:
    raise AssertionError("nothing waits here")


def test_each_day_is_a_folder_that_fleet_report_reads(tmp_path: Path) -> None:
    folder = tmp_path / "fleet"
    folder.mkdir()
    place = waiting(tmp_path / "state", ONE, TWO, THREE, hours=12)
    assert hand_on(place, to_folder(folder), print, pause=late) == 0
    assert everything(folder) == {
        "2026-11-30/tx-04.json": ONE,
        "2026-11-30.2/tx-04.json": TWO,
        "2026-12-01/tx-04.json": THREE,
    }
    assert [name for name in kept(place) if "waiting" in name] == []
    assert len(kept(place)) == 3, "the local copies stay"


def test_a_receiver_that_is_down_for_an_hour_gets_all_in_order(tmp_path: Path) -> None:
    place = waiting(tmp_path / "state", ONE, TWO)
    clock, got, said = [0.0], [], list[str]()

    def hand(day: str, document: bytes) -> None:
        if clock[0] < 3600:
            raise DeliveryError("collector: connection refused", after_s=90.0 if clock[0] > 1000 else None)
        got.append((day, document))

    def pause(seconds: float) -> None:
        assert len([name for name in kept(place) if "waiting" in name]) == 2
        assert seconds >= (90 if clock[0] > 1000 else 2.5)
        clock[0] += seconds

    assert hand_on(place, hand, said.append, pause=pause, chance=lambda: 0.5) == 0
    assert got == [("2026-11-30", ONE), ("2026-12-01", TWO)]
    assert said == ["collector: connection refused; waiting: 2 documents"]
    assert 3600 <= clock[0] < 4000


def test_what_is_refused_for_good_stays_and_holds_up_nothing(tmp_path: Path) -> None:
    place = waiting(tmp_path / "state", ONE, TWO)

    def hand(day: str, document: bytes) -> None:
        if document == ONE:
            raise DeliveryError("collector answers 400 Bad Request", retry=False)

    assert hand_on(place, hand, print, pause=late) == 1
    assert kept(place) == ["20261130T074712Z.refused.json", "20261201T074712Z.json"]


@pytest.mark.parametrize("kind", ["fifo", "directory", "link", "loop", "another name", "too large"])
def test_what_is_no_document_is_named_and_holds_up_nothing(tmp_path: Path, kind: str) -> None:
    place, said, got = waiting(tmp_path / "state", ONE), list[str](), list[bytes]()
    name = "a.waiting.json" if kind == "another name" else "20000101T000000Z.waiting.json"
    path = Path(place, name)
    make: dict[str, Callable[[], object]] = {
        "fifo": lambda: os.mkfifo(path),
        "directory": path.mkdir,
        "link": lambda: path.symlink_to("/etc/passwd"),
        "loop": lambda: path.symlink_to(path),
        "another name": lambda: path.write_bytes(TWO),
        "too large": lambda: path.write_bytes(bytes(LARGEST_ANSWER + 1)),
    }
    make[kind]()
    assert hand_on(place, lambda _, document: got.append(document), said.append, pause=late) == 1
    assert got == [ONE]
    assert [line.partition(": ")[0] for line in said] == [f"{name} is passed over"]
    assert os.path.lexists(path)
    keep(place, MONDAY + timedelta(days=1), TWO, 1, waits=False)
    assert kept(place)[-1] == "20261201T074712Z.json", "nor does it hold up the next one"


@pytest.mark.parametrize("data", [b"", ONE[:-1], bytes(len(ONE)), b"[]", b'{"schema": "tunectl.probe/1"}'])
def test_what_is_no_whole_document_is_named_and_not_handed_on(tmp_path: Path, data: bytes) -> None:
    """A disk that was full, or lost its power, may leave such a one under its name."""
    place, said, got = waiting(tmp_path / "state", data, TWO), list[str](), list[bytes]()
    assert hand_on(place, lambda _, document: got.append(document), said.append, pause=late) == 1
    assert got == [TWO]
    name = "20261130T074712Z"
    assert said == [
        f"{name}.waiting.json is refused, and kept: it is no whole document of a preflight ({len(data)} bytes)"
    ]
    assert kept(place) == [f"{name}.refused.json", "20261201T074712Z.json"]


def refused_once(place: str, hand: Hand) -> str:
    """What is said of the first try; the documents still wait."""
    said: list[str] = []

    def stop(_: float) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        hand_on(place, hand, said.append, pause=stop)
    assert kept(place)[0].endswith(".waiting.json")
    return said[0]


def test_below_a_mount_point_that_is_not_mounted_nothing_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "fleet"
    place = waiting(tmp_path / "state", ONE)
    assert "is it mounted?" in refused_once(place, to_folder(folder, None))
    folder.mkdir()
    assert refused_once(place, to_folder(folder, None)) == f"{folder}: {folder} is not mounted; waiting: 1 document"
    assert list(folder.iterdir()) == []
    fd = os.open(folder, os.O_RDONLY)
    mount = mount_of(Sysroot(), fd)
    os.close(fd)
    assert os.path.ismount(mount)
    assert hand_on(place, to_folder(folder, mount), print, pause=late) == 0
    assert everything(folder) == {"2026-11-30/tx-04.json": ONE}


@pytest.mark.parametrize("name", ["2026-11-30", "2026-11-30/tx-04.json"])
@pytest.mark.parametrize("leads", [True, False], ids=["elsewhere", "nowhere"])
def test_what_somebody_put_in_its_place_is_passed_over(tmp_path: Path, name: str, leads: bool) -> None:
    """A link below the folder would have root write wherever it leads."""
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "fleet"
    for place in (elsewhere, (folder / name).parent):
        place.mkdir(parents=True)
    (elsewhere / "tx-04.json").write_bytes(b"theirs")
    (folder / name).symlink_to((elsewhere / "tx-04.json" if name.endswith("json") else elsewhere) if leads else "gone")
    assert hand_on(waiting(tmp_path / "state", ONE), to_folder(folder), print, pause=late) == 0
    assert (folder / "2026-11-30.2/tx-04.json").read_bytes() == ONE
    assert everything(elsewhere) == {"tx-04.json": b"theirs"}


def test_no_kill_loses_a_document_or_has_it_twice(tmp_path: Path) -> None:
    number = 1
    while True:
        folder = tmp_path / f"fleet{number}"
        folder.mkdir()
        place = waiting(tmp_path / f"state{number}", ONE, TWO, hours=1)
        work = partial(hand_on, place, to_folder(folder), print, pause=late)
        killed = killed_at(number, work)
        assert all(data for name, data in everything(folder).items() if name.endswith(".json"))
        work()
        assert everything(folder) == {"2026-11-30/tx-04.json": ONE, "2026-11-30.2/tx-04.json": TWO}
        if not killed:
            break
        number += 1
    assert number > 8


def test_a_full_folder_is_said_and_tried_again(tmp_path: Path) -> None:
    def first(folder: Path, place: str) -> str:
        said: list[str] = []
        hand_on(place, to_folder(folder), said.append, pause=lambda _: None)
        return said[0]

    def fresh(number: int) -> tuple[Path, str]:
        folder = tmp_path / f"fleet{number}"
        folder.mkdir()
        return folder, waiting(tmp_path / f"state{number}", ONE)

    calls = count_calls(needs_space, partial(hand_on, fresh(0)[1], to_folder(tmp_path / "fleet0"), print))
    for number in range(1, calls - 1):  # the last two are the rename on this host's own disk
        folder, place = fresh(number)
        said = failing_at(number, needs_space, errno.ENOSPC, partial(first, folder, place))
        assert said == f"{folder}: No space left on device; waiting: 1 document"
        assert everything(folder) == {"2026-11-30/tx-04.json": ONE}
    assert calls > 4


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (Report(folder="fleet"), "report.folder: 'fleet' is no whole path"),
        (Report(folder="/mnt/../fleet"), "is no whole path"),
        (Report(mount="/mnt"), "report.mount: '/mnt' is not the folder, or above it"),
        (Report(folder="/mnt/fleet", mount="/mnt/fl"), "is not the folder"),
        (Report(textfile="/x.txt"), "report.textfile: '/x.txt' is no whole path that ends in .prom"),
    ],
)
def test_what_cannot_be_is_refused(report: Report, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        check_report(report, "report")
    check_report(Report(folder="/mnt/fleet/a", mount="/mnt/fleet"), "report")
    check_report(Report(folder="/srv", mount="/"), "report")


def test_nobody_is_named() -> None:
    assert open_receiver(Report(), "tx-04") is None
