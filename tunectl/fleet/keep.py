"""Trading sessions in columns: written by one process at a time, read by any number.

    STORE/manifest.json                         which files belong to the store
    STORE/session=NAME/TABLE-DIGEST.parquet     never changed once it stands

A session that is taken in again is written anew as a whole, so there is one file for each of its tables. The new files
are on disk before the manifest names them, and the old ones go a while after it does not: who reads meanwhile has them.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from tunectl.durable import make_directories, read_regular, remove_file, rename, replace_file, sync_file
from tunectl.errors import TunectlError
from tunectl.fleet import clickhouse
from tunectl.fleet.clickhouse import Server, Store
from tunectl.fleet.columns import TABLES, HostRow, columns, rows_of
from tunectl.fleet.engine import among, check_place, engine, literal, paths_of
from tunectl.fleet.judge import judge, mistimed
from tunectl.fleet.manifest import KeptFile, KeptSession, Manifest, parse_manifest
from tunectl.fleet.records import Answer, Asked, Session, Shared
from tunectl.fleet.spread import apart
from tunectl.fleet.store import answer_in, answers, check_name, read_answer
from tunectl.probe.doubt import in_utc

MANIFEST = "manifest.json"
_TAKING = ".taking-in"  # rows on their way, gone at the end
_LARGEST_MANIFEST = 64 << 20
_MOST = 4 << 20  # bytes that are kept of a document, before the engine packs them: a hundred times the usual
_GRACE_S = 600.0  # a query takes no longer
_A_WORKER = 64  # answers that are worth one
_MEMORY = "1GB"

_Known = Mapping[str, tuple[tuple[str, str, bool], str]]  # host -> (digest, rack, expected), when its document was made


class Named(msgspec.Struct, frozen=True):
    """What somebody should know of a host."""

    host: str
    problem: str


class Taken(msgspec.Struct):
    """What became of a session's answers."""

    name: str
    documents: Annotated[int, Meta(description="That are new.")] = 0
    known: Annotated[int, Meta(description="Documents that were kept already.")] = 0
    without: Annotated[int, Meta(description="Hosts that have none.")] = 0
    changed: Annotated[int, Meta(description="Hosts of which something was written.")] = 0
    named: Annotated[list[Named], Meta(description="Of which somebody should know something.")] = []


class _At(NamedTuple):
    """What a worker has to know."""

    session: Session
    known: _Known
    now: str


def read_manifest(store: Store) -> Manifest:
    """An empty one where there is none. TunectlError."""
    if isinstance(store, Server):
        return clickhouse.read_manifest(store)
    check_place(store)
    try:
        data = read_regular(str(store / MANIFEST), _LARGEST_MANIFEST)
    except FileNotFoundError:
        return Manifest()
    except OSError as error:
        raise TunectlError(f"cannot read {store / MANIFEST}: {error.strerror}") from error
    return parse_manifest(data, str(store / MANIFEST))


def take_in(store: Store, session: Session, now: str, workers: int) -> Taken:
    """A session's answers are in the store, on disk, on return. TunectlError, and then it is as it was; UsageError for
    a session of which no directory can have the name.

    Whoever calls lets in one at a time.
    """
    check_name(session.name)
    if isinstance(store, Server):
        return _hand_over(store, session, now, workers)
    manifest, place = read_manifest(store), store / _TAKING
    kept = manifest.sessions.get(session.name)
    files = {table: [file] for table, file in kept.files.items()} if kept else {}
    try:
        shutil.rmtree(place, ignore_errors=True)
        make_directories(str(place))
        known = _known(store, files)
        taken = _read_all(place, _At(session, known, now), workers)
        if taken.changed:
            at, made = _write(store, session, files)
            _replace(store, manifest, {**manifest.sessions, session.name: KeptSession(session.at or at, made)})
    except OSError as error:
        raise TunectlError(f"cannot keep session {session.name} in {store}: {error.strerror}") from error
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return taken


def _hand_over(server: Server, session: Session, now: str, workers: int) -> Taken:
    """The same in a server, which is told what is new once all of it was read."""
    try:
        with TemporaryDirectory(prefix="tunectl-") as place:
            at = _At(session, clickhouse.known(server, session.name), now)
            taken = _read_all(Path(place), at, workers)
            if taken.changed:
                clickhouse.insert(server, session.name, Path(place))
    except OSError as error:
        raise TunectlError(f"cannot keep session {session.name} in {server}: {error.strerror}") from error
    return taken


