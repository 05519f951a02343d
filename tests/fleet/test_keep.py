"""The store in columns says what the documents say, has whole sessions after any fault, and reads nothing else."""

import errno
import json
import os
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.made import BEGAN, NOW, good, preflight, written
from tests.tuning.calls import changes, count_calls, failing_at, in_child, killed_at
from tests.tuning.stride import STRIDES, thinned
from tunectl.errors import TunectlError, UsageError
from tunectl.fleet import ask, keep
from tunectl.fleet.body import fleet_body
from tunectl.fleet.columns import TABLES
from tunectl.fleet.keep import Named, read_manifest, set_most, take_in
from tunectl.fleet.records import Session
from tunectl.fleet.store import ask as ask_folder
from tunectl.fleet.store import read_session

LATER = "2026-11-21T09:00:00Z"


def drifted(target: str, observed: object = 60, **more: Any) -> dict[str, Any]:
    return {
        **good(target),
        "outcome": "drifted",
        "observed": observed,
        "reason": "it costs",
        "severity": "stall",
        **more,
    }


def no_go(name: str, *targets: str) -> dict[str, Any]:
    findings = [drifted(target) for target in targets] + [good("cpu.online[3]"), good("cpu.online[4]")]
    reasons: dict[str, Any] = {
        "reasons": [f"{target} is 60" for target in targets],
        "reasons_about": [t.partition("[")[0] for t in targets],
    }
    return preflight(name, "no-go", verify={"verdict": "drifted", "findings": findings}, **reasons)


def fleet() -> dict[str, dict[str, Any] | None]:
    hosts: dict[str, dict[str, Any] | None] = {
        f"tx-{n:02}": preflight(f"tx-{n:02}", max_ns=4_000 + n) for n in range(8)
    }
    hosts["tx-08"] = preflight("tx-08", max_ns=31_000)
    hosts["tx-10"] = no_go("tx-10", "mm.swappiness", "irq.affinity[24]", "irq.affinity[25]")
    hosts["tx-11"] = no_go("tx-11", "mm.swappiness")
    hosts["tx-12"] = preflight("tx-12", "unknown", max_ns=None, hardware=None)
    return {**hosts, "tx-13": None}


def of_columns(store: Path, name: str, hosts: tuple[str, ...] = (), now: str = NOW) -> dict[str, Any]:
    with ask.asking(store, name) as connection:
        session, answers = ask.session_in(connection, store, name, hosts)
        return fleet_body(session, answers, now, lambda judged: ask.causes_in(connection, name, judged))


def of_folder(session: Session, now: str = NOW) -> dict[str, Any]:
    return fleet_body(session, ask_folder(session), now)


def without_places(body: dict[str, Any]) -> dict[str, Any]:
    rows = [{key: value for key, value in row.items() if key != "file"} for row in body["hosts"]]
    return {**body, "hosts": rows, "session": {**body["session"], "directory": ""}}


def rows(store: Path, query: str) -> list[list[Any]]:
    with ask.asking(store) as connection:
        return ask.query(connection, query).rows


def names(store: Path) -> set[str]:
    return {str(path.relative_to(store)) for path in store.rglob("*") if path.is_file()}


def belonging(store: Path) -> set[str]:
    files = {file.path for kept in read_manifest(store).sessions.values() for file in kept.files.values()}
    return files | {"manifest.json"}


@pytest.mark.parametrize("workers", [1, 3])
def test_the_columns_say_what_the_documents_say(tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keep, "_A_WORKER", 2)
    session = written(tmp_path / "folders", fleet())
    taken = take_in(tmp_path / "store", session, NOW, workers)
    assert (taken.documents, taken.known, taken.without, taken.named) == (12, 0, 1, [])
    assert without_places(of_columns(tmp_path / "store", "morning")) == without_places(of_folder(session))
    assert names(tmp_path / "store") == belonging(tmp_path / "store")


