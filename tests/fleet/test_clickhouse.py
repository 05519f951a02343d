"""The fleet's columns in ClickHouse answer as those in DuckDB do, and no failure of a server loses a document.

What asks ClickHouse's own engine is in the long set: `python -m tests.long clickhouse` brings chdb, half a gigabyte.
"""

import csv
import gzip
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.bench.bench_fleet_store import fill
from tests.cli.places import complaint
from tests.cli.test_fleet import stamp
from tests.fleet.house import DATABASE, House, liar, serving
from tests.fleet.made import preflight, written
from tests.fleet.tables import SHIPPED, ddl
from tests.fleet.test_keep import HOSTILE, LATER, fleet, no_go, of_folder, without_places
from tests.long import cache
from tests.ran import Ran
from tunectl.errors import TunectlError, UsageError
from tunectl.fleet import ask, clickhouse
from tunectl.fleet.body import fleet_body
from tunectl.fleet.clickhouse import PASSWORD, Store, server_of
from tunectl.fleet.columns import CLICKHOUSE, TABLES, columns
from tunectl.fleet.keep import read_manifest, set_most, take_in
from tunectl.fleet.peers import PEERS
from tunectl.fleet.records import Session
from tunectl.fleet.store import read_session
from tunectl.shapes import now_utc

Run = Callable[..., Ran]
NOW = now_utc()
PLAIN = (
    "SELECT session, verdict, answer, count(*) AS hosts FROM hosts GROUP BY session, verdict, answer ORDER BY 1, 2, 3",
    "SELECT session, sum(gaps) AS gaps, max(up_to_ns) AS longest FROM histograms GROUP BY session ORDER BY session",
    "SELECT session, cpu, count(*) AS n, min(at_ns), max(length_ns) FROM events GROUP BY session, cpu ORDER BY 1, 2",
    "SELECT bios, kernel, sockets, max(max_ns), min(loop_ns), avg(p99_9_ns) FROM runs GROUP BY bios, kernel, sockets "
    "ORDER BY bios, kernel, sockets",
    "SELECT knob, instances, outcome, sum(targets) FROM findings GROUP BY knob, instances, outcome ORDER BY 1, 2, 3",
    "SELECT runs.host, count(*) AS outcomes FROM runs JOIN patterns ON patterns.session = runs.session "
    "AND patterns.pattern = runs.pattern GROUP BY runs.host ORDER BY runs.host",
    "SELECT session, host, problem FROM hosts WHERE problem <> '' ORDER BY session, host",
    "SELECT session, host, reasons, looser, unexplained, cards, todo FROM runs ORDER BY session, host",
)
NO_ROWS = b'{"meta": [], "data": [], "rows": 0}'
BROKEN = b'{"meta": [{"name": "a", "type": "String"}], "data": [["x"],\nCode: 395. DB::Exception: it broke. (THROWN)'


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """ClickHouse's engine, which a process has once."""
    place = cache() / "chdb"
    if importlib.util.find_spec("chdb") is None:
        if not (place / "chdb").is_dir():
            if os.environ.get("TUNECTL_CHDB") != "required":
                pytest.skip("chdb is not installed: python -m tests.long clickhouse")
            wanted = ("chdb==4.4.0", "chdb-core==26.9.0")
            subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", place, *wanted], check=True)
        sys.path.append(str(place))
    made = House(tmp_path_factory.mktemp("clickhouse"))
    yield made
    made.close()


@pytest.fixture
def url(house: House) -> Iterator[str]:
    """An address for --store; its tables are new."""
    house.ask(f"DROP DATABASE IF EXISTS {DATABASE} SYNC")
    house.ask(f"CREATE DATABASE {DATABASE}")
    house.make()
    with serving(house) as url:
        yield url


def rows(store: Store, query: str) -> list[list[Any]]:
    with ask.asking(store) as connection:
        return ask.query(connection, query).rows


def body(store: Store, name: str, peers: str) -> dict[str, Any]:
    with ask.asking(store, name) as connection:
        session, answers = ask.session_in(connection, store, name)
        made = fleet_body(session, answers, NOW, partial(ask.causes_in, connection, name), peers)
    return without_places(made)


