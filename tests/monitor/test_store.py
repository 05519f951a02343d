"""The store: what was promised is there after a crash, damage costs as little as it can, and one monitor has it."""

import os
import resource
import shutil
import socket
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tests.monitor.receivers.samples import fired, over
from tests.nobody import needs_root
from tunectl.monitor.database import open_database
from tunectl.monitor.model import Alert, AlertState, Severity
from tunectl.monitor.occupancy import LOCK, OccupiedError, address_of
from tunectl.monitor.store import FILE, STATE, Store


@contextmanager
def opened(place: Path) -> Iterator[Store]:
    store = Store(str(place))
    store.open()
    try:
        yield store
    finally:
        store.close()


def alerts_of(store: Store, receiver: str = "them") -> list[Alert]:
    return [one.alert for one in store.waiting(receiver)]


def add(store: Store, alerts: Sequence[Alert], receiver: str = "them") -> None:
    store.add(receiver, alerts)
    store.save(now=True)


def filled(place: Path, count: int = 5) -> None:
    """`count` alerts and a state, the first two acknowledged."""
    with opened(place) as store:
        store.remember({"alerts": {"count": count}})
        add(store, [fired(number) for number in range(count)])
        store.remove(store.waiting("them")[:2])


def test_what_waits_survives_and_what_is_done_does_not(tmp_path: Path) -> None:
    alerts = [fired(0), over(fired(0)), fired(1, observed="µ\n\udc80", cpus=""), fired(2, observed=2.5, expected=None)]
    with opened(tmp_path / "deep" / "down") as store:
        assert (store.receivers, store.state) == ([], {})
        add(store, alerts)
        add(store, [fired(9)], "others")
        store.remember({"alerts": {"a": [1, "µ"]}})
        store.remove(store.waiting("them")[:1])
    with opened(tmp_path / "deep" / "down") as store:
        assert alerts_of(store) == alerts[1:]
        assert alerts_of(store, "others") == [fired(9)]
        assert store.receivers == ["others", "them"]
        assert isinstance(alerts_of(store)[0].status, AlertState)
        assert isinstance(alerts_of(store)[0].severity, Severity)
        assert store.state == {"alerts": {"a": [1, "µ"]}}
        store.remove(list(store.waiting("them")))
    with opened(tmp_path / "deep" / "down") as store:
        assert store.receivers == ["others"]


def test_a_directory_has_one_monitor(tmp_path: Path) -> None:
    with opened(tmp_path) as first:
        add(first, [fired()])
        (tmp_path / FILE).read_bytes()  # closing any descriptor of it drops SQLite's own locks
        with pytest.raises(OccupiedError, match="another monitor"):
            Store(str(tmp_path)).open()
        add(first, [fired(1)])
    with opened(tmp_path) as second:
        assert alerts_of(second) == [fired(), fired(1)]


@pytest.mark.parametrize("name", [FILE, f"{FILE}-journal", LOCK])
def test_a_link_is_not_followed(tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    place = tmp_path / "state"
    place.mkdir()
    (place / name).symlink_to(tmp_path / "elsewhere")
    with opened(place) as store:
        add(store, [fired()])
        assert len(store.unsaved) == 1
    assert not (tmp_path / "elsewhere").exists()
    assert "Too many levels of symbolic links; they are kept in memory" in caplog.text


def test_what_is_written_together_is_there_together(tmp_path: Path) -> None:
    """A state that knows of an alert of which one receiver will never hear: no crash may leave that."""
    with opened(tmp_path) as store:
        add(store, [fired(0)])
        before = (tmp_path / FILE).read_bytes()
        store.remember({"alerts": 1})
        for receiver in ("first", "second", "third"):
            store.add(receiver, [fired(1)])
            assert (tmp_path / FILE).read_bytes() == before
        store.save(now=True)
    with opened(tmp_path) as store:
        assert (store.state, store.receivers) == ({"alerts": 1}, ["first", "second", "them", "third"])


def test_a_late_acknowledgement_after_the_end_harms_nobody(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        add(store, [fired()])
    store.remove(list(store.waiting("them")))
    store.save(now=True)
    with opened(tmp_path) as again:
        assert alerts_of(again) == [fired()], "told again, under the same id"


# --- disks


@pytest.fixture
def no_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python writes no .pyc: one that is cut where files may not be large is taken for whole by every later process."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


@pytest.mark.usefixtures("no_bytecode")
def test_a_full_disk_leaves_the_old_content_whole(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with opened(tmp_path) as store:
        store.remember({"alerts": {}})
        add(store, [fired(0)])
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / FILE).stat().st_size, before[1]))
        try:
            store.remember({"alerts": {"x": "y" * 100_000}})
            add(store, [fired(1)])
            assert [one.alert for one in store.unsaved][-1] == fired(1)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        copy = tmp_path / "copy"
        copy.mkdir()
        for name in (FILE, f"{FILE}-journal"):  # as a crash would leave it
            (copy / name).write_bytes((tmp_path / name).read_bytes())
        with opened(copy) as found:
            assert (alerts_of(found), found.state) == ([fired(0)], {"alerts": {}})
        store.save(now=True)
        assert store.is_saved
    with opened(tmp_path) as again:
        assert alerts_of(again) == [fired(0), fired(1)]
        assert len(again.state["alerts"]["x"]) == 100_000
    assert caplog.text.count("they are kept in memory") == caplog.text.count("saved again") == 1


