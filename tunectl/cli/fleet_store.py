"""tunectl fleet: keep, diff, export and sql, and what report and history say of sessions in columns"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import click
import msgspec
from msgspec import Meta

from tunectl.cli.command import check_output, emit, open_root, stay_off, tunectl_command
from tunectl.cli.helped import OK, Example
from tunectl.cli.options import Options
from tunectl.cli.values import Number, a_path, one_of
from tunectl.cli.values import sessions as session_names
from tunectl.durable import followed, read_given, rename, sync_file
from tunectl.errors import TunectlError, UsageError
from tunectl.fleet import ask, engine
from tunectl.fleet.body import fleet_body
from tunectl.fleet.causes import without_numbers
from tunectl.fleet.clickhouse import SCHEMES, Store, server_of
from tunectl.fleet.columns import TABLES
from tunectl.fleet.documents import parse_hosts
from tunectl.fleet.keep import Taken, read_manifest, set_most, take_in
from tunectl.fleet.records import Asked, Session
from tunectl.fleet.spread import answered
from tunectl.fleet.store import LARGEST_LIST, ambiguous, default_store, read_session, session_directory, sessions
from tunectl.host import lockfile
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.identity import read_identity
from tunectl.shapes import now_utc


class _Store(click.Path):
    """A directory, or a server by its address."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and value.startswith(tuple(f"{scheme}:" for scheme in SCHEMES)):
            return server_of(value)
        if value == "":  # a variable of a script that was never set
            self.fail("is empty.", param, ctx)
        return super().convert(value, param, ctx)


STORE = click.option(
    "--store",
    type=_Store(path_type=Path, file_okay=False),
    default=default_store,
    envvar="TUNECTL_FLEET_STORE",
    show_envvar=True,
    metavar="DIR|URL",
    help="Where sessions are kept [~/.local/state/tunectl/fleet]; columns also in clickhouse://[USER@]HOST/DATABASE.",
)


def folders_in(store: Store) -> Path:
    """Where the folders of sessions are; where the columns are in a server, in the usual place."""
    return store if isinstance(store, Path) else default_store()


HOSTS = click.option(
    "--hosts", metavar="FILE", shell_complete=a_path(), help="Who was asked, beside the session's own list; - is stdin."
)
_ENGINE_BYTES = 160 << 20  # what an engine takes for itself that answers small questions: 80 were measured


class Kept(msgspec.Struct, frozen=True):
    """What `tunectl fleet keep` did."""

    store: str
    sessions: list[Taken]
    removed: Annotated[list[str], Meta(description="Sessions that are not kept any longer.")]


@tunectl_command(
    name="keep",
    examples=(
        Example("Every session that is not in columns yet:", "tunectl fleet keep"),
        Example("What hosts handed to a folder:", "tunectl fleet keep /mnt/fleet/2026-11-28 --hosts hosts.txt"),
        Example("A trading year stays:", "tunectl fleet keep --keep-sessions 250"),
    ),
)
@STORE
@click.argument("folders", nargs=-1, metavar="[SESSION|FOLDER]...", shell_complete=one_of(session_names))
@HOSTS
@click.option("--keep-sessions", type=click.IntRange(0), metavar="N", help="Only the last N stay from now on; 0: all.")
def keep(options: Options, store: Store, folders: tuple[str, ...], hosts: str | None, keep_sessions: int | None) -> int:
    """Take sessions into the store's columns: what `record` kept, or a folder of HOST.json.

    The folder stays as it is. What was taken in before is known again, and a host's later document replaces its earlier
    one. Without a SESSION: those of the store that are not in columns yet.
    """
    if isinstance(store, Path):
        engine.found()  # before the work is done
    spare_isolated(options)
    asked = tuple(read_names(hosts)) if hosts is not None else ()
    kept = read_manifest(store).sessions
    found = [read_session(session_directory(folders_in(store), folder), asked) for folder in folders]
    found = found or [session for session in sessions(folders_in(store)) if session.name not in kept]
    with _alone(store) if isinstance(store, Path) else nullcontext():
        workers = len(os.sched_getaffinity(0))
        taken = [take_in(store, session, now_utc(), workers) for session in found]
        removed = set_most(store, keep_sessions)
    emit(options, "fleet.kept", read_identity(open_root(options)), Kept(str(store), taken, removed))
    return OK


@contextmanager
def _alone(store: Path) -> Iterator[None]:
    """One process writes."""
    try:
        store.mkdir(parents=True, exist_ok=True)
        held = lockfile.take(str(store / "lock"))
    except OSError as error:
        raise TunectlError(f"cannot write in {store}: {error.strerror}") from error
    if held is None:
        by = lockfile.holder_of(str(store / "lock"))
        raise TunectlError(f"{store}: sessions are taken in at this moment, by {by}", "wait for the end of it")
    try:
        yield
    finally:
        os.close(held)


@tunectl_command(
    name="diff",
    examples=(Example("What changed since yesterday:", "tunectl fleet diff 2026-11-27 2026-11-28"),),
)
@STORE
@click.argument("before", shell_complete=one_of(session_names))
@click.argument("after", shell_complete=one_of(session_names))
def diff(options: Options, store: Store, before: str, after: str) -> int:
    """What changed between two sessions in columns, by host and by cause."""
    spare_isolated(options)
    with ask.asking(store, before, after) as connection:
        body = ask.diff_in(connection, store, before, after, now_utc())
    emit(options, "fleet.diff", read_identity(open_root(options)), body)
    return OK