def answered(store: Store, question: str, value: str) -> ask.Answered:
    with ask.asking(store) as connection:
        return ask.query(connection, question, [value])


def diff(store: Store, before: str, after: str) -> ask.Diff:
    with ask.asking(store, before, after) as connection:
        return ask.diff_in(connection, store, before, after, NOW)


def history(store: Store, host: str) -> list[Any]:
    with ask.asking(store) as connection:
        found = ask.answers_in(connection, store, host=host)
    return [(session._replace(directory=""), asked) for session, asked in found]


def exported(store: Store, table: str, fmt: str, place: Path, *, raw: bool = False) -> list[Any]:
    """What a program reads of it, in an order of its own."""
    place = place / f".{table}.{fmt}.part"  # as the command has it
    with ask.asking(store, writes=place) as connection:
        ask.export(connection, table, fmt, place, raw=raw)
    if fmt == "csv":
        found: list[Any] = [*csv.reader(place.read_text().splitlines(keepends=True))]
        place.unlink()
        return sorted(found)
    found = duckdb.execute(f"SELECT * FROM read_parquet('{place}')").fetchall()
    place.unlink()
    return sorted(repr([value for value in row if not isinstance(value, list)]) for row in found)


def sessions_of_all_kinds(place: Path) -> list[Session]:
    """Made-up ones, hostile names among them, and generated ones of documents as hosts make them."""
    hostile = no_go("x", f"mm.swappiness[{HOSTILE}]")
    hostile["host"]["hostname"] = hostile["hardware"]["product"] = HOSTILE
    later = {**fleet(), "tx-01": no_go("tx-01", "mm.swappiness"), HOSTILE: hostile, "it's \\' \n{}": hostile}
    found = [written(place / "f", fleet()), written(place / "f", later, "noon", LATER)]
    for name, hosts, large in (("small", 150, False), ("few", 120, False), ("large", 40, True)):
        fill(place / name, hosts, large=large)
        found.append(read_session(place / name, [f"tx-{number:05}" for number in range(hosts + 3)]))
    return found


@pytest.mark.long
def test_both_engines_give_the_same_answers(url: str, tmp_path: Path) -> None:
    stores: list[Store] = [server_of(url), tmp_path / "duck"]
    every = sessions_of_all_kinds(tmp_path)
    documents = 0
    for session in every:
        taken, same = (take_in(store, session, NOW, 2) for store in stores)
        assert (taken.documents, taken.without, taken.named) == (same.documents, same.without, same.named)
        documents += taken.documents
    names = [session.name for session in every]
    hosts = {row[0] for row in rows(tmp_path / "duck", "SELECT DISTINCT host FROM hosts ORDER BY host LIMIT 60")}
    knobs = {row[0] for row in rows(tmp_path / "duck", "SELECT knob FROM patterns UNION SELECT knob FROM findings")}
    causes = {row[0] for row in rows(tmp_path / "duck", "SELECT cause FROM findings UNION SELECT cause FROM events")}
    asked: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        *((body, (name, peers)) for name in names for peers in PEERS),
        *((diff, (before, after)) for before in names for after in names),
        *((history, (host,)) for host in {*hosts, HOSTILE, "it's \\' \n{}", "nobody"}),
        *((answered, (ask.OF_KNOB, knob)) for knob in {*knobs, "no.such"}),
        *((answered, (ask.OF_CAUSE, cause)) for cause in {*causes, "", "kworker/N", HOSTILE}),
        *((exported, (table, "csv", tmp_path)) for table in TABLES if table != "runs"),  # it has lists
        *((exported, (table, "parquet", tmp_path)) for table in TABLES),
        *((rows, (query,)) for query in PLAIN),
        (lambda store: {name: kept.at for name, kept in read_manifest(store).sessions.items()}, ()),
    ]
    assert len(asked) > 200, len(asked)
    assert documents > 330
    for question, values in asked:
        one, other = (question(store, *values) for store in stores)
        assert one == other, (question, values)
    print(f"{len(asked)} questions about {documents} documents")