def test_a_host_without_an_answer_and_one_that_was_not_asked_are_there(tmp_path: Path) -> None:
    session = written(tmp_path / "folders", {"a": preflight("a"), "b": preflight("b")})
    (Path(session.directory) / "hosts/b.json").rename(Path(session.directory) / "hosts/c.json")
    taken = take_in(tmp_path, session, NOW, 1)
    assert taken.named == [Named("c", "left a document, and was not asked")]
    kept = of_columns(tmp_path, "morning", hosts=("d",))
    assert {row["name"]: (row["answer"], row["expected"]) for row in kept["hosts"]} == {
        "a": ("document", True),
        "b": ("silent", True),
        "c": ("document", False),
        "d": ("silent", True),
    }


def test_a_rack_comes_back(tmp_path: Path) -> None:
    session = written(tmp_path / "folders", {"a": preflight("a")})._replace(racks=(("a", "A1"),))
    take_in(tmp_path, session, NOW, 1)
    assert of_columns(tmp_path, "morning")["hosts"][0]["rack"] == "A1"


def test_taken_in_twice_it_is_there_once(tmp_path: Path) -> None:
    session = written(tmp_path / "folders", fleet())
    take_in(tmp_path, session, NOW, 1)
    before = belonging(tmp_path)
    again = take_in(tmp_path, session, NOW, 1)
    assert (again.documents, again.known) == (0, 12)
    assert rows(tmp_path, "SELECT count(*), count(DISTINCT host) FROM runs") == [[12, 12]]
    assert before == belonging(tmp_path)


def test_a_list_that_comes_later_says_who_was_asked(tmp_path: Path) -> None:
    (tmp_path / "day").mkdir()
    (tmp_path / "day/a.json").write_text(json.dumps(preflight("a")))
    take_in(tmp_path / "store", read_session(tmp_path / "day"), NOW, 1)
    assert of_columns(tmp_path / "store", "day")["hosts"][0]["expected"] is False
    listed = read_session(tmp_path / "day", ("a", "b"))
    assert take_in(tmp_path / "store", listed, NOW, 1).changed == 2
    assert take_in(tmp_path / "store", listed, NOW, 1).changed == 0
    assert [row["expected"] for row in of_columns(tmp_path / "store", "day")["hosts"]] == [True, True]


def test_documents_that_come_later_join_their_session(tmp_path: Path) -> None:
    session = written(tmp_path / "folders", {"a": preflight("a"), "b": preflight("b")})
    late = Path(session.directory) / "hosts/b.json"
    document = late.read_bytes()
    late.unlink()
    take_in(tmp_path, session, NOW, 1)
    assert rows(tmp_path, "SELECT host, answer FROM hosts ORDER BY host") == [["a", "document"], ["b", "silent"]]
    late.write_bytes(document)
    assert take_in(tmp_path, session, NOW, 1).documents == 1
    assert rows(tmp_path, "SELECT host, answer FROM hosts ORDER BY host") == [["a", "document"], ["b", "document"]]
    assert without_places(of_columns(tmp_path, "morning")) == without_places(of_folder(session))


def test_the_later_document_of_a_host_stays(tmp_path: Path) -> None:
    session = written(tmp_path / "folders", {"a": preflight("a", at=LATER)})
    take_in(tmp_path, session, LATER, 1)
    path = Path(session.directory) / "hosts/a.json"
    path.write_text(json.dumps(preflight("a", at=BEGAN)))
    taken = take_in(tmp_path, session, LATER, 1)
    assert taken.named == [Named("a", f"its document is of {BEGAN}, and the one that is kept of {LATER}")]
    path.write_text("{")
    assert [one.host for one in take_in(tmp_path, session, LATER, 1).named] == ["a"]
    path.unlink()
    take_in(tmp_path, session, LATER, 1)
    assert rows(tmp_path, "SELECT made_at, answer FROM runs JOIN hosts USING (host)") == [[LATER, "document"]]


