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
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.bench.bench_fleet_store import fill
from tests.cli.places import complaint
from tests.fleet.house import DATABASE, House, liar, serving
from tests.fleet.made import preflight, written
from tests.fleet.tables import SHIPPED, ddl
from tests.fleet.test_keep import HOSTILE, LATER, fleet, no_go, rows, without_places
from tests.long import cache
from tests.ran import Ran
from tunectl.errors import UsageError
from tunectl.fleet import ask, clickhouse
from tunectl.fleet.body import fleet_body
from tunectl.fleet.clickhouse import PASSWORD, Store, server_of
from tunectl.fleet.columns import CLICKHOUSE, TABLES, columns
from tunectl.fleet.keep import read_manifest, take_in
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


def exported(store: Store, table: str, fmt: str, place: Path) -> list[Any]:
    """What a program reads of it, in an order of its own."""
    place = place / f".{table}.{fmt}.part"  # as the command has it
    with ask.asking(store, writes=place) as connection:
        ask.export(connection, table, fmt, place)
    if fmt == "csv":
        with place.open(newline="") as file:
            return sorted(csv.reader(file))
    found = duckdb.execute(f"SELECT * FROM read_parquet('{place}')").fetchall()
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
    for session in every:
        taken, same = (take_in(store, session, NOW, 2) for store in stores)
        assert (taken.documents, taken.without, taken.named) == (same.documents, same.without, same.named)
        assert taken.documents > 10
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
    for question, values in asked:
        one, other = (question(store, *values) for store in stores)
        assert one == other, (question, values)
    print(f"{len(asked)} questions about {sum(len(session.hosts) for session in every)} hosts")


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
    "too large": ((200, {"Content-Length": str(300 * MIB), "X-Times": "300"}, b" " * MIB), "no end, or one that is too far away"),
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