@pytest.mark.long
def test_taken_in_twice_it_is_there_once_and_a_later_document_stays(url: str, house: House, tmp_path: Path) -> None:
    server = server_of(url)
    session = written(tmp_path, {"a": preflight("a"), "b": None})
    assert take_in(server, session, NOW, 1).changed == 2
    assert (take_in(server, session, NOW, 1).known, rows(server, COUNTS)) == (1, [[1, 1, 2]])
    earlier = preflight("a", at="2026-11-21T08:30:01Z")
    (Path(session.directory) / "hosts/a.json").write_text(json.dumps(earlier))
    assert "the one that is kept of" in take_in(server, session, NOW, 1).named[0].problem
    (Path(session.directory) / "hosts/a.json").write_text(json.dumps({**no_go("a", "mm.swappiness"), "at": LATER}))
    (Path(session.directory) / "hosts/b.json").write_text(json.dumps(preflight("b")))
    assert take_in(server, session, NOW, 1).documents == 2
    assert rows(server, "SELECT host, said FROM runs ORDER BY host") == [["a", "no-go"], ["b", "go"]]
    assert rows(server, COUNTS) == [[2, 1, 2]]
    take_in(server, session._replace(name="before", at="2026-11-20T08:00:00Z"), NOW, 1)
    assert set_most(server, 1) == ["before"]
    assert list(read_manifest(server).sessions) == ["morning"]
    assert house.ask("SELECT count() FROM runs_kept WHERE session = 'before'") == b"0\n"


COUNTS = "SELECT (SELECT count(*) FROM runs), count(DISTINCT session), count(*) FROM hosts"


