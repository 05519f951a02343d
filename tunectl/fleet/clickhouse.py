"""The same tables in a database of ClickHouse's, over HTTP: filled and asked. DuckDB's part is `engine`.

    TABLE_kept     rows as they were inserted, never changed, each with the `take` that it came with
    takes          of each host of a session the take that counts: that of its latest row in hosts_kept
    TABLE          a view of what counts (shipped/clickhouse/tunectl.sql makes all of these)

Rows in hosts_kept are inserted last, in one block: until then nothing of a take is seen, and then all of it. A take
that broke off is seen by nobody and goes with its session; two who take in at the same time do not disturb each other.
"""

import os
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import msgspec

from tunectl.address import Address, address_of, secret
from tunectl.command import control_in, quoted
from tunectl.errors import TunectlError, UsageError
from tunectl.fleet.columns import CLICKHOUSE, FORMULA, TABLES, UNSHOWN, columns
from tunectl.fleet.manifest import KeptSession, Manifest

SCHEMES = {"clickhouse": ("http", 8123), "clickhouses": ("https", 8443)}
PASSWORD = "TUNECTL_CLICKHOUSE_PASSWORD"
_ADDRESS = "clickhouse[s]://[USER@]HOST[:PORT]/DATABASE[?password_file=FILE][&ca_file=FILE]"
_DATABASE = re.compile(r"/([A-Za-z_][A-Za-z0-9_]{0,99})/?")
_TIMEOUT_S = 600.0
_LARGEST = 256 << 20  # bytes of an answer that is held in memory
_LARGEST_EXPORT = 1 << 40
_PIECE = 1 << 20  # bytes of a file that are sent at once
_END = 1 << 16  # bytes of an answer in which an error stands
_COMPLAINT = 400  # characters of what the server says is wrong
_SETTINGS = {
    "default_format": "JSONCompact",
    "join_use_nulls": 1,
    "joined_subquery_requires_alias": 0,
    "max_query_size": _LARGEST,
    "output_format_json_quote_64bit_integers": 0,
    "output_format_json_validate_utf8": 1,
    "wait_end_of_query": 1,  # else an answer begins with 200 whatever becomes of it
    "async_insert": 0,
    "input_format_parallel_parsing": 0,  # a body is a block: hosts appear at once
    "input_format_skip_unknown_fields": 0,
}
_NO_MORE: dict[str, Any] = {}
_FORMATS = {"csv": "CSVWithNames", "parquet": "Parquet"}
_PASSWORD_HINT = f"{PASSWORD}, or ?password_file=FILE"
_OLDER = "clickhouse/tunectl.sql, which is shipped, makes the tables, and brings older ones up to date"
_HINTS = {
    **dict.fromkeys(("UNKNOWN_DATABASE", "UNKNOWN_TABLE"), _OLDER),
    **dict.fromkeys(("AUTHENTICATION_FAILED", "REQUIRED_PASSWORD"), _PASSWORD_HINT),
    **dict.fromkeys(("TIMEOUT_EXCEEDED", "MEMORY_LIMIT_EXCEEDED"), "ask for less, or raise --limit or --memory"),
}
_TYPES: dict[str, Any] = {**{name: kind for kind, name in CLICKHOUSE.items()}, "UInt64": int}
# What the questions of `ask` are written in, and what ClickHouse calls it.
_CALLED = (
    (r"quantile_disc\((\w+), 0\.5\)", r"arraySort(groupArray(\1))[toUInt64(ceil(count() * 0.5))]"),
    (r"string_agg\(DISTINCT (\w+), ('[^']*') ORDER BY \1\)", r"arrayStringConcat(arraySort(groupUniqArray(\1)), \2)"),
    (r"regexp_replace\((\w+), ('[^']*'), ('\w*'), 'g'\)", r"replaceRegexpAll(\1, \2, \3)"),
    (r"\bhash\(", "sipHash64("),
    (
        r"unnest\((\S+)\) AS (\w+), unnest\((\S+)\) AS (\w+), unnest\(range\((\S+)\)\) AS (\w+)",
        r"arrayJoin(arrayZip(\1, \3, range(\5))) AS each, each.1 AS \2, each.2 AS \4, each.3 AS \6",
    ),
    (r"::VARCHAR\[\]", "::Array(String)"),
)
# Functions that read what is no table; `readonly` refuses table functions, but for plain ones, by itself.
_REACHING = re.compile(
    r"table_function_name: (\w+)|function_name: (file|dict\w*|joinGet\w*|catboostEvaluate|evalMLMethod)\b",
    re.IGNORECASE,
)


