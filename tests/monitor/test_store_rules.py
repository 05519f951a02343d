"""The store's rules one by one: what counts as saved, what stands where disk and memory differ, what is damage."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from tests.monitor.receivers.samples import fired, over
from tests.monitor.test_store import add, alerts_of, filled, opened
from tunectl.monitor.database import check, is_damage, open_database, record_of, set_aside, transaction
from tunectl.monitor.model import Alert
from tunectl.monitor.saved import read_saved
from tunectl.monitor.store import FILE, SAVE_AGAIN_S, STATE, Delivery, Store


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    made = Store(str(tmp_path), clock)
    made.open()
    yield made
    made.close()


def stored(place: Path) -> list[tuple[Any, ...]]:
    """(row, receiver, done) as another process finds them; the monitor that wrote them has ended."""
    with closing(sqlite3.connect(place / FILE)) as database:
        return database.execute("SELECT id, receiver, done FROM delivery ORDER BY id").fetchall()


# ---- saved or not


def test_what_changes_is_unsaved_until_it_is_saved(store: Store) -> None:
    assert (store.is_saved, store.unsaved) == (True, [])
    store.add("them", [fired(1)])
    assert (store.is_saved, [one.alert for one in store.unsaved]) == (False, [fired(1)])
    store.save()
    assert (store.is_saved, store.unsaved) == (True, [])
    store.remember({"alerts": 1})
    assert (store.is_saved, store.unsaved) == (False, [])
    store.save()
    assert store.is_saved
    store.remove(store.waiting("them")[:])
    assert not store.is_saved
    store.save()
    assert store.is_saved


def test_a_delivery_knows_since_when_it_waits_and_for_whom(store: Store, clock: Clock) -> None:
    clock.now_s = 7.0
    store.add("them", [fired(1), fired(2)])
    clock.now_s = 9.0
    store.add("others", [fired(1)])
    assert [(one.receiver, one.queued_s, one.tries) for one in store.unsaved] == [
        ("them", 7.0, 0),
        ("them", 7.0, 0),
        ("others", 9.0, 0),
    ]
    assert store.receivers == ["others", "them"]
    assert list(store.waiting("nobody")) == []
    assert store.receivers == ["others", "them"]


def test_what_was_acknowledged_before_it_was_saved_is_never_written(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.add("them", [fired(1), fired(2)])
        store.remove(store.waiting("them")[:1])
        store.save(now=True)
    assert stored(tmp_path) == [(1, "them", 0)]


def test_a_row_keeps_its_number_however_often_it_is_written(tmp_path: Path) -> None:
    filled(tmp_path, 5)  # rows 3 to 5 wait
    with opened(tmp_path) as store:
        assert [one.id for one in store.waiting("them")] == [3, 4, 5]
        add(store, [fired(9)])
        (tmp_path / FILE).unlink()
        store.save()
        assert [one.id for one in store.waiting("them")] == [3, 4, 5, 6]
    assert stored(tmp_path) == [(3, "them", 0), (4, "them", 0), (5, "them", 0), (6, "them", 0)]


@pytest.mark.parametrize("now", [False, True])
def test_a_disk_that_refused_is_tried_again_after_a_while_or_when_something_is_new(
    tmp_path: Path, clock: Clock, now: bool
) -> None:
    place = tmp_path / "state"
    place.write_text("in the way")
    store = Store(str(place), clock)
    store.open()
    store.add("them", [fired(1)])
    place.unlink()
    clock.now_s = SAVE_AGAIN_S - 0.001
    store.save(now=now)
    assert store.is_saved is now
    clock.now_s = SAVE_AGAIN_S
    store.save()
    assert store.is_saved
    store.close()


def test_a_connection_that_went_bad_is_made_anew(store: Store, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    assert store._database
    store._database.execute("PRAGMA query_only=1")  # of this connection; the file is as it was
    add(store, [fired(1)])
    add(store, [fired(2)])
    assert store.is_saved
    assert caplog.text.count("cannot save alerts") == 1
    assert caplog.text.count("alerts are saved again") == 1


def test_what_was_acknowledged_while_the_disk_refused_comes_no_second_time(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        add(store, [fired(1), fired(2)])
        assert store._database
        refused = {sqlite3.SQLITE_UPDATE: sqlite3.SQLITE_DENY}  # of this connection, which is made anew
        store._database.set_authorizer(lambda action, *_: refused.get(action, sqlite3.SQLITE_OK))
        store.remove(store.waiting("them")[:1])
        store.save()
        assert not store.is_saved
        store.save(now=True)
        assert store.is_saved
    with opened(tmp_path) as store:
        assert [delivery.alert for delivery in store.waiting("them")] == [fired(2)]


def test_after_the_end_nothing_is_written(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.open()
    add(store, [fired(1)])
    store.close()
    add(store, [fired(2)])
    store.close()
    assert stored(tmp_path) == [(1, "them", 0)]


def test_what_a_full_disk_kept_from_the_file_is_counted_at_the_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "state").write_text("in the way")
    store = Store(str(tmp_path / "state"))
    store.open()
    store.add("them", [fired(1), fired(2), fired(3)])
    store.close()
    assert "3 alerts were neither delivered nor saved" in caplog.text


# ---- memory and file


@pytest.mark.parametrize("is_new", [False, True])
def test_what_the_alerts_remember_now_stands_above_what_any_file_has(
    tmp_path: Path, is_new: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The disk was away when the monitor began: what an earlier process left comes late."""
    place = tmp_path / "state"
    filled(place)
    place.rename(tmp_path / "away")
    place.write_text("in the way")
    store = Store(str(place))
    store.open()
    if is_new:
        store.remember({"alerts": "new"})
    store.add("them", [fired(8)])
    place.unlink()
    (tmp_path / "away").rename(place)
    store.save(now=True)
    assert alerts_of(store) == [fired(2), fired(3), fired(4), fired(8)]
    assert store.state == {"alerts": "new" if is_new else {"count": 5}}
    store.close()
    with opened(place) as again:
        assert alerts_of(again) == [fired(2), fired(3), fired(4), fired(8)]
        assert again.state == store.state
        assert len({one.id for one in again.waiting("them")}) == 4
    assert caplog.text.count("not remembered over a restart") == 1