def set_most(store: Store, most: int | None) -> list[str]:
    """Only the last `most` sessions stay from here on (0: all; None: as was set): those that go. TunectlError.

    A server remembers no number: its tables have a TTL.
    """
    manifest = read_manifest(store)
    manifest = msgspec.structs.replace(manifest, keep_sessions=manifest.keep_sessions if most is None else most)
    go = manifest.latest()[: -manifest.keep_sessions] if manifest.keep_sessions else []
    if isinstance(store, Server):
        clickhouse.drop(store, go)
        return go
    try:
        _replace(store, manifest, {name: kept for name, kept in manifest.sessions.items() if name not in go})
        _sweep(store)
    except OSError as error:
        raise TunectlError(f"cannot write {store / MANIFEST}: {error.strerror}") from error
    return go


def _replace(store: Path, manifest: Manifest, sessions: Mapping[str, KeptSession]) -> None:
    """The manifest names these from here on. What it named before goes a while from now. OSError."""
    stay = {file.path for kept in sessions.values() for file in kept.files.values()}
    for file in (file for kept in manifest.sessions.values() for file in kept.files.values()):
        if file.path not in stay:
            with suppress(FileNotFoundError):
                os.utime(store / file.path)
    made = msgspec.structs.replace(manifest, sessions=dict(sessions))
    replace_file(
        str(store / MANIFEST), msgspec.json.format(msgspec.json.encode(made)), beside=str(store / f"{MANIFEST}.part")
    )


def _sweep(store: Path) -> None:
    """Removes what the manifest has not named for a while. OSError."""
    named = {store / file.path for kept in read_manifest(store).sessions.values() for file in kept.files.values()}
    for path in store.glob("session=*/*"):
        is_ours = path.suffix in (".parquet", ".part")
        if is_ours and path not in named and path.lstat().st_mtime < time.time() - _GRACE_S:
            remove_file(str(path))
            with suppress(OSError):
                path.parent.rmdir()


def _known(store: Path, files: Mapping[str, Sequence[KeptFile]]) -> _Known:
    """What is kept of a session already."""
    if not files:
        return {}
    hosts, runs = (among(paths_of(store, files[table])) for table in ("hosts", "runs"))
    with engine(_MEMORY) as connection:
        found = connection.execute(
            "SELECT host, digest, rack, expected, coalesce(made_at, '') "
            f"FROM read_parquet({hosts}) hosts LEFT JOIN read_parquet({runs}) runs USING (host)"
        ).fetchall()
    return {host: ((digest, rack, expected), at) for host, digest, rack, expected, at in found}