class Server(NamedTuple):
    """A database of ClickHouse's."""

    address: Address
    database: str
    user: str = ""
    password_file: str = ""
    ca_file: str = ""

    def __str__(self) -> str:
        return f"{self.address}/{self.database}"


Store = Path | Server  # where the columns are


class _Table(msgspec.Struct):
    """An answer in the format JSONCompact, which ends with its number of rows."""

    meta: list[dict[str, str]]
    data: msgspec.Raw
    rows: int


def server_of(url: str) -> Server:
    """UsageError, which repeats no part of the URL: it may hold a password."""
    try:
        parts = urlsplit(url)
        scheme, port = SCHEMES[parts.scheme]
        port = port if parts.port is None else parts.port
        files = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except (KeyError, ValueError):
        raise UsageError("--store: is no address of a server", _ADDRESS) from None
    if parts.password is not None:
        raise UsageError("--store: whoever lists processes reads a password there", _PASSWORD_HINT)
    database, user = _DATABASE.fullmatch(parts.path), unquote(parts.username or "")
    if not database or parts.fragment or not files.keys() <= {"password_file", "ca_file"} or not all(files.values()):
        raise UsageError("--store: is no address of a database", _ADDRESS)
    if control_in(url + user) or not user.isascii():
        raise UsageError("--store: is no address", "printable ASCII")
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    has_secret = files.get("password_file") or os.environ.get(PASSWORD)
    return Server(address_of(f"{scheme}://{host}:{port}/", "--store", has_secret), database[1], user, **files)


def _literal(value: str | int | Sequence[str]) -> str:
    """A value in ClickHouse's SQL."""
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\0") + "'"
    return str(value) if isinstance(value, int) else f"[{', '.join(map(_literal, value))}]"


def _spelled(query: str, values: Sequence[Any]) -> str:
    """A question of `ask` in ClickHouse's words."""
    for pattern, called in _CALLED:
        query = re.sub(pattern, called, query)
    numbers = iter(range(len(values)))
    marks = r"\$(\d)" if "$1" in query else r"()\?"
    return re.sub(marks, lambda at: _literal(values[int(at[1]) - 1 if at[1] else next(numbers)]), query)


