"""What is asked of the sessions in columns: each question is one query of plain SQL over the tables of `columns`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from tunectl.errors import TunectlError, UsageError
from tunectl.fleet.body import ByCause, Common, Example
from tunectl.fleet.causes import Cause
from tunectl.fleet.columns import TABLES, RunRow, columns, summary_in
from tunectl.fleet.engine import engine, literal, open_views
from tunectl.fleet.keep import read_manifest
from tunectl.fleet.records import Answer, Asked, Session

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MEMORY = "200MB"
_RUN = ", ".join(columns("runs"))


class Answered(msgspec.Struct, frozen=True):
    """What a query says."""

    columns: list[str]
    rows: list[list[Any]]
    more: Annotated[bool, Meta(description="There are more rows than were asked for.")] = False


@contextmanager
def asking(
    store: Path, *sessions: str, memory: str = _MEMORY, limit_s: float = 0.0, writes: Path | None = None
) -> "Iterator[DuckDBPyConnection]":
    """The store's tables, of these sessions or of all, as views; one other file may be written.

    TunectlError, also for a session that is not kept.
    """
    manifest = read_manifest(store)
    if not manifest.sessions:
        raise TunectlError(f"{store}: no session is kept there", "`tunectl fleet keep` takes one in")
    for name in sessions:
        if name not in manifest.sessions:
            raise TunectlError(f"{store}: no session {name!r} is kept", f"the last is {manifest.latest()[-1]}")
    with engine(memory, limit_s=limit_s) as connection:
        open_views(connection, store, manifest.files(*sessions), writes)
        yield connection


def session_in(connection: "DuckDBPyConnection", store: Path, name: str, hosts: Sequence[str] = ()) -> Session:
    """A session that is kept; `hosts` were asked, too."""
    listed = connection.execute(
        "SELECT host, rack, began, selection, expected FROM hosts WHERE session = ? ORDER BY host", [name]
    ).fetchall()
    began, selection = next(((row[2], row[3]) for row in listed), ("", ""))
    asked = dict.fromkeys([*(row[0] for row in listed if row[4]), *hosts])
    racks = tuple((host, rack) for host, rack, *_ in listed if rack)
    return Session(name, str(store / f"session={name}"), began, selection, tuple(asked), racks)


def answers_in(connection: "DuckDBPyConnection", session: Session, host: str = "") -> Iterator[Asked]:
    """The answer of every host of a session, or of one: its document but for its causes."""
    only = " AND host = ?" * bool(host)
    chosen = [session.name, *([host] if host else [])]
    runs = connection.execute(f"SELECT {_RUN} FROM runs WHERE session = ?{only}", chosen).fetchall()
    summaries = {row[0]: summary_in(RunRow(*row)) for row in runs}
    listed, left = set(session.hosts), set(session.hosts)
    for name, answer, problem in connection.execute(
        f"SELECT host, answer, problem FROM hosts WHERE session = ?{only} ORDER BY host", chosen
    ).fetchall():
        left.discard(name)
        yield Asked(name, Answer(answer), summaries.get(name), problem, expected=name in listed)
    for name in sorted(left & {host} if host else left):
        yield Asked(name, Answer.SILENT, problem="it left no document, and no note says why")


def causes_in(connection: "DuckDBPyConnection", session: str, judged: Sequence[tuple[str, str]]) -> ByCause:
    """Why these hosts have these verdicts, by the findings of their documents."""
    rows = connection.execute(
        """
        SELECT verdict, knob, instances, outcome, severity, cause, list(host ORDER BY nth), sum(targets),
            count(DISTINCT hash(text)), arg_min(text, nth)
        FROM findings
        JOIN (SELECT unnest(?::VARCHAR[]) AS host, unnest(?::VARCHAR[]) AS verdict, unnest(range(?)) AS nth)
        USING (host) WHERE session = ?
        GROUP BY verdict, knob, instances, outcome, severity, cause ORDER BY min(nth), arg_min(place, nth)
        """,
        [[host for host, _ in judged], [verdict for _, verdict in judged], len(judged), session],
    ).fetchall()
    return {
        (verdict, Cause(*cause)): Common(Example(hosts[0], text), hosts, int(targets), texts)
        for verdict, *cause, hosts, targets, texts, text in rows
    }


def query(connection: "DuckDBPyConnection", text: str, values: Sequence[Any] = (), most: int = 0) -> Answered:
    """The rows of one SELECT, `most` of them; UsageError for anything else."""
    import duckdb

    try:
        statements = connection.extract_statements(text)
    except duckdb.Error as error:
        raise UsageError(f"not SQL: {error}") from error
    if len(statements) != 1 or statements[0].type is not duckdb.StatementType.SELECT:
        raise UsageError("fleet sql: exactly one SELECT is taken", f"over {', '.join(TABLES)}")
    connection.execute(statements[0], list(values))
    rows = connection.fetchmany(most + 1) if most else connection.fetchall()
    named = [column[0] for column in connection.description or ()]
    return Answered(named, [list(row) for row in (rows[:most] if most else rows)], bool(most) and len(rows) > most)


# Of a knob: how many hosts had it in force in each session, and why others had not.
OF_KNOB = """
SELECT session, instances, outcome, hosts, targets, causes FROM (
    SELECT session, knob, instances, outcome, count(*) AS hosts, sum(targets)::BIGINT AS targets
    FROM runs JOIN patterns USING (session, pattern) WHERE knob = $1 GROUP BY ALL
    UNION ALL
    SELECT session, knob, instances, outcome, count(*), sum(targets)::BIGINT
    FROM findings WHERE knob = $1 AND outcome = 'broken' GROUP BY ALL
) LEFT JOIN (
    SELECT session, knob, instances, outcome, string_agg(DISTINCT cause, '; ' ORDER BY cause) AS causes
    FROM findings WHERE knob = $1 GROUP BY ALL
) USING (session, knob, instances, outcome)
JOIN (SELECT session, min(began) AS began FROM hosts GROUP BY session) USING (session)
ORDER BY began, session, instances, outcome
"""

# Of a cause: of findings as `fleet report` names it, of gaps what took the CPU, N for each number.
OF_CAUSE = """
SELECT session, what, hosts, times, longest_ns FROM (
    SELECT session, knob || ' ' || outcome AS what, count(DISTINCT host) AS hosts, sum(targets)::BIGINT AS times,
        NULL AS longest_ns
    FROM findings WHERE cause = $1 GROUP BY session, knob, outcome
    UNION ALL
    SELECT session, 'gaps', count(DISTINCT host), count(*), max(length_ns)
    FROM events WHERE regexp_replace(cause, '[0-9]+(?:[-,.:][0-9]+)*', 'N', 'g') = $1 GROUP BY session
)
JOIN (SELECT session, min(began) AS began FROM hosts GROUP BY session) USING (session)
ORDER BY began, session, what
"""


def export(connection: "DuckDBPyConnection", table: str, fmt: str, path: Path) -> None:
    """A table as a file, csv or parquet."""
    connection.execute(f"COPY (FROM {table}) TO {literal(path)} (FORMAT {fmt})")
