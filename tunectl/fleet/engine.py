"""DuckDB in this process: the one place that starts it, with limits. It reads and writes the store's Parquet itself."""

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tunectl.errors import TunectlError, UsageError
from tunectl.fleet.manifest import KeptFile
from tunectl.installed import needed

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_THREADS = 2
_GLOB = frozenset("*?[{")


def found() -> Any:
    """The engine's module. TunectlError where the extra is not installed."""
    with needed("the fleet's store in columns"):
        import duckdb  # slow to import, and few commands ask the store
    return duckdb


@contextmanager
def engine(memory: str, spill: Path | None = None, limit_s: float = 0.0) -> "Iterator[DuckDBPyConnection]":
    """An engine without a database of its own. TunectlError in one line for what it says is wrong.

    `memory` is its most, what exceeds it goes to `spill`; after `limit_s` a query is stopped.
    """
    duckdb = found()
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory,
        "threads": _THREADS,
        "temp_directory": str(spill) if spill else "",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
    }
    try:
        with closing(duckdb.connect(config=settings)) as connection:
            timer = threading.Timer(limit_s, connection.interrupt)
            timer.daemon = True
            try:
                if limit_s:
                    timer.start()
                yield connection
            finally:
                timer.cancel()
    except duckdb.InterruptException as error:
        raise TunectlError(f"the query took longer than {limit_s:g} s", "ask for less, or raise --limit") from error
    except duckdb.Error as error:
        raise TunectlError(f"the store: {said(error)}") from error


def said(error: Exception) -> str:
    """What the engine says is wrong, without its picture of the place, in one line."""
    return " ".join(str(error).strip().partition("\n\n")[0].split()) or type(error).__name__


def literal(text: str | Path) -> str:
    """A text in SQL."""
    return "'" + str(text).replace("'", "''") + "'"


def among(paths: Iterable[str | Path]) -> str:
    """A list of files in SQL."""
    return f"[{', '.join(map(literal, paths))}]"


def check_place(store: Path) -> None:
    """UsageError for a directory whose name the engine would read as a pattern."""
    if _GLOB & set(str(store)):
        raise UsageError(f"--store {store}: has one of {' '.join(sorted(_GLOB))} in it", "another directory")


def paths_of(store: Path, files: Sequence[KeptFile]) -> list[Path]:
    """The files, each as large as the manifest says. TunectlError for one that is not."""
    for file in files:
        try:
            size = os.stat(store / file.path).st_size
        except OSError as error:
            raise TunectlError(f"cannot read {store / file.path}: {error.strerror}") from error
        if size != file.size:
            raise TunectlError(f"{store / file.path}: has {size:,} bytes, and the manifest says {file.size:,}")
    return [store / file.path for file in files]


def open_views(
    connection: "DuckDBPyConnection", store: Path, files: Mapping[str, Sequence[KeptFile]], writes: Path | None
) -> None:
    """Each table as a view of these files. From here on nothing else can be read, nor written but one file, and no
    setting changed."""
    allowed = [writes] if writes else []
    for table, each in files.items():
        allowed += (paths := paths_of(store, each))
        connection.execute(f"CREATE VIEW {table} AS FROM read_parquet({among(paths)}, hive_partitioning=false)")
    connection.execute(f"SET allowed_paths = {among(allowed)}")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