@pytest.mark.long
@pytest.mark.parametrize("number", range(6))
def test_what_breaks_off_is_seen_by_nobody(
    url: str, house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """At each INSERT, also where all of its rows were taken."""
    server, session = server_of(url), written(tmp_path, fleet())
    answer, seen = House.answer, []

    def fail(self: House, query: str, settings: dict[str, str]) -> bytes:
        found = answer(self, query, settings)
        if query.startswith("INSERT"):
            seen.append(query)
            if len(seen) == number + 1:
                raise RuntimeError("Code: 243. DB::Exception: the disk is full. (NOT_ENOUGH_SPACE)")
        return found

    with monkeypatch.context() as patched:
        patched.setattr(House, "answer", fail)
        if number < len(seen) or number < 5:
            with pytest.raises(TunectlError, match="the disk is full"):
                take_in(server, session, NOW, 1)
    is_last = seen[-1].startswith("INSERT INTO hosts_kept") if seen else False
    assert list(read_manifest(server).sessions) == (["morning"] if is_last else [])
    take_in(server, session, NOW, 1)
    assert body(server, "morning", "hardware") == without_places(of_folder(session, NOW))
    assert take_in(server, session, NOW, 1).changed == 0


@pytest.mark.long
def test_two_who_take_in_at_the_same_time_lose_nothing(url: str, tmp_path: Path) -> None:
    server = server_of(url)
    several = [written(tmp_path / half, {f"{half}{n}": preflight() for n in range(20)}) for half in "ab"]
    with ThreadPoolExecutor() as pool:
        both = pool.map(lambda session: take_in(server, session, NOW, 1), several)
        assert [one.documents for one in both] == [20, 20]
    assert rows(server, COUNTS) == [[40, 1, 40]]


@pytest.mark.long
def test_older_tables_are_named_and_brought_up_to_date(url: str, house: House, tmp_path: Path) -> None:
    server, session = server_of(url), written(tmp_path, fleet())
    house.ask("ALTER TABLE runs_kept DROP COLUMN loop_ns")
    with pytest.raises(TunectlError, match=r"runs_kept\.loop_ns is not there.*tunectl\.sql"):
        read_manifest(server)
    house.make()
    assert take_in(server, session, NOW, 1).documents == 12
    house.ask("ALTER TABLE runs_kept MODIFY COLUMN machine LowCardinality(String)")
    assert body(server, "morning", "fleet")["verdict"] == "no-go"
    house.ask("ALTER TABLE runs_kept MODIFY COLUMN waivers String")
    with pytest.raises(TunectlError, match=r"runs_kept\.waivers is String, and should be Int64"):
        body(server, "morning", "fleet")


@pytest.mark.long
@pytest.mark.parametrize(
    "rows",
    [
        "INSERT INTO hosts_kept (session, take, host, answer) VALUES ('x', 't', 'h', 'nonsense')",
        "INSERT INTO hosts_kept (session, take, host, answer) VALUES ('x', 't', 'h', 'document');"
        "INSERT INTO runs_kept (session, take, host, made_at, cards) VALUES ('x', 't', 'h', '2026', '{')",
        "INSERT INTO hosts_kept (session, take, host, answer) VALUES ('x', 't', 'h', 'document');"
        "INSERT INTO runs_kept (session, take, host, made_at, cards, todo) VALUES ('x', 't', 'h', '2026', '[1]', '[]')",
    ],
)
def test_rows_that_others_wrote_are_said_in_one_line(url: str, house: House, tunectl: Run, rows: str) -> None:
    for query in rows.split(";"):
        house.ask(query)
    assert "'h' in 'x' is no row of tunectl's" in complaint(tunectl("fleet", "report", "x", "--store", url), 1)


REFUSED = """\
DROP TABLE hosts_kept
SELECT 1; SELECT 2
INSERT INTO hosts_kept SELECT * FROM hosts_kept
SHOW TABLES
SYSTEM SHUTDOWN
CREATE TEMPORARY TABLE x (a String)
SET readonly = 0
SELECT 1 SETTINGS readonly = 0
SELECT * FROM system.tables
SELECT * FROM hosts_kept
SELECT host IN system.tables FROM hosts
SELECT (SELECT name FROM system.users LIMIT 1)
SELECT * FROM hosts WHERE host IN (SELECT name FROM system.tables)
SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a String')
SELECT * FROM file('/etc/passwd', 'LineAsString')
SELECT * FROM remote('127.0.0.1:1', system.one)
SELECT * FROM s3('http://127.0.0.1:1/x', 'CSV', 'a String')
SELECT * FROM executable('x', 'CSV', 'a String')
SELECT * FROM merge('system', 'tables')
SELECT * FROM view(SELECT * FROM system.tables)
SELECT file('/etc/passwd')
SELECT FILE('/etc/passwd')
SELECT `file`('/etc/passwd')
WITH x AS (SELECT file('/etc/passwd') AS a) SELECT a FROM x
SELECT dictGet('d', 'x', 1)
SELECT joinGet('system.x', 'a', 1)
SELECT * FROM hosts INTO OUTFILE '/tmp/tunectl-none'
DESCRIBE url('http://127.0.0.1:1/')
EXPLAIN SELECT 1
SELEC

SELECT nothing FROM hosts
, run_passes = 0 SELECT * FROM system.tables
SELECT 1 FORMAT CSV
""".splitlines()


@pytest.mark.long
def test_a_query_sees_the_store_and_nothing_else(url: str, tmp_path: Path) -> None:
    server = server_of(url)
    take_in(server, written(tmp_path, fleet()), NOW, 1)
    for text in REFUSED:
        with pytest.raises(TunectlError) as refused, ask.asking(server, memory="500MB", limit_s=5) as connection:
            ask.query(connection, text, most=10)
        assert "root:" not in str(refused.value), text
    assert not Path("/tmp/tunectl-none").exists()
    assert rows(server, "WITH x AS (SELECT * FROM daily) SELECT hosts, go, no_go, unknown FROM x") == [[13, 9, 2, 2]]
    with ask.asking(server, memory="500MB", limit_s=5) as connection:
        found = ask.query(connection, "SELECT host FROM hosts ORDER BY host", most=2)
    assert (found.rows, found.more) == ([["tx-00"], ["tx-01"]], True)
    slow = f"SELECT count(*) FROM findings, {', '.join(f'histograms AS h{n}' for n in range(9))}"
    with pytest.raises(TunectlError, match="TIMEOUT"), ask.asking(server, memory="50MB", limit_s=0.5) as connection:
        ask.query(connection, slow)


@pytest.mark.long
def test_the_commands_are_the_same(tunectl: Run, url: str, tmp_path: Path) -> None:
    written(tmp_path / "f", {"tx-01": preflight("tx-01", at=stamp(24)), "tx-02": None}, "yesterday", stamp(24))
    today = {**no_go("tx-01", "mm.swappiness"), "at": stamp()}
    other = preflight("tx-02", at=stamp())
    written(tmp_path / "f", {"tx-01": today, HOSTILE: today, "tx-02": other}, "today", stamp())
    folders = [str(tmp_path / "f" / name) for name in ("yesterday", "today")]
    stores = (url, str(tmp_path / "duck"))
    asked = (
        ["keep", *folders],
        *(
            ["report"],
            ["report", "yesterday"],
            ["report", "today", "--peers", "kernel"],
            ["diff", "yesterday", "today"],
        ),
        *(["history", "tx-01"], ["history", "--knob", "mm.swappiness"]),
        ["sql", "SELECT session, host, said FROM runs ORDER BY session, host"],
    )
    for words in asked:
        done, same = (
            tunectl("fleet", *words, "--store", store, "--format", "json", env={"XDG_STATE_HOME": str(tmp_path / "x")})
            for store in stores
        )
        one, another = (json.loads(each.out) for each in (done, same))
        for made in (one, another):
            for key in ("at", "store", "host"):
                made.pop(key, None)
            made.get("session", {}).pop("directory", None)
            for each in made.get("sessions", []):
                each.get("session", {}).pop("directory", None)
        assert (done.code, done.err, one) == (same.code, same.err, another), words
        assert not {"\x1b", "\x00"} & set(done.out)
    for fmt, begins in (("csv", b'"session"'), ("parquet", b"PAR1")):
        to = tmp_path / f"runs.{fmt}"
        assert tunectl("fleet", "export", "today", "--format", fmt, "--output", to, "--store", url).code == 0
        assert to.read_bytes().startswith(begins)
        assert to.read_bytes().count(b"yesterday") == 0
    assert not list(tmp_path.glob(".*"))


@pytest.mark.long
def test_what_hosts_insert_themselves_becomes_a_folder_that_is_kept(url: str, house: House, tmp_path: Path) -> None:
    for number, name in enumerate(("a", "b'\\; DROP", "c")):
        made = preflight(name, at=f"2026-11-21T08:30:0{number}Z")
        for _ in range(2):  # it is handed in again where the answer was lost
            settings = {"insert_deduplication_token": str(number)}
            query = f"INSERT INTO documents (document) FORMAT JSONAsString\n{json.dumps(made, indent=1)}"
            house.answer(query, settings)
    assert house.ask("SELECT host, day FROM documents ORDER BY host", "TSV").decode().splitlines() == [
        "a\t2026-11-21",
        "b\\'\\\\; DROP\t2026-11-21",
        "c\t2026-11-21",
    ]
    with pytest.raises(Exception, match="INCORRECT_DATA"):
        house.answer("INSERT INTO documents (document) FORMAT JSONAsString\nnone", {"max_threads": "1"})


def test_the_shipped_tables_are_those_of_the_description() -> None:
    assert SHIPPED.read_text() == ddl(), "python -m tests.fleet.tables"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("clickhouse://db/fleet", "http://db:8123/fleet"),
        ("clickhouses://desk@db/fleet/", "https://db:8443/fleet"),
        ("clickhouse://[::1]:9000/fleet", "http://[::1]:9000/fleet"),
    ],
)
def test_an_address_is_read(url: str, said: str) -> None:
    assert str(server_of(url)) == said