def test_the_later_document_is_so_by_its_moment_whatever_its_zone(tmp_path: Path) -> None:
    """09:00 at +01:00 is before 08:30 UTC."""
    session = written(tmp_path / "folders", {"a": preflight("a", at="2026-11-21T08:30:00Z")})
    now = "2026-11-21T09:30:00Z"
    take_in(tmp_path, session, now, 1)
    path = Path(session.directory) / "hosts/a.json"
    path.write_text(json.dumps(preflight("a", at="2026-11-21T09:00:00+01:00")))
    assert [one.host for one in take_in(tmp_path, session, now, 1).named] == ["a"]
    path.write_text(json.dumps(preflight("a", at="2026-11-21T10:00:00+01:00")))
    assert take_in(tmp_path, session, now, 1).named == []
    assert rows(tmp_path, "SELECT made_at FROM runs") == [["2026-11-21T09:00:00Z"]]


HOSTILE = "<script>alert(1)</script>'; DROP TABLE runs; --\x1b[31m\x00\u202e"
ODD: dict[str, tuple[bytes | Callable[[], bytes], str]] = {
    "future": (json.dumps(preflight("x", at="2026-11-22T08:30:05Z")).encode(), "and now it is"),
    "undated": (json.dumps({**preflight("x"), "at": ""}).encode(), "does not say when it was made"),
    "cut": (json.dumps(preflight("x")).encode()[:-9], "cannot be used"),
    "empty": (b"", "cannot be used"),
    "older": (json.dumps({**preflight("x"), "schema": "tunectl.preflight/0"}).encode(), "of another version"),
    "deep": (b"[" * 100_000, "cannot be used"),
    "large": (lambda: b'{"schema": "' + b"x" * (100 << 20), "is larger than 64 MiB"),
    "wide": (json.dumps(preflight("x", "no-go", reasons=["y" * (6 << 20)])).encode(), "4 MiB are the most"),
    "surrogate": (json.dumps(preflight("x", "no-go", reasons=["\udc80"])).encode(), "cannot be"),
}


@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_document_of_this_session_is_named_and_loses_no_other(tmp_path: Path, kind: str) -> None:
    session = written(tmp_path / "folders", {"a": preflight("a"), "b": preflight("b"), "c": preflight("c")})
    data, said = ODD[kind]
    (Path(session.directory) / "hosts/b.json").write_bytes(data if isinstance(data, bytes) else data())
    taken = take_in(tmp_path, session, NOW, 1)
    assert taken.documents == 2
    ((host, problem),) = [(one.host, one.problem) for one in taken.named]
    assert host == "b"
    assert said in problem
    assert "\n" not in problem
    kept = {row["name"]: row for row in of_columns(tmp_path, "morning", now=LATER)["hosts"]}
    assert [kept[name]["verdict"] for name in "abc"] == ["go", "unknown", "go"]
    assert said in kept["b"]["reasons"][0]


def test_a_document_of_the_future_does_not_become_good_later(tmp_path: Path) -> None:
    session = written(tmp_path / "folders", {"a": preflight("a", at="2026-11-22T08:30:05Z")})
    take_in(tmp_path, session, NOW, 1)
    assert of_columns(tmp_path, "morning", now="2026-11-23T08:30:00Z")["verdict"] == "unknown"


def test_hostile_names_and_texts_are_data(tmp_path: Path) -> None:
    made = no_go("x", f"mm.swappiness[{HOSTILE}]")
    made["host"]["hostname"] = made["hardware"]["product"] = HOSTILE
    session = written(tmp_path / "folders", {HOSTILE: made, "b": no_go("b", "mm.swappiness")})
    assert take_in(tmp_path, session, NOW, 1).documents == 2
    assert without_places(of_columns(tmp_path, "morning")) == without_places(of_folder(session))
    assert rows(tmp_path, "SELECT host FROM runs WHERE product = hostname") == [[HOSTILE]]


def test_a_folder_of_documents_is_a_session_of_when_they_were_made(tmp_path: Path) -> None:
    (tmp_path / "2026-11-21").mkdir()
    for host, at in (("a", BEGAN), ("b", NOW), ("c", NOW)):
        (tmp_path / "2026-11-21" / f"{host}.json").write_text(json.dumps(preflight(host, at=at)))
    take_in(tmp_path, read_session(tmp_path / "2026-11-21", ("a", "b", "c")), LATER, 1)
    assert read_manifest(tmp_path).sessions["2026-11-21"].at == NOW


