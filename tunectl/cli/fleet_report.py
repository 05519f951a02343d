"""tunectl fleet report and history"""

from __future__ import annotations

import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import click

from tunectl.cli.command import emit, now, open_root, tunectl_command
from tunectl.cli.exits import OK, exit_code
from tunectl.cli.fleet_store import STORE, chosen_session, read_names
from tunectl.cli.options import Options
from tunectl.errors import TunectlError, UsageError
from tunectl.fleet.body import fleet_body
from tunectl.fleet.history import history_body
from tunectl.fleet.records import Answer, Session
from tunectl.fleet.store import ask, ask_one, sessions, write_file
from tunectl.host.identity import read_identity
from tunectl.model import Document, HostId

_SAVED = {"txt": "text", "json": "json", "html": "html"}  # a file's suffix -> its format


@tunectl_command(name="report", formats=("text", "json", "html"))
@STORE
@click.argument("session", required=False)
@click.option("--hosts", metavar="FILE", help="Who was asked, beside the session's own list; - is stdin.")
@click.option("--save", is_flag=True, help="Write report.txt, .json and .html into the session, too.")
@click.option(
    "--max-age", "max_age_h", default=12.0, show_default=True, metavar="H", help="Of the latest session, in hours."
)
def report(options: Options, store: Path, session: str | None, hosts: str | None, save: bool, max_age_h: float) -> int:
    """GO or NO-GO for every host of SESSION (a name or a directory; the latest), and for all of them.

    Exit code: 3 if any host is NO-GO; else 1 if any is UNKNOWN; else 4 if any waits for its reboot; else 0.
    """
    found, is_latest = chosen_session(store, session, read_names(hosts) if hosts else ())
    if is_latest:
        _check_age(found, max_age_h)
    body = fleet_body(found, ask(found))
    identity = read_identity(open_root(options))
    if save:
        _save(found, identity, body)
    emit(options, "fleet", identity, body)
    return exit_code(body["verdict"])


@tunectl_command(name="history")
@STORE
@click.argument("name", metavar="HOST")
@click.option("--last", type=click.IntRange(1), default=30, show_default=True, metavar="N", help="How many sessions.")
def history(options: Options, store: Path, name: str, last: int) -> int:
    """What HOST, by its name in the inventory, was found to be in each session."""
    rounds = ((session, ask_one(session, name)) for session in reversed(sessions(store)))
    concerned = (pair for pair in rounds if name in pair[0].hosts or pair[1].answer is not Answer.SILENT)
    known = list(islice(concerned, last))[::-1]
    if not known:
        raise TunectlError(f"{store}: no session has a host {name!r}", "by its name in the inventory")
    emit(options, "fleet.history", read_identity(open_root(options)), history_body(name, known))
    return OK


def _check_age(session: Session, max_age_h: float) -> None:
    """Yesterday's GO is no answer for a scheduler whose round never began today."""
    try:
        age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(session.at)
    except (ValueError, TypeError) as error:
        raise TunectlError(f"{session.directory}: does not say when it began: {session.at!r}") from error
    if not max_age_h > 0:
        raise UsageError(f"--max-age {max_age_h:g}: hours, above 0")
    if age.total_seconds() > max_age_h * 3600:
        hours = age.total_seconds() / 3600
        what = f"the latest session, {session.name}, began {hours:.3g} hours ago"
        raise TunectlError(what, "name it to see it, or raise --max-age")


def _save(session: Session, identity: HostId, body: dict[str, Any]) -> None:
    from tunectl.report import render

    document = Document("fleet", identity, now(), body)
    for suffix, fmt in _SAVED.items():
        write_file(Path(session.directory) / f"report.{suffix}", render(document, fmt).encode())