@pytest.mark.parametrize(
    "url",
    [
        "clickhouse://",
        "clickhouse:///fleet",
        "clickhouse://db",
        "clickhouse://db/",
        "clickhouse://db:0/fleet",
        "clickhouse://db:99999/fleet",
        "clickhouse://db:x/fleet",
        "clickhouse://db/fleet/other",
        "clickhouse://db/../fleet",
        "clickhouse://db/fl%65et",
        "clickhouse://db/fleet;DROP DATABASE fleet",
        "clickhouse://db/fleet?query=DROP",
        "clickhouse://db/fleet?password_file=",
        "clickhouse://db/fleet?password=s3cret",
        "clickhouse://db/fleet#s3cret",
        "clickhouse://desk:s3cret@db/fleet",
        "clickhouse://de%0ask@db/fleet",
        "clickhouse://d\u00e9sk@db/fleet",
        "clickhouse://db\n/fleet",
        "clickhouse://d b/fleet",
        "clickhouse://[::1/fleet",
        "clickhouse:db/fleet",
        "clickhouse://db/fleet?password_file=/x",  # in the clear
    ],
)
def test_what_is_no_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        server_of(url)
    assert "s3cret" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_every_word_of_the_table_is_asked() -> None:
    asked = Path(ask.__file__).read_text()
    for pattern, _ in clickhouse._CALLED:
        assert re.search(pattern, asked), pattern


