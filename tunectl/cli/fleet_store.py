"""Where sessions are, and which is meant: what the commands of `tunectl fleet` share."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from tunectl.errors import TunectlError, UsageError
from tunectl.fleet.documents import parse_hosts
from tunectl.fleet.records import Session
from tunectl.fleet.store import default_store, read_session, sessions

STORE = click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False),
    default=default_store,
    envvar="TUNECTL_FLEET_STORE",
    show_envvar=True,
    metavar="DIR",
    help="Where sessions are kept [~/.local/state/tunectl/fleet].",
)


def read_names(path: str) -> tuple[str, ...]:
    """The hosts in a file, or on stdin for `-`."""
    try:
        text = (sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--hosts {path}: {getattr(error, 'strerror', None) or error}") from error
    return parse_hosts(text, f"--hosts {path}")


def chosen_session(store: Path, session: str | None, hosts: tuple[str, ...]) -> tuple[Session, bool]:
    """The session of that name or directory; without either the latest, and True."""
    if session is None:
        found = sessions(store)
        if not found:
            raise TunectlError(f"{store}: there is no session", "`tunectl fleet open` begins one")
        return read_session(Path(found[-1].directory), hosts), True
    path = Path(session)
    if os.sep not in session and not path.is_dir():
        path = store / session
    return read_session(path, hosts), False
