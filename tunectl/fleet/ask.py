"""What is asked of the sessions in columns: each question is one query of plain SQL over the tables of `columns`."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from tunectl.command import quoted
from tunectl.errors import TunectlError, UsageError
from tunectl.fleet.body import ByCause, Common, Example, changed
from tunectl.fleet.causes import Cause
from tunectl.fleet.clickhouse import Connection, Server, Store
from tunectl.fleet.columns import FORMULA, TABLES, UNSHOWN, RunRow, columns, summary_in
from tunectl.fleet.engine import engine, literal, open_views, said
from tunectl.fleet.judge import judge
from tunectl.fleet.keep import read_manifest
from tunectl.fleet.records import Answer, Asked, Session
from tunectl.fleet.store import SILENT
from tunectl.shapes import Count

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    Engine = DuckDBPyConnection | Connection

_MEMORY = "200MB"
_RUN = ", ".join(f"runs.{name}" for name in columns("runs"))


class Answered(msgspec.Struct, frozen=True):
    """What a question about the sessions in columns is answered."""

    columns: list[str]
    rows: list[list[Any]]
    more: Annotated[bool, Meta(description="Are there more rows than were asked for?")] = False


class VerdictChange(msgspec.Struct, frozen=True):
    """Hosts that have another verdict now; empty where a session did not ask them."""

    before: str
    after: str
    hosts: list[str]


class FactChange(msgspec.Struct, frozen=True):
    """Hosts on which something else changed."""

    change: str
    hosts: list[str]


class CauseChange(msgspec.Struct, frozen=True):
    """A cause that came to hosts, or went from them; of hosts with a document in both sessions."""

    knob: str
    instances: str
    outcome: str
    severity: str
    cause: str
    hosts_before: Count
    hosts_after: Count
    came: list[str]
    went: list[str]


class Diff(msgspec.Struct, frozen=True):
    """What `tunectl fleet diff A B` says."""

    before: str
    after: str
    verdicts: Annotated[list[VerdictChange], Meta(description="The worst of now first.")]
    changes: list[FactChange]
    causes: Annotated[list[CauseChange], Meta(description="What came to most hosts first.")]


@contextmanager
def asking(
    store: Store, *sessions: str, memory: str = _MEMORY, limit_s: float = 0.0, writes: Path | None = None
) -> "Iterator[Engine]":
    """The store's tables, of these sessions or of all, as views; one other file may be written.

    TunectlError, also for a session that is not kept.
    """
    manifest = read_manifest(store)
    if not manifest.sessions:
        raise TunectlError(f"{store}: no session is kept there", "`tunectl fleet keep` takes one in")
    for name in sessions:
        if name not in manifest.sessions:
            raise TunectlError(f"{store}: no session {name!r} is kept", f"the last is {manifest.latest()[-1]}")
    if isinstance(store, Server):
        yield Connection(store, sessions, memory if limit_s else "", limit_s)
        return
    with engine(memory, limit_s=limit_s) as connection:
        open_views(connection, store, manifest.files(*sessions), writes)
        yield connection


def answers_in(connection: "Engine", store: Store, *, session: str = "", host: str = "") -> list[tuple[Session, Asked]]:
    """The answer of every host of a session, or of a host in every session: all but its causes."""
    only = "hosts.session = ?" if session else "hosts.host = ?"
    rows = connection.execute(
        f"""
        SELECT hosts.session, began, selection, rack, expected, hosts.host, answer, problem, {_RUN}
        FROM hosts LEFT JOIN runs ON runs.session = hosts.session AND runs.host = hosts.host
        WHERE {only} ORDER BY hosts.session, hosts.host
        """,
        [session or host],
    ).fetchall()
    found = []
    for name, began, selection, rack, expected, of, answer, problem, *run in rows:
        listed, racks = (of,) * expected, ((of, rack),) if rack else ()
        asked_in = Session(name, f"{store}/session={name}", began, selection, listed, racks)
        try:
            document = summary_in(RunRow(*run)) if run[0] is not None else None
            found.append((asked_in, Asked(of, Answer(answer), document, problem, expected=expected)))
        except (ValueError, msgspec.MsgspecError) as error:  # others may write a table, too
            raise TunectlError(f"{store}: {quoted(of)} in {quoted(name)} is no row of tunectl's: {error}") from error
    return found


def session_in(connection: "Engine", store: Store, name: str, hosts: Sequence[str] = ()) -> tuple[Session, list[Asked]]:
    """A session with every host's answer; `hosts` were asked, too."""
    answers = answers_in(connection, store, session=name)
    listed = dict.fromkeys([*(host for session, _ in answers for host in session.hosts), *hosts])
    racks = tuple(rack for session, _ in answers for rack in session.racks)
    session = answers[0][0] if answers else Session(name, f"{store}/session={name}")
    found = {asked.name: asked._replace(expected=asked.name in listed) for _, asked in answers}
    silent = (Asked(host, Answer.SILENT, problem=SILENT) for host in hosts if host not in found)
    return session._replace(hosts=tuple(listed), racks=racks), [*found.values(), *silent]