def test_a_file_that_somebody_removed_is_written_again_before_the_next_alert_and_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(tmp_path / "state") as store:
        store.remember({"alerts": 1})
        add(store, [fired(0), fired(1)])
        store.save()
        assert store.is_saved
        assert "saved again" not in caplog.text  # nothing happened to it
        for path in (tmp_path / "state").iterdir():
            path.unlink()
        (tmp_path / "state").rmdir()
        assert not store.is_saved
        store.remove(store.waiting("them")[:1])
        store.save()
        assert store.is_saved
        add(store, [fired(2)])
    assert caplog.text.count("alerts are saved again in") == 1
    assert "somebody removed the file" in caplog.text
    with opened(tmp_path / "state") as again:
        assert (alerts_of(again), again.state) == ([fired(1), fired(2)], {"alerts": 1})


def test_no_second_monitor_comes_in_while_the_directory_is_gone(tmp_path: Path) -> None:
    """Somebody cleared it away, and the first has not yet looked: the second makes a new one, and holds nothing."""
    with opened(tmp_path / "state") as store:
        add(store, [fired(0)])
        shutil.rmtree(tmp_path / "state")
        with pytest.raises(OccupiedError, match="another monitor is at work"):
            Store(str(tmp_path / "state")).open()
        with opened(tmp_path / "other") as other:  # another directory is another monitor's
            add(other, [fired(1)])
        store.save()
        assert store.is_saved
    with opened(tmp_path / "state") as after:
        assert alerts_of(after) == [fired(0)]


@needs_root
def test_a_name_that_another_user_took_keeps_no_monitor_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Anybody may bind it. The file in the directory still locks."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as taken:
        os.seteuid(65534)
        try:
            taken.bind(address_of(str(tmp_path / "state")))
            taken.listen(1)
        finally:
            os.seteuid(0)
        with opened(tmp_path / "state"):
            assert "another user holds the name" in caplog.text
            with pytest.raises(OccupiedError):
                Store(str(tmp_path / "state")).open()


# --- damage


def goes_on(place: Path) -> None:
    """Whatever was found: a new alert is saved and found again."""
    with opened(place) as store:
        found, state = alerts_of(store), store.state
        add(store, [fired(99)])
        assert store.is_saved
    with opened(place) as store:
        assert (alerts_of(store), store.state) == ([*found, fired(99)], state)


@pytest.mark.parametrize("length", [0, 1, 15, 100, 4095, 4096, 5000, 8191, 8192, 12_288])
def test_cut_off(tmp_path: Path, length: int, caplog: pytest.LogCaptureFixture) -> None:
    filled(tmp_path, 40)
    data = (tmp_path / FILE).read_bytes()
    assert len(data) > length
    (tmp_path / FILE).write_bytes(data[:length])
    with opened(tmp_path) as store:
        assert [alert for alert in alerts_of(store) if alert not in [fired(number) for number in range(2, 40)]] == []
    assert "is damaged" in caplog.text
    if length < 512:  # SQLite's smallest page
        assert f"cut off after {length} bytes" in caplog.text
        assert "nothing in it can be read" in caplog.text
    assert (tmp_path / f"{FILE}.damaged").exists()
    goes_on(tmp_path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60), deadline=None)