class Connection:
    """A server that is asked in what `ask` is written in; these sessions or all are exported."""

    def __init__(self, server: Server, sessions: Sequence[str] = (), memory: str = "", limit_s: float = 0.0) -> None:
        self._server, self._sessions = server, sessions
        most = int(memory.removesuffix("MB") or 0) * 1_000_000  # 0: as the server has it
        self._limits = {"readonly": 1, "max_memory_usage": most, "max_execution_time": limit_s or _TIMEOUT_S}
        self._found: list[tuple[Any, ...]] = []

    def execute(self, query: str, values: Sequence[Any] = ()) -> "Connection":
        """Asks a question of ours."""
        self._found = self._rows(_spelled(query, values))[1]
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        """What the last one was answered."""
        return self._found

    def query(self, text: str, values: Sequence[Any], most: int) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The columns of a SELECT, and `most` rows and perhaps more. Without values it is a user's.

        UsageError where that is not one SELECT over tables of the store, by ClickHouse's own parser and analyser.
        """
        if values:
            return self._rows(_spelled(text, values))
        ours = {"system.one", *(f"{self._server.database}.{name}" for name in (*TABLES, "daily"))}
        for passes in (0, 1):  # what is named, then what that is: to know that, a table function may read already
            _, tree = self._rows(f"EXPLAIN QUERY TREE run_passes = {passes} {text}", UsageError)
            found = "\n".join(str(row[0]) for row in tree)
            if not found.startswith(("QUERY", "UNION")):
                raise UsageError("fleet sql: exactly one SELECT is taken", f"over {', '.join(TABLES)}")
            if reached := _REACHING.search(found):
                name = reached[1] or reached[2]
                raise UsageError(f"fleet sql: {name}() is not taken", "it may read what is no table of the store")
            if others := set(re.findall(r"TABLE id: .*table_name: (.*)", found)) - ours:
                what = f"fleet sql: {quoted(min(others))} is no table of the store"
                raise UsageError(what, f"{', '.join(TABLES)}, daily")
        return self._rows(
            text, UsageError, {"max_result_rows": most + 1, "result_overflow_mode": "break"} if most else {}
        )

    def export(self, table: str, fmt: str, path: Path, harmless: Sequence[str]) -> None:
        """A table as a file; in `harmless` columns no text is a formula or an escape sequence."""
        unshown, formula = _literal(UNSHOWN), _literal(FORMULA)
        shown = [f"replaceRegexpAll(toString({name}), {unshown}, '\N{REPLACEMENT CHARACTER}')" for name in harmless]
        pairs = zip(harmless, shown, strict=True)
        cells = [f"replaceRegexpOne({each}, {formula}, '\\'\\\\0') AS {name}" for name, each in pairs]
        replaced = f" REPLACE ({', '.join(cells)})" if cells else ""
        only = f" WHERE session IN ({', '.join(map(_literal, self._sessions))})" if self._sessions else ""
        query = f"SELECT *{replaced} FROM (SELECT * FROM {table}{only}) FORMAT {_FORMATS[fmt]}".encode()
        with open(path, "w+b") as stream:
            _post(self._server, query, {**self._limits, "format_csv_null_representation": ""}, into=stream)

    def _rows(
        self, query: str, kind: type[TunectlError] = TunectlError, more: Mapping[str, Any] = _NO_MORE
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        body = _post(self._server, query.encode("utf-8", "backslashreplace"), {**self._limits, **more}, kind)
        try:
            table = msgspec.json.decode(body, type=_Table)
            row: Any = tuple[*(_TYPES.get(column["type"], Any) for column in table.meta)]  # type: ignore[misc]
            rows = msgspec.json.decode(table.data, type=list[row])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
            rows = None
        if rows is None or table.rows != len(rows):
            raise TunectlError(f"{self._server}: {_complaint(body) or 'what it answers is no whole table'}")
        return [column.get("name", "") for column in table.meta], rows


def _tell(server: Server, statement: bytes | Iterable[bytes]) -> None:
    if answer := _post(server, statement):
        raise TunectlError(f"{server}: {_complaint(answer) or 'what it answers is no confirmation'}")


def _post(
    server: Server,
    query: bytes | Iterable[bytes],
    settings: Mapping[str, Any] = _NO_MORE,
    kind: type[TunectlError] = TunectlError,
    into: BinaryIO | None = None,
) -> bytes:
    """What is answered; nothing where it went `into` a file. TunectlError, of the `kind` for what a query has wrong."""
    from tunectl.post import Into, Trust, exchange, said  # ssl is slow to import

    password = secret(server.password_file, "password file", private=True) if server.password_file else ""
    given = {"X-ClickHouse-User": server.user, "X-ClickHouse-Key": password or os.environ.get(PASSWORD, "")}
    headers = {"Content-Type": "text/plain; charset=UTF-8", **{name: value for name, value in given.items() if value}}
    asked = {"database": server.database, "max_execution_time": _TIMEOUT_S, **_SETTINGS, **settings}
    to = server.address._replace(path=f"/?{urlencode(asked)}")
    timeout_s = asked["max_execution_time"] + 5  # what ClickHouse says of its own limit is better
    held = Into(into, _LARGEST_EXPORT) if into else Into(BytesIO(), _LARGEST)
    status, answered = exchange(to, query, headers, timeout_s, Trust(server.ca_file or None), held)
    held.file.seek(0)
    if status == 200 and not answered["X-ClickHouse-Exception-Code"]:
        return b"" if into else held.file.read()
    complaint = _complaint(held.file.read(_LARGEST))
    name = complaint.rpartition("(")[2].rstrip(")")
    if kind is UsageError and name and _HINTS.get(name, _OLDER) == _OLDER:
        raise UsageError(f"fleet sql: {complaint}")
    raise TunectlError(f"{server}: {complaint}" if complaint else f"{server} answers {said(status)}", _HINTS.get(name))


def _complaint(data: bytes) -> str:
    """What ClickHouse says is wrong, in one line that ends with its name for it; "" where it says nothing."""
    text = " ".join(data[-_END:].decode("utf-8", "replace").split())
    _, is_there, said = text.rpartition("DB::Exception: ")
    what, _, name = said.partition(" (version ")[0].rpartition(" (")
    if not is_there:
        return ""
    return f"{what[:_COMPLAINT]} ({name}" if what and name.endswith(")") else said[:_COMPLAINT]


def read_manifest(server: Server) -> Manifest:
    """The sessions that are kept there. TunectlError, also where the tables are others."""
    asked = Connection(server)
    described = "SELECT table, name, type FROM system.columns WHERE database = ? AND endsWith(table, '_kept')"
    found = {(table, name): kind for table, name, kind in asked.execute(described, [server.database]).fetchall()}
    for table in TABLES:
        for name, kind in columns(table, CLICKHOUSE).items():
            has = found.get((f"{table}_kept", name), "not there")
            if kind not in (has, has.removeprefix("LowCardinality(").removesuffix(")")):
                raise TunectlError(f"{server}: {table}_kept.{name} is {has}, and should be {kind}", _OLDER)
    rows = asked.execute(
        """
        SELECT session, began, coalesce(made, '')
        FROM (SELECT session, max(began) AS began FROM hosts GROUP BY session)
        LEFT JOIN (SELECT session, quantile_disc(made_at, 0.5) AS made FROM runs GROUP BY session) USING (session)
        """
    )
    return Manifest(sessions={name: KeptSession(began or made, {}) for name, began, made in rows.fetchall()})


def known(server: Server, session: str) -> dict[str, tuple[tuple[str, str, bool], str]]:
    """What is kept of a session already, as `keep` wants it. TunectlError."""
    rows = Connection(server).execute(
        "SELECT host, digest, rack, expected, coalesce(made_at, '') "
        "FROM hosts LEFT JOIN runs USING (session, host) WHERE session = ?",
        [session],
    )
    return {host: ((digest, rack, expected), at) for host, digest, rack, expected, at in rows.fetchall()}


def insert(server: Server, session: str, place: Path) -> None:
    """The rows of JSON below `place` are kept, and are seen, on return. TunectlError, and then no host of them is.

    That a server has confirmed rows is not believed: they are counted, before the hosts are inserted and again after.
    """
    take, sent = secrets.token_hex(8), Counter[str]()
    ahead = msgspec.json.encode({"session": session, "take": take})[:-1] + b","

    def rows(table: str) -> Iterator[bytes]:
        yield f"INSERT INTO {table}_kept FORMAT JSONEachRow\n".encode()
        for path in sorted(place.glob(f"{table}.*.json")):
            with open(path, "rb") as stream:
                while lines := stream.readlines(_PIECE):
                    sent[table] += len(lines)
                    yield b"".join([ahead + line[1:] for line in lines])

    for table in sorted(TABLES, key="hosts".__eq__):
        if any(path.stat().st_size for path in place.glob(f"{table}.*.json")):
            _tell(server, rows(table))
        counted = f"SELECT count(*) FROM {table}_kept WHERE session = ? AND take = ?"
        ((found,),) = Connection(server).execute(counted, [session, take]).fetchall()
        if found != sent[table]:
            raise TunectlError(f"{server}: confirmed {sent[table]:,} rows of {table}, and has {found!r} of them")


def drop(server: Server, sessions: Sequence[str]) -> None:
    """These sessions are kept no longer. TunectlError."""
    for session in sessions:
        for table in TABLES:  # hosts first: without them the rest is not seen
            _tell(server, f"ALTER TABLE {table}_kept DROP PARTITION {_literal(session)}".encode())