@pytest.mark.parametrize("name", ["../../outside", "a*", "a'b", "", "."])
def test_a_name_that_would_lead_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    session = written(tmp_path / "folders", {"a": preflight("a")})
    before = names(tmp_path)
    with pytest.raises(UsageError, match="cannot be called"):
        take_in(tmp_path / "store", session._replace(name=name), NOW, 1)
    assert names(tmp_path) == before


def kept_in_order(tmp_path: Path, count: int) -> list[Session]:
    made = []
    for number in range(1, count + 1):
        at = f"2026-11-21T0{number}:00:00Z"
        made.append(written(tmp_path / "folders", {"a": preflight("a", at=at)}, f"s{number}", at))
        take_in(tmp_path / "store", made[-1], LATER, 1)
    return made


def test_only_so_many_sessions_stay(tmp_path: Path) -> None:
    kept_in_order(tmp_path, 4)
    store = tmp_path / "store"
    assert set_most(store, None) == []
    assert set_most(store, 2) == ["s1", "s2"]
    assert read_manifest(store).latest() == ["s3", "s4"]
    assert rows(store, "SELECT DISTINCT session FROM runs ORDER BY session") == [["s3"], ["s4"]]
    assert {name for name in names(store) if "=s1" in name}, "who reads meanwhile still has them"
    assert set_most(store, None) == []
    assert read_manifest(store).keep_sessions == 2


def test_what_no_manifest_names_goes_when_it_is_old(tmp_path: Path) -> None:
    kept_in_order(tmp_path, 1)
    store = tmp_path / "store"
    for name, age in (
        ("runs-0123456789abcdef.parquet", 3600),
        ("runs.part", 3600),
        ("events-1.parquet", 5),
        ("mine", 3600),
    ):
        (store / "session=s1" / name).write_text("")
        os.utime(store / "session=s1" / name, times=(0, os.stat(store).st_mtime - age))
    set_most(store, None)
    assert names(store) - belonging(store) == {"session=s1/events-1.parquet", "session=s1/mine"}


def test_a_file_that_the_manifest_does_not_name_is_not_read(tmp_path: Path) -> None:
    kept_in_order(tmp_path, 1)
    store = tmp_path / "store"
    (file,) = (store / "session=s1").glob("runs-*")
    (store / "session=s1/runs-ffff.parquet").write_bytes(file.read_bytes())
    assert rows(store, "SELECT count(*) FROM runs") == [[1]]
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(TunectlError, match="bytes, and the manifest says"):
        rows(store, "SELECT count(*) FROM runs")
    file.unlink()
    with pytest.raises(TunectlError, match="No such file"):
        rows(store, "SELECT count(*) FROM runs")


OUTSIDE = '{"sessions": {"s": {"at": "", "files": {"runs": {"path": "%s", "size": 1, "rows": 1}}}}}'
STRANGE = ["{", '{"schema": "tunectl.fleet.store/2"}', '{"sessions": []}', "[" * 100_000]


@pytest.mark.parametrize("text", [*STRANGE, OUTSIDE % "../out/runs.parquet", OUTSIDE % "/etc/passwd"])
def test_a_manifest_that_nobody_wrote_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(TunectlError, match=r"manifest\.json"):
        read_manifest(tmp_path)


def test_a_place_that_the_engine_would_take_for_a_pattern_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has one of"):
        read_manifest(tmp_path / "a*b")