@given(st.integers(0, 40_000), st.binary(min_size=1, max_size=9))
def test_damage_anywhere_ends_nothing_and_makes_up_nothing(tmp_path: Path, place: int, noise: bytes) -> None:
    for path in tmp_path.iterdir():
        path.unlink()
    filled(tmp_path)
    data = bytearray((tmp_path / FILE).read_bytes())
    place = place * 16_333 % len(data)  # hypothesis likes small numbers
    data[place : place + len(noise)] = noise
    (tmp_path / FILE).write_bytes(data)
    with opened(tmp_path) as store:
        known = [fired(number) for number in range(5)]
        found = alerts_of(store)
        assert [alert for alert in found if alert not in known] == []
        assert store.state in ({"alerts": {"count": 5}}, {})
    goes_on(tmp_path)


def test_of_a_damaged_file_what_can_be_read_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(tmp_path, 4)
    with closing(sqlite3.connect(tmp_path / FILE)) as database:  # a page of which nobody knows
        database.execute("CREATE TABLE more (text)")
        database.execute("PRAGMA writable_schema=ON")
        database.execute("DELETE FROM sqlite_master WHERE name = 'more'")
        database.commit()
    with opened(tmp_path) as store:
        assert alerts_of(store) == [fired(2), fired(3)]
    assert "is damaged" in caplog.text
    goes_on(tmp_path)


