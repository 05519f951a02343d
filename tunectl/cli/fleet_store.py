"""tunectl fleet: keep, diff, export and sql; a session in columns for report and history"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from tunectl.cli.command import tunectl_command
from tunectl.cli.helped import OK, Example
from tunectl.cli.options import Options
from tunectl.errors import TunectlError
from tunectl.fleet.body import fleet_body
from tunectl.fleet.keep import read_manifest, set_most, take_in
from tunectl.fleet.store import default_store, read_session, session_directory, sessions
from tunectl.host import lockfile
from tunectl.shapes import now_utc

STORE = click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False),
    default=default_store,
    envvar="TUNECTL_FLEET_STORE",
    show_envvar=True,
    metavar="DIR",
    help="Where sessions are kept [~/.local/state/tunectl/fleet].",
)


@tunectl_command(
    name="keep",
    examples=(
        Example("Every session that is not in columns yet:", "tunectl fleet keep"),
        Example("What hosts handed to a folder:", "tunectl fleet keep /mnt/fleet/2026-11-28 --store /srv/fleet"),
    ),
)
@STORE
@click.argument("folders", nargs=-1, metavar="[SESSION|FOLDER]...")
@click.option("--keep-sessions", type=click.IntRange(0), metavar="N", help="Only the last N stay from now on; 0: all.")
def keep(options: Options, store: Path, folders: tuple[str, ...], keep_sessions: int | None) -> int:
    """Take sessions into the store's columns: what `record` kept, or a folder of HOST.json."""
    with _alone(store):
        kept = read_manifest(store).sessions
        found = [read_session(session_directory(store, one)) for one in folders]
        found = found or [one for one in sessions(store) if one.name not in kept]
        taken = {one.name: take_in(store, one, now_utc(), len(os.sched_getaffinity(0))) for one in found}
        gone = set_most(store, keep_sessions)
    click.echo(f"{taken} {gone}")
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
        raise TunectlError(f"{store}: {lockfile.holder_of(str(store / 'lock'))} keeps a session there at this moment")
    try:
        yield
    finally:
        os.close(held)


def kept_body(store: Path, name: str, hosts: tuple[str, ...]) -> dict[str, Any]:
    """tunectl.fleet/1 of a session in columns."""
    from tunectl.fleet.ask import answers_in, asking, causes_in, session_in

    with asking(store, name) as connection:
        session = session_in(connection, store, name, hosts)
        answers = answers_in(connection, session)
        return fleet_body(session, answers, now_utc(), lambda judged: causes_in(connection, name, judged))