class Walk:
    """A store with a session, into which another and a later document of the first are taken."""

    def __init__(self, tmp_path: Path) -> None:
        self.store, self.fresh = tmp_path / "store", tmp_path / "fresh"
        self.first = written(tmp_path / "folders", {"a": preflight("a"), "b": no_go("b", "mm.swappiness")}, "first")
        take_in(self.fresh, self.first, NOW, 1)
        path = Path(self.first.directory) / "hosts/a.json"
        path.write_text(json.dumps(preflight("a", at=NOW)))
        self.second = written(tmp_path / "folders", {"a": preflight("a", at=LATER)}, "second", LATER)

    def lay(self) -> None:
        os.system(f"rm -rf {self.store}; cp -a {self.fresh} {self.store}")

    def work(self) -> str:
        try:
            for session in (self.first, self.second):
                take_in(self.store, session, LATER, 1)
            set_most(self.store, 1)
        except TunectlError as error:
            return str(error)
        return ""

    def check(self, where: str) -> None:
        """Whole sessions, before or after, and what is named can be read; then it goes on as if nothing had been."""
        kept = read_manifest(self.store).latest()
        assert kept in (["first"], ["first", "second"], ["second"]), where
        said = rows(
            self.store, "SELECT session, host, made_at, patterns.knob FROM runs JOIN patterns USING (session, pattern)"
        )
        assert {(row[0], row[1]) for row in said} <= {("first", "a"), ("first", "b"), ("second", "a")}, where
        if "first" in kept:
            assert {row[1] for row in said if row[0] == "first"} == {"a", "b"}, where
            assert rows(self.store, "SELECT count(*) FROM findings WHERE session = 'first'") == [[1]], where
        assert not self.work(), where
        assert read_manifest(self.store).latest() == ["second"], where
        assert not [name for name in names(self.store) if name.endswith(".json") and name != "manifest.json"], where


@pytest.mark.slow
@pytest.mark.parametrize("stride", STRIDES)
def test_killed_at_every_write_it_leaves_whole_sessions(tmp_path: Path, stride: int) -> None:
    walk, boundary = Walk(tmp_path), 0
    for count in range(1, 10_000, stride):
        walk.lay()
        if not killed_at(count, walk.work):
            break
        boundary = count
        walk.check(f"boundary {count}")
    assert boundary > 40


@pytest.mark.slow
@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
def test_a_write_that_fails_is_said_and_leaves_whole_sessions(tmp_path: Path, stride: int, number: int) -> None:
    walk = Walk(tmp_path)
    walk.lay()
    calls = count_calls(changes, walk.work)
    assert calls > 40
    for place in range(1, calls + 1, thinned(stride, 1 if number == errno.EIO else 2)):
        walk.lay()
        said = failing_at(place, changes, number, walk.work, lasting=number == errno.ENOSPC)
        assert said is not None
        assert "\n" not in said
        walk.check(f"call {place}: {said}")


@pytest.mark.slow
@pytest.mark.parametrize("most", [64, 700, 2000, 4000])
def test_a_disk_that_is_full_under_the_engine_leaves_whole_sessions(tmp_path: Path, most: int) -> None:
    walk = Walk(tmp_path)
    walk.lay()

    def work() -> str:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
        said = walk.work()
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        return said

    said = in_child(work)
    assert said
    assert "\n" not in said
    walk.check(said)


@pytest.mark.slow
def test_killed_at_any_moment_it_leaves_whole_sessions(tmp_path: Path) -> None:
    """Also while the engine writes, of which no call of Python's tells."""
    walk = Walk(tmp_path)
    for moment in range(1, 12):
        walk.lay()
        child = os.fork()
        if child == 0:
            walk.work()
            os._exit(0)
        time.sleep(moment * 0.05)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        walk.check(f"moment {moment}")


def test_a_worker_that_is_killed_or_fails_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keep, "_A_WORKER", 2)
    session = written(tmp_path / "folders", fleet())
    for fail, said in (
        (lambda *_: os.kill(os.getpid(), signal.SIGKILL), "signal 9"),
        (_full, "No space left on device"),
    ):
        monkeypatch.setattr(keep, "_rows", fail)
        with pytest.raises(TunectlError, match=said):
            take_in(tmp_path / "store", session, NOW, 2)
        assert not read_manifest(tmp_path / "store").sessions
    monkeypatch.undo()
    assert take_in(tmp_path / "store", session, NOW, 2).documents == 12


def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def knob(store: Path, name: str) -> list[list[Any]]:
    with ask.asking(store) as connection:
        return ask.query(connection, ask.OF_KNOB, [name]).rows