@tunectl_command(
    name="export",
    formats=("csv", "parquet"),
    examples=(
        Example("Every run, for a spreadsheet:", "tunectl fleet export --format csv --output runs.csv"),
        Example(
            "One session:",
            "tunectl fleet export monday --format parquet --output m.parquet",
        ),
    ),
)
@STORE
@click.argument("names", nargs=-1, metavar="[SESSION]...", shell_complete=one_of(session_names))
@click.option("--table", type=click.Choice([*TABLES]), default="runs", show_default=True, help="Which.")
@click.option("--output", required=True, metavar="FILE", help="Where to.")
@click.option("--raw", is_flag=True, help="Of CSV: each text as the host has it, also a formula or an escape sequence.")
def export(options: Options, store: Store, names: tuple[str, ...], table: str, output: str, raw: bool) -> int:
    """A table of the sessions in columns as one file: of these SESSIONs, or of all.

    In CSV an apostrophe stands before what a spreadsheet would take for a formula, and a mark for a control character.
    """
    check_output(output)
    spare_isolated(options)
    path = Path(followed(output))
    if isinstance(store, Path) and path.resolve().is_relative_to(store.resolve()):
        raise UsageError(f"--output {output}: is in the store {store}", "a file elsewhere")
    part = path.with_name(f".{path.name}.part")
    try:
        with ask.asking(store, *names, writes=part) as connection:
            ask.export(connection, table, options.fmt, part, raw=raw)
        sync_file(str(part))
        rename(str(part), str(path))
    except OSError as error:
        raise TunectlError(f"cannot write {output}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            part.unlink()
    return OK


@tunectl_command(
    name="sql",
    examples=(Example("Hosts by verdict:", "tunectl fleet sql 'SELECT said, count(*) FROM runs GROUP BY said'"),),
)
@STORE
@click.argument("query")
@click.option("--rows", "most", type=click.IntRange(0), default=1000, show_default=True, help="At most; 0: all.")
@click.option("--limit", "limit_s", type=Number(0.1), default=60.0, show_default=True, help="In seconds.")
@click.option("--memory", "memory_mb", type=click.IntRange(50), default=500, show_default=True, help="In MB.")
def sql(options: Options, store: Store, query: str, most: int, limit_s: float, memory_mb: int) -> int:
    """The rows of one SELECT over the tables of the sessions in columns; nothing else can be read, or written."""
    spare_isolated(options)

    def asked() -> ask.Answered:
        with ask.asking(store, memory=f"{memory_mb}MB", limit_s=limit_s) as connection:
            return ask.query(connection, query, most=most)

    try:
        body = answered(asked, memory_mb * 10**6 + _ENGINE_BYTES, limit_s)
    except MemoryError as error:
        raise TunectlError(f"the query needs more than {memory_mb} MB", "ask for less, or raise --memory") from error
    except TimeoutError as error:
        raise TunectlError(f"the query took longer than {limit_s:g} s", "ask for less, or raise --limit") from error
    except OSError as error:
        raise TunectlError(f"no process could be had for the query: {error.strerror}") from error
    emit(options, "fleet.table", read_identity(open_root(options)), body)
    return OK


def read_names(path: str, option: str = "--hosts ") -> dict[str, str]:
    """The hosts in a file, or on stdin for `-`, each with its rack."""
    try:
        names = parse_hosts(read_given(path, LARGEST_LIST), f"{option}{path}")
    except OSError as error:
        raise UsageError(f"{option}{path}: {error.strerror}") from error
    if not names:  # what a failed `ansible-inventory |` leaves must not stand for no list
        raise UsageError(f"{option}{path}: names no host")
    return names


def spare_isolated(options: Options) -> None:
    """Moves this process, and those that decode for it, off the CPUs that are isolated where it runs."""
    root = open_root(options)
    with suppress(TunectlError):  # a container may show no CPU at all
        stay_off(root, read_scope_facts(root).quiet)


def named(store: Store, name: str) -> tuple[Session, bool]:
    """A session by its name or directory; is it in columns only? Its folder may be newer, and is asked first."""
    directory = session_directory(folders_in(store), name)
    kept = read_manifest(store).sessions.get(name)
    if kept and str(directory) == name and not (folders_in(store) / name).is_dir():
        raise ambiguous(name, f"a session in the columns of {store}")
    return Session(name, str(directory), kept.at if kept else ""), kept is not None and not directory.is_dir()


def kept_body(store: Store, name: str, hosts: tuple[str, ...], peers: str) -> dict[str, Any]:
    """tunectl.fleet/1 of a session in columns."""
    with ask.asking(store, name) as connection:
        session, answers = ask.session_in(connection, store, name, hosts)
        return fleet_body(session, answers, now_utc(), partial(ask.causes_in, connection, name), peers)


def kept_rounds(store: Store, host: str) -> list[tuple[str, tuple[Session, Asked]]]:
    """A host in the sessions that are in columns, each with its time."""
    kept = read_manifest(store).sessions
    if not kept:
        return []
    with ask.asking(store) as connection:
        return [(kept[pair[0].name].at, pair) for pair in ask.answers_in(connection, store, host=host)]


def history_of(options: Options, store: Store, knob: str | None, cause: str | None) -> int:
    """A knob or a cause in every session in columns."""
    with ask.asking(store) as connection:
        body = ask.query(connection, ask.OF_KNOB if knob else ask.OF_CAUSE, [knob or without_numbers(cause or "")])
        if not body.rows:
            what = f"the knob {knob!r}" if knob else f"the cause {cause!r}"
            raise TunectlError(f"{store}: no session has {what}", "`tunectl fleet report -v` names knobs and causes")
    emit(options, "fleet.table", read_identity(open_root(options)), body)
    return OK