def table(*rows: list[Any], **kinds: str) -> bytes:
    meta = [{"name": name, "type": kind} for name, kind in kinds.items()]
    return json.dumps({"meta": meta, "data": rows, "rows": len(rows)}).encode()


TABLES_THERE = table(
    *([f"{name}_kept", column, kind] for name in TABLES for column, kind in columns(name, CLICKHOUSE).items()),
    table="String",
    name="String",
    type="String",
)
OK: tuple[tuple[int, dict[str, str], bytes], ...] = (
    (200, {}, TABLES_THERE),
    (200, {}, table(session="String", began="String", made="String")),
)
AUTH = b"Code: 516. DB::Exception: desk: Authentication failed. (AUTHENTICATION_FAILED) (version 26.9 (official build))"
MIB = 1 << 20
GZIP = gzip.compress(b" " * (20 * MIB), 9)
WRONG: dict[str, tuple[tuple[int, dict[str, str], bytes], str]] = {
    "no right": ((403, {"X-ClickHouse-Exception-Code": "516"}, AUTH), "Authentication failed"),
    "no right, no word": ((401, {}, b"<html>who?</html>"), "answers 401 Unauthorized"),
    "an error with 200": ((200, {"X-ClickHouse-Exception-Code": "395"}, BROKEN), "it broke"),
    "an error in the middle": ((200, {}, BROKEN), "it broke. (THROWN)"),
    "a page": ((200, {}, b"<html>Welcome</html>"), "no whole table"),
    "nothing": ((200, {}, b""), "no whole table"),
    "no table": ((200, {}, b"[1, 2]"), "no whole table"),
    "a nameless column": ((200, {}, b'{"meta": [{}], "data": [[1]], "rows": 1}'), "no whole table"),
    "deep": ((200, {}, b"[" * 1_000_000), "no whole table"),
    "cut": ((200, {}, table(["a", "b", "c"], table="String", name="String", type="String")[:-9]), "no whole table"),
    "fewer rows": ((200, {}, b'{"meta": [], "data": [], "rows": 3}'), "no whole table"),
    "wrong types": ((200, {}, table([1, None, {}], table="String", name="String", type="String")), "no whole table"),
    "too few columns": ((200, {}, table(["a"], table="String", name="String", type="String")), "no whole table"),
    "no Unicode": ((200, {}, b'{"meta": [{"name": "\xff", "type": "x"}], "data": [], "rows": 0}'), "no whole table"),
    "another schema": ((200, {}, table(["runs_kept", "host", "Int8"], table="String", name="String", type="String")),
                       "hosts_kept.host is not there"),
    "a redirect": ((302, {"Location": "http://127.0.0.1:1/"}, b""), "302, a redirect, which is not followed"),
    "a bomb": ((200, {"Content-Encoding": "gzip"}, GZIP), "no whole table"),
    "half an answer": ((200, {"Content-Length": "999"}, b"{"), "its answer broke off"),
    "too large": ((200, {"Content-Length": str(300 * MIB), "X-Times": "300"}, b" " * MIB), "one that is too far away"),
    "an escape": ((500, {}, b"Code: 1. DB::Exception: \x1b[31m\x00\xff. (\x1b)"), "DB"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
def test_a_server_that_is_none_is_said_in_one_line(tunectl: Run, tmp_path: Path, kind: str) -> None:
    answer, said = WRONG[kind]
    folder = written(tmp_path, {"tx-01": preflight("tx-01")})
    for words in (["report"], ["keep", folder.directory], ["sql", "SELECT 1"], ["history", "--knob", "x"]):
        if kind == "too large" and words != ["report"]:
            continue
        with liar(answer) as (url, _):
            done = tunectl("fleet", *words, "--store", url, env={"XDG_STATE_HOME": str(tmp_path / "none")})
        if kind != "an escape" and words[0] != "sql":
            assert said in complaint(done, 1)
        assert (done.code in (1, 2), done.out, done.err.count("\n")) == (True, "", 1), done.err
        assert not {"\x1b", "\x00"} & set(done.err)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([(200, {}, b"")], "no whole table"),  # it confirms each INSERT, and has nothing
        ([(200, {}, b""), (200, {}, table([0], n="UInt64"))], "and has 0 of them"),
        ([(200, {}, b"<html>OK</html>")], "no confirmation"),
        ([(200, {}, BROKEN)], "it broke"),
        ([(500, {}, b"Code: 241. DB::Exception: too much. (MEMORY_LIMIT_EXCEEDED)")], "too much. (MEMORY"),
    ],
)  # fmt: skip
def test_a_server_that_confirms_and_keeps_nothing_is_said(
    tunectl: Run, tmp_path: Path, answers: list[tuple[int, dict[str, str], bytes]], said: str
) -> None:
    folder = written(tmp_path, {"tx-01": preflight("tx-01")})
    nothing = table(host="String", digest="String", rack="String", expected="Bool", at="String")
    with liar(*OK, (200, {}, nothing), *answers) as (url, asked):
        done = tunectl("fleet", "keep", folder.directory, "--store", url)
    assert said in complaint(done, 1)
    assert not any(body.startswith(b"INSERT INTO hosts_kept") for _, body in asked)