def causes_in(connection: "Engine", session: str, judged: Sequence[tuple[str, str]]) -> ByCause:
    """Why these hosts have these verdicts, by the findings of their documents."""
    rows = connection.execute(
        """
        SELECT verdict, knob, instances, outcome, severity, cause, array_agg(nth), sum(targets),
            count(DISTINCT hash(text)), argMin(text, nth)
        FROM findings
        JOIN (SELECT unnest(?::VARCHAR[]) AS host, unnest(?::VARCHAR[]) AS verdict, unnest(range(?)) AS nth)
        USING (host) WHERE session = ?
        GROUP BY verdict, knob, instances, outcome, severity, cause ORDER BY min(nth), argMin(place, nth)
        """,
        [[host for host, _ in judged], [verdict for _, verdict in judged], len(judged), session],
    ).fetchall()
    return {
        (verdict, Cause(*cause)): Common(Example(hosts[0], text), hosts, int(targets), texts)
        for verdict, *cause, numbers, targets, texts, text in rows
        for hosts in [[judged[nth][0] for nth in sorted(numbers)]]
    }


def diff_in(connection: "Engine", store: Store, before: str, after: str, now: str) -> Diff:
    """What changed from one session to another, by host and by cause."""
    sides = [judge(*session_in(connection, store, name), now) for name in (before, after)]
    old, new = ({one.name: one for one in side} for side in sides)
    verdicts, facts = defaultdict[tuple[str, str], list[str]](list), defaultdict[str, list[str]](list)
    for host in (*new, *(old.keys() - new.keys())):
        was, is_now = old.get(host), new.get(host)
        pair = was.verdict if was else "", is_now.verdict if is_now else ""
        if pair[0] != pair[1]:
            verdicts[pair].append(host)
        for change in changed(was, is_now) if is_now else ():
            facts[change].append(host)
    found = connection.execute(
        """
        SELECT knob, instances, outcome, severity, cause,
            count(*) FILTER (WHERE was), count(*) FILTER (WHERE now),
            array_agg(host) FILTER (WHERE now AND NOT was), array_agg(host) FILTER (WHERE was AND NOT now)
        FROM (
            SELECT knob, instances, outcome, severity, cause, host,
                max(session = $1) AS was, max(session = $2) AS now
            FROM findings
            WHERE session IN ($1, $2)
                AND host IN (SELECT host FROM runs WHERE session IN ($1, $2) GROUP BY host HAVING count(*) = 2)
            GROUP BY knob, instances, outcome, severity, cause, host
        )
        GROUP BY knob, instances, outcome, severity, cause HAVING max(was <> now)
        ORDER BY count(*) FILTER (WHERE now AND NOT was) DESC, count(*) FILTER (WHERE was AND NOT now) DESC,
            knob, instances, outcome, severity, cause
        """,
        [before, after],
    ).fetchall()
    return Diff(
        before,
        after,
        [VerdictChange(*pair, hosts) for pair, hosts in verdicts.items()],
        [FactChange(change, hosts) for change, hosts in sorted(facts.items(), key=lambda one: -len(one[1]))],
        [CauseChange(*row[:-2], *(sorted(hosts or []) for hosts in row[-2:])) for row in found],
    )