def edited(place: Path, *statements: str) -> None:
    with closing(sqlite3.connect(place / FILE, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("PRAGMA user_version=2", "a newer version of tunectl wrote it: it is of version 2, not 1"),
        ("PRAGMA user_version=0", "it is damaged (it is of version 0, not 1)"),
        ("ALTER TABLE delivery ADD COLUMN more", "it is damaged (its tables are not ours)"),
        ("CREATE TABLE more (text)", "it is damaged (its tables are not ours)"),
    ],
)
def test_what_another_programs_file_holds_of_ours_is_taken_over(
    tmp_path: Path, statement: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    filled(tmp_path)
    edited(tmp_path, "UPDATE delivery SET alert = '00000000 {}' WHERE id = 4", statement)
    with opened(tmp_path) as store:
        assert alerts_of(store) == [fired(2), fired(4)]
        assert store.state == {"alerts": {"count": 5}}
        assert store.lost == {"them": 1}
        assert store.is_saved
    assert why in caplog.text
    assert "2 notifications that wait are kept; 1 damaged records are lost" in caplog.text
    assert (tmp_path / f"{FILE}.damaged").exists()
    goes_on(tmp_path)


# Of the statements that made the tables: the text on the first page, and what a damaged page has in its place.
SCHEMA = {
    b"INTEGER PRIMARY KEY, receiver": b"INTEGER PRIMARY KEX, receiver",
    b"CREATE TABLE delivery": b"CREATE TABLE delivera",
    b"CREATE TABLE state": b"\0" * 18,
    b"receiver TEXT": b"receives TEXT",
    b"done INTEGER": b"none INTEGER",
    b"alert BLOB": b"\xff" * 10,
    b"record BLOB": b"record BLO(",
}


@pytest.mark.parametrize("text", SCHEMA, ids=bytes.decode)
def test_a_damaged_schema_is_said_and_never_an_empty_store(
    tmp_path: Path, text: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    filled(tmp_path)
    data = (tmp_path / FILE).read_bytes()
    assert text in data
    (tmp_path / FILE).write_bytes(data.replace(text, SCHEMA[text]))
    with opened(tmp_path) as store:
        assert [alert for alert in alerts_of(store) if alert not in (fired(2), fired(3), fired(4))] == []
        assert store.is_saved
    assert "is damaged" in caplog.text
    assert (tmp_path / f"{FILE}.damaged").read_bytes()[:4096].count(SCHEMA[text])
    goes_on(tmp_path)


@pytest.mark.parametrize(
    ("table", "alerts", "state"),
    [("state", [fired(2), fired(3), fired(4)], {}), ("delivery", [], {"alerts": {"count": 5}})],
)
def test_a_table_is_read_where_the_other_is_gone(
    tmp_path: Path, table: str, alerts: list[Alert], state: Mapping[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    filled(tmp_path)
    edited(tmp_path, f"DROP TABLE {table}")
    with opened(tmp_path) as store:
        assert (alerts_of(store), store.state) == (alerts, state)
    assert f"no such table: {table}" in caplog.text or "its tables are not ours" in caplog.text
    assert f"{len(alerts)} notifications that wait are kept" in caplog.text
    goes_on(tmp_path)


@pytest.mark.parametrize("pages", [1, 2, 8])
def test_a_file_that_lost_its_last_pages_gives_what_stands_on_the_others(
    tmp_path: Path, pages: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Its header names more pages than it has, for which SQLite by itself refuses them all."""
    filled(tmp_path, 200)
    left = (tmp_path / FILE).read_bytes()[: -4096 * pages]
    (tmp_path / FILE).write_bytes(left)
    with opened(tmp_path) as store:
        found = alerts_of(store)
        assert store.state == {"alerts": {"count": 200}}
        assert store.is_saved
    assert found == [fired(number) for number in range(2, 2 + len(found))]
    assert len(found) >= 198 - 11 * pages  # eleven rows a page
    assert f"{len(found)} notifications that wait are kept" in caplog.text
    assert "and what stood on pages that cannot be read" in caplog.text
    goes_on(tmp_path)


def test_a_file_cut_while_it_is_open_is_written_again_whole(tmp_path: Path) -> None:
    filled(tmp_path, 60)
    with opened(tmp_path) as store:
        os.truncate(tmp_path / FILE, 4096 * 4)
        store._disconnect()
        add(store, [fired(99)])
        assert store.is_saved
    with opened(tmp_path) as store:
        assert alerts_of(store) == [fired(number) for number in (*range(2, 60), 99)]


def test_what_stands_between_two_pages_that_cannot_be_read_is_kept(tmp_path: Path) -> None:
    filled(tmp_path, 60)
    data = bytearray((tmp_path / FILE).read_bytes())
    for text in (b'"package20"', b'"package40"'):  # each hides only itself
        (page,) = (number for number in range(0, len(data), 4096) if text in data[number : number + 4096])
        data[page : page + 8] = b"\xff" * 8
    (tmp_path / FILE).write_bytes(data)
    with opened(tmp_path) as store:
        found = alerts_of(store)
    assert [fired(number) in found for number in (2, 20, 30, 40, 59)] == [True, False, True, False, True]
    assert found == [fired(number) for number in range(60) if fired(number) in found]
    goes_on(tmp_path)


def test_a_damaged_state_is_said_and_counted_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(tmp_path)
    edited(tmp_path, "UPDATE state SET record = '00000000 {}'")
    with opened(tmp_path) as store:
        assert (len(alerts_of(store)), store.state) == (3, {})
        assert store.lost == {STATE: 1}
    with opened(tmp_path) as again:
        assert not again.lost
    assert caplog.text.count(f"{STATE}: 1 damaged records") == 1


@pytest.mark.usefixtures("no_bytecode")
def test_an_empty_file_is_never_what_a_crash_leaves(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Only what was made whole takes the name: a full disk at the first start is no damage later."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        store = Store(str(tmp_path))
        store.open()
        add(store, [fired()])
        assert len(store.unsaved) == 1
        assert not (tmp_path / FILE).exists()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    store.save(now=True)
    assert store.is_saved
    store.close()
    assert "damaged" not in caplog.text
    assert sorted(os.listdir(tmp_path)) == [LOCK, FILE, f"{FILE}-journal"]


def test_the_journal_of_a_file_that_is_gone_changes_no_new_one(tmp_path: Path) -> None:
    filled(tmp_path / "old")
    with closing(open_database(str(tmp_path / "old" / FILE))) as database:
        database.execute("PRAGMA cache_size=1")  # so that the transaction goes to the file before it ends
        database.execute("BEGIN IMMEDIATE")
        database.execute("UPDATE delivery SET done = 1")
        database.execute("UPDATE delivery SET alert = zeroblob(100000)")
        hot = (tmp_path / "old" / f"{FILE}-journal").read_bytes()
        database.execute("ROLLBACK")
    (tmp_path / f"{FILE}-journal").write_bytes(hot)
    with opened(tmp_path) as store:
        assert (alerts_of(store), store.state) == ([], {})
    goes_on(tmp_path)


@pytest.mark.parametrize("name", ["alerts.json", "spool"])
def test_what_a_version_before_the_store_kept_is_named_and_left(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    filled(tmp_path)
    (tmp_path / name).write_text("{}")
    with opened(tmp_path) as store:
        assert (len(alerts_of(store)), store.state, store.lost) == (3, {"alerts": {"count": 5}}, {})
    assert str(tmp_path / name) in caplog.text
    assert (tmp_path / name).read_text() == "{}"