def test_what_a_receiver_has_left_is_delivered_before_what_is_new(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        add(store, [fired(1), fired(2)])
        add(store, [fired(1)], "others")
    with opened(tmp_path) as store:
        add(store, [over(fired(1))])
        assert alerts_of(store) == [fired(1), fired(2), over(fired(1))]
        assert alerts_of(store, "others") == [fired(1)]


def test_damaged_records_are_counted_for_each_receiver_and_marked_as_done(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        add(store, [fired(1), fired(2), fired(3)])
        add(store, [fired(1)], "others")
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as database:
        database.execute("UPDATE delivery SET alert = 'x' WHERE id IN (1, 2, 4)")
    with opened(tmp_path) as store:
        assert store.lost == {"them": 2, "others": 1}
        assert (alerts_of(store), store.receivers) == ([fired(3)], ["them"])
    with opened(tmp_path) as store:
        assert (store.lost, alerts_of(store)) == ({}, [fired(3)])


# ---- the file


def test_how_the_file_is_opened(tmp_path: Path) -> None:
    path = str(tmp_path / FILE)
    names = ("synchronous", "journal_mode", "locking_mode", "temp_store", "max_page_count", "user_version")
    with closing(open_database(path)) as database:
        asked = [database.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
        assert asked == [2, "persist", "exclusive", 2, 16384, 1]
        check(database)
        with transaction(database):
            database.execute("INSERT INTO delivery VALUES (1, 'them', 0, NULL)")
        other = sqlite3.connect(path, timeout=0)
        with closing(other), pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("SELECT * FROM delivery").fetchall()
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in (FILE, f"{FILE}-journal")} == {0o640}
    assert (tmp_path / f"{FILE}-journal").stat().st_blocks * 512 >= 1 << 16  # an acknowledgement has its space
    assert sorted(os.listdir(tmp_path)) == [FILE, f"{FILE}-journal"]


def test_what_a_start_that_was_ended_left_beside_is_no_part_of_the_file(tmp_path: Path) -> None:
    (tmp_path / f"{FILE}-new").write_bytes(b"half of it")
    with closing(open_database(str(tmp_path / FILE))) as database:
        check(database)
    assert sorted(os.listdir(tmp_path)) == [FILE, f"{FILE}-journal"]


def test_a_transaction_is_all_or_nothing(tmp_path: Path) -> None:
    with closing(open_database(str(tmp_path / FILE))) as database:
        for failing in (True, False):
            try:
                with transaction(database):
                    database.execute("INSERT INTO delivery VALUES (1, 'them', 0, NULL)")
                    if failing:
                        raise KeyboardInterrupt
            except KeyboardInterrupt:
                pass
            assert not database.in_transaction
            assert database.execute("SELECT count(*) FROM delivery").fetchone() == (0 if failing else 1,)


PASSING = ("FULL", "IOERR", "BUSY", "LOCKED", "NOMEM", "CANTOPEN", "READONLY", "PERM", "AUTH")


@pytest.mark.parametrize("name", [*PASSING, "CORRUPT", "NOTADB", "ERROR", "FORMAT", "SCHEMA"])
@pytest.mark.parametrize("extended", [0, 3 << 8])
def test_what_is_damage_and_what_passes(name: str, extended: int) -> None:
    error = sqlite3.OperationalError("so")
    error.sqlite_errorcode = getattr(sqlite3, f"SQLITE_{name}") | extended
    assert is_damage(error) is (name not in PASSING)
    assert is_damage(UnicodeDecodeError("utf-8", b"", 0, 1, "so"))


def test_the_newest_damaged_file_is_kept_with_its_journal(tmp_path: Path) -> None:
    path = tmp_path / FILE
    for number in (1, 2):
        path.write_text(str(number))
        if number == 1:
            Path(f"{path}-journal").write_text("journal")
        assert set_aside(str(path)) == f"{path}.damaged"
        assert (tmp_path / f"{FILE}.damaged").read_text() == str(number)
        assert (tmp_path / f"{FILE}.damaged-journal").read_text() == "journal"
    assert sorted(os.listdir(tmp_path)) == [f"{FILE}.damaged", f"{FILE}.damaged-journal"]


# ---- what is read of it


def row(alert: Alert) -> bytes:
    return record_of(asdict(alert))


def test_each_row_is_read_by_itself(tmp_path: Path) -> None:
    rows: list[tuple[Any, ...]] = [
        (1, "them", 1, row(fired(1))),  # done
        (2, "them", 0, row(fired(2))),
        (3, "them", 0, b"x"),
        (4, "others", 0, row(fired(4))),
        (5, "them", 0, None),
        (1 << 62, "them", 0, row(fired(6))),
        ((1 << 62) + 1, "them", 0, row(fired(7))),  # ids go on from the last
    ]
    with closing(open_database(str(tmp_path / FILE))) as database:
        with transaction(database):
            database.executemany("INSERT INTO delivery VALUES (?, ?, ?, ?)", rows)
            database.execute("INSERT INTO state VALUES (0, ?)", (record_of({"a": 1}),))
        saved = read_saved(database)
    assert saved.waiting == {2: ("them", fired(2)), 4: ("others", fired(4)), 1 << 62: ("them", fired(6))}
    assert saved.bad == {3: "them", 5: "them", (1 << 62) + 1: "them"}
    assert (saved.lost, saved.state) == ({"them": 3}, {"a": 1})
    assert (saved.is_state_lost, saved.is_cut, saved.damage) == (False, False, None)
    assert saved.text == "3 notifications that wait are kept; 3 damaged records are lost"


@pytest.mark.parametrize(
    ("record", "state", "is_lost"),
    [(None, None, True), (b"x", None, True), (record_of({}), {}, False), ("", None, True)],
)
def test_a_state_is_whole_or_lost(tmp_path: Path, record: Any, state: Any, is_lost: bool) -> None:
    with closing(open_database(str(tmp_path / FILE))) as database:
        saved = read_saved(database)
        assert (saved.state, saved.is_state_lost) == (None, False)  # none was ever written
        database.execute("INSERT INTO state VALUES (0, ?)", (record,))
        saved = read_saved(database)
    assert (saved.state, saved.is_state_lost, saved.damage) == (state, is_lost, None)
    assert saved.text == f"0 notifications that wait are kept; {int(is_lost)} damaged records are lost"


def test_the_state_is_lost_under_a_name_of_its_own() -> None:
    assert STATE not in ("them", "")
    assert Delivery("them", fired(1), 1.0) != Delivery("them", fired(1), 1.0)  # two of them are two