def query(connection: "Engine", text: str, values: Sequence[Any] = (), most: int = 0) -> Answered:
    """The rows of one SELECT, `most` of them; UsageError for anything else."""
    if isinstance(connection, Connection):
        named, found = connection.query(text, values, most)
        return Answered(named, [list(row) for row in found[: most or None]], 0 < most < len(found))
    import duckdb

    try:
        statements = connection.extract_statements(text)
    except duckdb.Error as error:
        raise UsageError(f"not SQL: {said(error)}") from error
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise UsageError("fleet sql: exactly one SELECT is taken", f"over {', '.join(TABLES)}")
    try:
        connection.execute(statements[0], list(values))
        rows = connection.fetchmany(most + 1) if most else connection.fetchall()
    except (duckdb.ProgrammingError, duckdb.PermissionException, duckdb.DataError) as error:
        raise UsageError(f"fleet sql: {said(error)}") from error
    named = [column[0] for column in connection.description or ()]
    shown = msgspec.to_builtins(rows[:most] if most else rows, enc_hook=str)
    return Answered(named, [list(row) for row in shown], bool(most) and len(rows) > most)


# Of a knob: how many hosts had it in force in each session, and why others had not; and of how many it is not known,
# because their document says nothing of it, or because there is none.
OF_KNOB = """
SELECT session, instances, outcome, hosts, targets, causes FROM (
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
    UNION ALL
    SELECT session, '', 'no finding', count(*), 0, NULL FROM runs
    LEFT JOIN (SELECT DISTINCT session, pattern, 1 AS judged FROM patterns WHERE knob = $1) USING (session, pattern)
    LEFT JOIN (SELECT DISTINCT session, host, 1 AS found FROM findings WHERE knob = $1) USING (session, host)
    WHERE judged IS NULL AND found IS NULL GROUP BY session
    UNION ALL
    SELECT session, '', 'no document', count(*), 0, string_agg(DISTINCT answer, '; ' ORDER BY answer) FROM hosts
    LEFT JOIN (SELECT session, host, 1 AS made FROM runs) USING (session, host)
    WHERE made IS NULL GROUP BY session
)
JOIN (
    SELECT session, coalesce(max(made), max(began)) AS since FROM hosts
    LEFT JOIN (SELECT session, quantile_disc(made_at, 0.5) AS made FROM runs GROUP BY session) USING (session)
    GROUP BY session
) USING (session)
WHERE EXISTS (SELECT 1 FROM patterns WHERE knob = $1) OR EXISTS (SELECT 1 FROM findings WHERE knob = $1)
ORDER BY since, session, instances, outcome
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
JOIN (SELECT session, quantile_disc(made_at, 0.5) AS made FROM runs GROUP BY session) USING (session)
ORDER BY made, session, what
"""


def export(connection: "Engine", table: str, fmt: str, path: Path, *, raw: bool) -> None:
    """A table as a file, csv or parquet; with `raw` also CSV has each text as the hosts wrote it."""
    texts = ["session", *(name for name, kind in columns(table).items() if kind.startswith("VARCHAR"))]
    texts = texts if fmt == "csv" and not raw else []
    if isinstance(connection, Connection):
        connection.export(table, fmt, path, texts)
        return
    # A formula of a spreadsheet has an apostrophe before it; what a terminal obeys is no character any more.
    shown = [f"regexp_replace({name}::VARCHAR, '{UNSHOWN}', '\N{REPLACEMENT CHARACTER}', 'g')" for name in texts]
    harmless = [
        f"regexp_replace({each}, '{FORMULA}', '''\\0') AS {name}" for name, each in zip(texts, shown, strict=True)
    ]
    cells = f"* REPLACE ({', '.join(harmless)})" if texts else "*"
    quotes = f", FORCE_QUOTE ({', '.join(texts)})" if texts else ""  # another separator than ours begins no cell
    connection.execute(f"COPY (SELECT {cells} FROM {table}) TO {literal(path)} (FORMAT {fmt}{quotes})")
