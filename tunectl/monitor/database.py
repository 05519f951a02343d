"""A SQLite file for what must not be lost: how it is opened, written, and known to be damaged.

journal_mode=PERSIST with a journal that was grown beforehand: an UPDATE in place needs no space. On a full tmpfs 40 of
40 acknowledgements succeeded; with WAL, none.
"""

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any

from tunectl.durable import line_of, sync_directory

_VERSION = 1
_LEAST_BYTES = 512  # the smallest page; SQLite takes a file of one byte or none for a new database
_JOURNAL_BYTES = 64 << 10  # the before-images of fifteen pages; an acknowledgement changes one
_DURABLE = "synchronous=FULL"
# No other process writes. The file stays below 64 MiB; the queues are bounded long before.
_PRAGMAS = ["locking_mode=EXCLUSIVE", "journal_mode=PERSIST", _DURABLE, "temp_store=MEMORY", "max_page_count=16384"]
_TABLES = (
    "CREATE TABLE delivery (id INTEGER PRIMARY KEY, receiver TEXT NOT NULL, done INTEGER NOT NULL, alert BLOB)",
    "CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 0), record BLOB)",
)
ERRORS = (sqlite3.Error, UnicodeError)  # the latter where a damaged name stands in what SQLite says
_PASSING = {
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM),
    *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH),
}


class NewerVersionError(sqlite3.DatabaseError):
    """A newer version of tunectl wrote the file."""


def open_database(path: str, *, to_read: bool = False) -> sqlite3.Connection:
    """The database, made where there is none; `check` says whether one that was there is ours.

    `to_read`: one that lost its last pages is opened as well, for what stands on the others. `to_be_written` ends that.
    """
    _make(f"{path}-journal")
    if not os.path.lexists(path):
        _create(path)
    if (size := _make(path)) < _LEAST_BYTES:
        raise sqlite3.DatabaseError(f"it is cut off after {size} bytes")
    database = sqlite3.connect(path, timeout=0.1, isolation_level=None, check_same_thread=False)
    database.text_factory = lambda text: text.decode("utf-8", "replace")  # one damaged name must not hide the rest
    try:
        # By itself SQLite refuses every page of a file that has fewer than its header names (src/btree.c, lockBtree).
        for pragma in (["writable_schema=ON"] if to_read else []) + _PRAGMAS:
            database.execute(f"PRAGMA {pragma}").fetchall()
        with suppress(OSError):  # the disk is full already: an acknowledgement may have to wait for space
            _make(f"{path}-journal", _JOURNAL_BYTES)
    except BaseException:
        database.close()
        raise
    return database


def _create(path: str) -> None:
    """An empty database is made beside and renamed: what stands at `path` was never shorter than that."""
    new = f"{path}-new"
    with suppress(FileNotFoundError):
        os.unlink(new)
    _make(new)
    with closing(sqlite3.connect(new, isolation_level=None)) as database:
        for pragma in ("journal_mode=MEMORY", _DURABLE):
            database.execute(f"PRAGMA {pragma}").fetchall()
        with transaction(database):
            for table in _TABLES:
                database.execute(table)
            database.execute(f"PRAGMA user_version={_VERSION}")
    os.truncate(f"{path}-journal", 0)  # an earlier file's: SQLite would roll this one back by it
    os.replace(new, path)
    directory = os.path.dirname(path)
    sync_directory(directory)
    with suppress(OSError):  # the directory itself may be new; we may not be allowed to open its parent
        sync_directory(os.path.dirname(directory))


def to_be_written(database: sqlite3.Connection) -> None:
    """From now on SQLite refuses a file that lost its last pages."""
    database.execute("PRAGMA writable_schema=OFF")


def check(database: sqlite3.Connection) -> None:
    """sqlite3.DatabaseError where this version writes no such file, NewerVersionError where a newer one does."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version > _VERSION:
        raise NewerVersionError(f"a newer version of tunectl wrote it: it is of version {version}, not {_VERSION}")
    if version != _VERSION:
        raise sqlite3.DatabaseError(f"it is of version {version}, not {_VERSION}")
    if {sql for (sql,) in database.execute("SELECT sql FROM sqlite_master")} != set(_TABLES):
        raise sqlite3.DatabaseError("its tables are not ours")


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """All of it is on disk at the end, or nothing of it."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # SQLite has rolled back some failures by itself
            database.execute("ROLLBACK")
        raise


def record_of(document: Mapping[str, Any]) -> bytes:
    """Its CRC-32 and its JSON, as a line of the journal of `apply` has them: SQLite has no checksum of its own."""
    return line_of(dict(document)).rstrip(b"\n")


def is_damage(error: Exception) -> bool:
    """Is it the content of the file, and no matter of the disk or of a lock, which pass?"""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF not in _PASSING


def set_aside(path: str) -> str:
    """Makes room for a new file. The damaged one is kept, with its journal, for people to look at. Its new name."""
    aside = f"{path}.damaged"
    os.replace(path, aside)
    with suppress(FileNotFoundError):
        os.replace(f"{path}-journal", f"{aside}-journal")
    return aside


def _make(path: str, size: int = 0) -> int:
    """A file for us and our group, of at least so many bytes; how many it has. No link is followed."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
    try:
        if size:
            os.posix_fallocate(fd, 0, size)
        return os.fstat(fd).st_size
    finally:
        os.close(fd)