def test_nobody_there_is_said(tunectl: Run) -> None:
    done = tunectl("fleet", "report", "--store", "clickhouse://127.0.0.1:1/fleet")
    assert complaint(done, 1) == "http://127.0.0.1:1: Connection refused"


@pytest.mark.slow
def test_a_server_that_is_too_slow_is_left(tunectl: Run) -> None:
    with liar(*OK, "hang") as (url, _):
        done = tunectl("fleet", "sql", "SELECT 1", "--limit", "0.1", "--store", url)
    assert "no session is kept there" in complaint(done, 1) or "no answer within" in complaint(done, 1)


def test_a_password_goes_into_a_header_and_nowhere_else(tunectl: Run, tmp_path: Path) -> None:
    held = tmp_path / "held"
    held.write_text("s3cret\n")
    held.chmod(0o600)
    with liar((403, {}, AUTH)) as (url, asked):
        from_file = tunectl("fleet", "report", "--store", url.replace("//", "//desk@") + f"?password_file={held}")
        from_variable = tunectl("fleet", "report", "--store", url, env={PASSWORD: "s3cret"})
        held.chmod(0o644)
        readable = tunectl("fleet", "report", "--store", f"{url}?password_file={held}")
    assert [headers["X-ClickHouse-Key"] for headers, _ in asked] == ["s3cret"] * 2
    assert asked[0][0]["X-ClickHouse-User"] == "desk"
    assert not any("s3cret" in done.out + done.err for done in (from_file, from_variable, readable))
    assert "others than its owner may read it" in complaint(readable, 1)