def _read_all(place: Path, at: _At, workers: int) -> Taken:
    """Every answer as rows of JSON below `place`, written by so many processes. OSError."""
    todo = answers(at.session)
    workers = max(1, min(workers, len(todo) // _A_WORKER))
    parts = [partial(_read_some, place, at, todo[number::workers], number) for number in range(workers)]
    if workers == 1:
        return next(parts[0]())
    whole = Taken(at.session.name)
    with apart(parts) as running:  # the engine has no threads yet
        for part in map(next, running):
            for what in ("documents", "known", "without", "changed", "named"):
                setattr(whole, what, getattr(whole, what) + getattr(part, what))
    return whole


def _read_some(place: Path, at: _At, todo: Sequence[tuple[Path, str, bool]], number: int) -> Iterator[Taken]:
    """A part of them; yields once."""
    taken, shared, patterns = Taken(at.session.name), Shared(), set[int]()
    racks, encoder = dict(at.session.racks), msgspec.json.Encoder()
    with ExitStack() as stack:
        streams = {table: stack.enter_context(open(place / f"{table}.{number}.json", "wb")) for table in TABLES}
        for path, host, expected in todo:
            kept, kept_at = at.known.get(host, (None, ""))
            data = read_answer(path, host)
            digest = hashlib.sha256(data).hexdigest()[:32] if isinstance(data, bytes) else ""
            if (digest, racks.get(host, ""), expected) == kept:
                taken.known += bool(kept_at)
                taken.without += not kept_at
                continue
            asked, rows = _rows(data, path, host, at.now, shared)
            problem = asked.problem if asked.answer is Answer.UNUSABLE else ""
            if asked.document and in_utc(asked.document.at) < kept_at:
                problem = f"its document is of {asked.document.at}, and the one that is kept of {kept_at}"
            elif asked.document and not expected and at.session.hosts:
                taken.named.append(Named(host, "left a document, and was not asked"))
            if problem:
                taken.named.append(Named(host, problem))
            if kept_at and (problem or asked.answer is Answer.SILENT):
                continue  # the document that is kept stays
            taken.changed += 1
            taken.documents += asked.document is not None
            taken.without += asked.document is None
            (judged,) = judge(at.session, [asked], at.now)
            of_host = (racks.get(host, ""), expected, asked.answer, asked.problem, judged.verdict, digest)
            row = HostRow(host, *of_host, at.session.at, at.session.selection)
            pattern = hash(rows.get("patterns"))
            if pattern in patterns:  # hosts that are alike have the same
                rows.pop("patterns", None)
            patterns.add(pattern)
            for table, lines in {"hosts": encoder.encode_lines([row]), **rows}.items():
                streams[table].write(lines)
    yield taken


def _rows(data: bytes | Asked, path: Path, host: str, now: str, shared: Shared) -> tuple[Asked, dict[str, bytes]]:
    """A host's answer, and what is kept of its document, as lines of JSON."""
    found = data if isinstance(data, Asked) else answer_in(data, path, host)
    if isinstance(found, Asked):
        return found, {}
    if problem := mistimed(found.at, "", now):
        return Asked(host, Answer.UNUSABLE, problem=problem), {}
    summary, rows = rows_of(host, found, shared)
    try:
        lines = {table: msgspec.json.Encoder().encode_lines(each) for table, each in rows.items()}
    except ValueError as error:
        return Asked(host, Answer.UNUSABLE, problem=f"its document cannot be kept: {error}"), {}
    if (size := sum(map(len, lines.values()))) > _MOST:
        problem = f"its document cannot be kept: {size >> 20} MiB of it would be, and {_MOST >> 20} MiB are the most"
        return Asked(host, Answer.UNUSABLE, problem=problem), {}
    return Asked(host, Answer.DOCUMENT, summary, file=str(path)), lines


def _write(store: Path, session: Session, files: Mapping[str, Sequence[KeptFile]]) -> tuple[str, dict[str, KeptFile]]:
    """The rows that were read, and of the session's files those of other hosts, as new files; when half of the
    documents were made. OSError."""
    place, folder = store / _TAKING, f"session={session.name}"
    make_directories(str(store / folder))
    made = {}
    with engine(_MEMORY, spill=place) as connection:
        for table, (_, order, _) in TABLES.items():
            part = store / folder / f"{table}.part"
            try:
                ((rows,),) = connection.execute(
                    f"COPY ({_merged(place, store, session.name, table, files)} ORDER BY {order}) "
                    f"TO {literal(part)} (FORMAT parquet, COMPRESSION zstd)"
                ).fetchall()
                sync_file(str(part))
                with open(part, "rb") as stream:
                    digest = hashlib.file_digest(stream, "sha256").hexdigest()[:16]
                name = f"{folder}/{table}-{digest}.parquet"
                made[table] = KeptFile(name, part.stat().st_size, rows)
                rename(str(part), str(store / name))
            except BaseException:
                part.unlink(missing_ok=True)
                raise
        runs = literal(store / made["runs"].path)
        at = connection.execute(f"SELECT quantile_disc(made_at, 0.5) FROM read_parquet({runs})").fetchone()
    return str((at and at[0]) or ""), made


def _merged(place: Path, store: Path, session: str, table: str, files: Mapping[str, Sequence[KeptFile]]) -> str:
    """The query for a table's new file."""
    named = columns(table)
    kinds = ", ".join(f"{name}: '{kind}'" for name, kind in named.items())
    each = ", ".join(f"unnest({name}) AS {name}" if name in TABLES[table].unnested else name for name in named)
    new = f"FROM read_json({literal(place / f'{table}.*.json')}, format='newline_delimited', columns={{{kinds}}})"
    made = f"SELECT {literal(session)} AS session, {each} {new}"
    if table in files:
        old = f"SELECT * FROM read_parquet({among(paths_of(store, files[table]))}, hive_partitioning=false)"
        if table != "patterns":
            hosts = literal(place / "hosts.*.json")
            old += f" WHERE host NOT IN (SELECT host FROM read_json({hosts}, columns={{host: 'VARCHAR'}}))"
        made = f"{made} UNION ALL {old}"
    return f"SELECT {'DISTINCT ' * (table == 'patterns')}* FROM ({made})"
