"""tunectl fleet"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tunectl import __version__
from tunectl.cli.command import emit, now, open_root, tunectl_command
from tunectl.cli.exits import OK
from tunectl.cli.fleet_report import history, report
from tunectl.cli.fleet_store import STORE, read_names
from tunectl.cli.options import Options
from tunectl.errors import UsageError
from tunectl.fleet.documents import session_list
from tunectl.fleet.names import is_text
from tunectl.fleet.records import Absent, Answer, Session
from tunectl.fleet.store import open_session, record_absent, record_document
from tunectl.host.identity import read_identity


@click.group(name="fleet")
def command() -> None:
    """Many hosts, one answer. A session is one round of preflights; its directory holds a document for each host."""


@tunectl_command(name="open")
@STORE
@click.option(
    "--hosts", required=True, metavar="FILE", help="Who will be asked: a JSON list, or a name a line; - is stdin."
)
@click.option("--name", default="", metavar="NAME", help="What to call the session [its time].")
@click.option("--selection", default="", metavar="TEXT", help="Which part of the inventory this is, for the report.")
def open_(options: Options, store: Path, hosts: str, name: str, selection: str) -> int:
    """Begin a session: who is asked is written down first, so that nobody can be missed."""
    names = read_names(hosts)
    if not names:
        raise UsageError(f"--hosts {hosts}: names nobody")
    identity, at = read_identity(open_root(options)), now()
    header = {"tunectl_version": __version__, "host": identity._asdict()}
    session = open_session(store, Session(name, "", at, selection, names), header)
    emit(options, "fleet.session", identity, {**session_list(session)})
    return OK


@tunectl_command(name="record")
@click.argument("session", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("name", metavar="HOST")
@click.option("--unreachable", metavar="REASON", help="There was no connection to the host.")
@click.option("--failed", metavar="REASON", help="The host was reached, and the preflight failed.")
def record(options: Options, session: Path, name: str, unreachable: str | None, failed: str | None) -> int:
    """Keep what `tunectl preflight --format json` printed on HOST (read from stdin), or why there is nothing."""
    if unreachable is not None and failed is not None:
        raise UsageError("record: a host is either unreachable or has failed")
    if not is_text(name):
        raise UsageError(f"record: {name!r} is not UTF-8")
    if not (session / "hosts").is_dir():
        raise UsageError(f"{session}: is no session", "`tunectl fleet open` makes one")
    if unreachable is None and failed is None:
        record_document(session, name, sys.stdin.buffer.read())
    else:
        kind = Answer.FAILED if unreachable is None else Answer.UNREACHABLE
        record_absent(session, name, Absent(kind, unreachable or failed or "", now()))
    return OK


for one in (open_, record, report, history):
    command.add_command(one)