def test_a_knob_over_the_sessions(tmp_path: Path) -> None:
    held = preflight("a", verify={"verdict": "compliant", "findings": [good("mm.swappiness"), good("irq.affinity[7]")]})
    for name, at, a in (("s1", BEGAN, held), ("s2", LATER, no_go("a", "mm.swappiness", "irq.affinity[7]"))):
        folder = written(tmp_path / "f", {"a": {**a, "at": at}, "b": preflight("b", at=at), "c": None}, name, at)
        take_in(tmp_path, folder, LATER, 1)
    absent = ["no document", 1, 0, "unreachable"]
    assert knob(tmp_path, "mm.swappiness") == [
        ["s1", "", "compliant", 2, 2, None],
        ["s1", "", *absent],
        ["s2", "", "compliant", 1, 1, None],
        ["s2", "", "drifted", 1, 1, ""],
        ["s2", "", *absent],
    ]
    assert knob(tmp_path, "irq.affinity") == [
        ["s1", "", *absent],
        ["s1", "", "no finding", 1, 0, None],
        ["s1", "N", "compliant", 1, 1, None],
        ["s2", "", *absent],
        ["s2", "", "no finding", 1, 0, None],
        ["s2", "N", "drifted", 1, 1, ""],
    ]
    assert knob(tmp_path, "irq.afinity") == []
    with ask.asking(tmp_path, "s1", "s2") as connection:
        found = ask.diff_in(connection, tmp_path, "s1", "s2", LATER)
    assert [(one.before, one.after, one.hosts) for one in found.verdicts] == [("go", "no-go", ["a"])]
    assert [(one.knob, one.instances, one.hosts_before, one.hosts_after, one.came) for one in found.causes] == [
        ("irq.affinity", "N", 0, 1, ["a"]),
        ("mm.swappiness", "", 0, 1, ["a"]),
    ]
    with ask.asking(tmp_path, "s2", "s1") as connection:
        back = ask.diff_in(connection, tmp_path, "s2", "s1", LATER)
    assert [(one.knob, one.went) for one in back.causes] == [("irq.affinity", ["a"]), ("mm.swappiness", ["a"])]


def test_a_session_that_says_nothing_of_a_knob_is_there_all_the_same(tmp_path: Path) -> None:
    """Who left no document is not in force, and a session of nobody's is one."""
    days: dict[str, dict[str, dict[str, Any] | None]] = {
        "s1": {"a": None, "b": None},
        "s2": {"a": no_go("a", "irq.affinity[7]"), "b": preflight("b", at=LATER)},
        "s3": {"a": preflight("a", at=LATER), "b": preflight("b", at=LATER), "c": preflight("c", at=LATER)},
    }
    for (name, hosts), at in zip(days.items(), (BEGAN, NOW, LATER), strict=True):
        folder = written(tmp_path / "f", hosts, name, at)
        if name == "s3":
            (Path(folder.directory) / "hosts/c.json").unlink()
        take_in(tmp_path, folder, LATER, 1)
    assert knob(tmp_path, "irq.affinity") == [
        ["s1", "", "no document", 2, 0, "unreachable"],
        ["s2", "", "no finding", 1, 0, None],
        ["s2", "N", "drifted", 1, 1, ""],
        ["s3", "", "no document", 1, 0, "silent"],
        ["s3", "", "no finding", 2, 0, None],
    ]


def test_a_cause_over_the_sessions(tmp_path: Path) -> None:
    made = preflight("a", max_ns=90_000)
    cpu = made["probe"]["cpus"][0]
    made["probe"]["labels"] = ["", "thread kworker/15:1"]
    start, ticks = cpu.setdefault("tsc_start", 1_000), made["probe"]["clock"]["hz"] / 1e9
    cpu["events"] = [[start + n, start + n + round(1_000 * n * ticks), 1] for n in range(1, 21)]
    cpu["events_lost"] = cpu["interruptions"] - 20
    take_in(tmp_path, written(tmp_path / "f", {"a": made, "b": no_go("b", "mm.swappiness")}), NOW, 1)
    with ask.asking(tmp_path) as connection:
        found = ask.query(connection, ask.OF_CAUSE, ["thread kworker/N"])
        assert found.columns == ["session", "what", "hosts", "times", "longest_ns"]
        assert found.rows == [["morning", "gaps", 1, 16, 20_000]]
        assert ask.query(connection, ask.OF_CAUSE, [""]).rows == [["morning", "mm.swappiness drifted", 1, 1, None]]


def test_a_histogram_holds_every_gap_at_most_an_eighth_too_long(tmp_path: Path) -> None:
    made = preflight("a")
    cpu = made["probe"]["cpus"][0]
    edges = [1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 1000, 1024, 1025, 99_999, (1 << 62) + 1, (1 << 63) - 1]
    cpu["histogram"] = [[edge, edge, 2] for edge in edges]
    cpu["interruptions"] = cpu["events_lost"] = 2 * len(edges)
    cpu["events"] = []
    take_in(tmp_path, written(tmp_path / "f", {"a": made}), NOW, 1)
    found = rows(tmp_path, "SELECT up_to_ns, gaps FROM histograms ORDER BY up_to_ns")
    assert sum(gaps for _, gaps in found) == 2 * len(edges)
    for edge in edges:
        up_to = min(up_to for up_to, _ in found if up_to >= edge)
        assert edge <= up_to <= edge * 1.125


REFUSED = [
    *("COPY runs TO '{place}/out.csv'", "ATTACH '{place}/x.db'", "CREATE TABLE x AS FROM runs", "SET threads = 1"),
    *("INSTALL httpfs", "CALL pragma_version()", "SELECT 1; SELECT 2", "", "DROP VIEW runs", "selec"),
    *("SELECT * FROM read_text('{place}/secret')", "SELECT * FROM read_csv('{place}/*')", "FROM '{place}/secret'"),
    *("SELECT * FROM glob('{place}/*')", "FROM read_parquet('{place}/other.parquet')", "SELECT getenv('HOME')"),
    *("FROM secret_of_the_program", "FROM read_parquet('https://127.0.0.1:1/x.parquet')", "EXPLAIN ANALYZE FROM runs"),
    *("SELECT * FROM query('COPY runs TO ''{place}/out.csv''')", "EXECUTE x", "PREPARE x AS SELECT 1"),
]


@pytest.mark.parametrize("text", REFUSED)
def test_a_query_sees_the_store_and_nothing_else(tmp_path: Path, text: str) -> None:
    secret_of_the_program = "secret"  # noqa: F841  (the engine could read a variable of this name)
    take_in(tmp_path, written(tmp_path / "f", {"a": preflight("a")}), NOW, 1)
    (tmp_path / "secret").write_text("secret\n")
    (tmp_path / "other.parquet").write_bytes(next(tmp_path.glob("session=*/runs-*")).read_bytes())
    before = names(tmp_path)
    with ask.asking(tmp_path) as connection, pytest.raises(UsageError) as refused:
        ask.query(connection, text.format(place=tmp_path))
    assert "\n" not in str(refused.value)
    assert names(tmp_path) == before


def test_a_query_that_takes_too_long_or_too_much_is_stopped(tmp_path: Path) -> None:
    take_in(tmp_path, written(tmp_path / "f", {"a": preflight("a")}), NOW, 1)
    with pytest.raises(TunectlError, match=r"longer than 0\.2 s"), ask.asking(tmp_path, limit_s=0.2) as connection:
        ask.query(connection, "SELECT count(*) FROM range(1000000000) a, range(1000) b")
    with (
        pytest.raises(TunectlError, match="the store: Out of Memory"),
        ask.asking(tmp_path, memory="50MB") as connection,
    ):
        ask.query(connection, "SELECT list(range) FROM range(100000000)")


def test_every_table_says_of_which_session_a_row_is(tmp_path: Path) -> None:
    take_in(tmp_path, written(tmp_path / "f", fleet()), NOW, 1)
    for table in TABLES.keys() - {"events"}:  # these documents list none
        assert rows(tmp_path, f"SELECT DISTINCT session FROM {table}") == [["morning"]]
