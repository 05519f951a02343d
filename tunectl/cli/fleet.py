"""tunectl fleet: open, record, report and history; gate, and those of sessions in columns, have files of their own"""

import datetime
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from tunectl import __version__
from tunectl.cli.command import can_draw, emit, open_root, tunectl_command
from tunectl.cli.fleet_gate import gate
from tunectl.cli.fleet_store import (
    HOSTS,
    STORE,
    diff,
    export,
    folders_in,
    history_of,
    keep,
    kept_body,
    kept_rounds,
    named,
    read_names,
    spare_isolated,
    sql,
)
from tunectl.cli.helped import GO, OK, Example, Family, exit_code
from tunectl.cli.options import Options
from tunectl.cli.report import page_of
from tunectl.cli.values import a_path, one_of, session_hosts
from tunectl.cli.values import sessions as session_names
from tunectl.durable import read_given
from tunectl.errors import TunectlError, UsageError
from tunectl.fleet.body import fleet_body, history_body
from tunectl.fleet.clickhouse import Store
from tunectl.fleet.documents import session_file
from tunectl.fleet.keep import read_manifest
from tunectl.fleet.names import SUFFIX, file_name, is_text
from tunectl.fleet.peers import PEERS
from tunectl.fleet.records import Absent, Answer, Session
from tunectl.fleet.store import (
    LARGEST_ANSWER,
    ask,
    ask_one,
    open_session,
    read_session,
    record_absent,
    record_document,
    session_directory,
    sessions,
    write_file,
)
from tunectl.host.identity import read_identity
from tunectl.model import Document, HostId
from tunectl.probe.document import read_document
from tunectl.shapes import host_of, now_utc, plain

_SAVED = {"txt": "text", "json": "json", "html": "html"}  # a file's suffix -> its format
_PAGES = "pages"


@click.group(
    name="fleet",
    cls=Family,
    examples=(
        Example("Write down who is asked:", "tunectl fleet open --hosts hosts.txt --name morning"),
        Example("Keep what each host said:", "tunectl fleet record morning tx-01 < tx-01.json"),
        Example("GO or NO-GO, for every host:", "tunectl fleet report"),
    ),
)
def command() -> None:
    """Many hosts, one answer. A session is one round of preflights; its directory holds a document for each host."""


@tunectl_command(
    name="open",
    examples=(
        Example("From a list with a name a line:", "tunectl fleet open --hosts hosts.txt --name morning"),
        Example("From an inventory of Ansible's:", "tunectl fleet open --hosts hosts.json --selection ny4"),
    ),
)
@STORE
@click.option(
    "--hosts",
    required=True,
    metavar="FILE",
    shell_complete=a_path(),
    help="Who will be asked: a JSON list, a JSON object {name: rack}, or a name a line; - is stdin.",
)
@click.option("--name", default="", metavar="NAME", help="What to call the session [its time].")
@click.option("--selection", default="", metavar="TEXT", help="Which part of the inventory this is, for the report.")
def open_(options: Options, store: Store, hosts: str, name: str, selection: str) -> int:
    """Begin a session: who is asked is written down first, so that nobody can be missed."""
    names = read_names(hosts)
    identity, at = read_identity(open_root(options)), now_utc()
    header = {"tunectl_version": __version__, "host": plain(host_of(identity))}
    racks = tuple((host, rack) for host, rack in names.items() if rack)
    session = open_session(folders_in(store), Session(name, "", at, selection, tuple(names), racks), header)
    emit(options, "fleet.session", identity, session_file(session))
    return OK


@tunectl_command(
    name="record",
    examples=(
        Example("What a host said:", "tunectl fleet record morning tx-01 < tx-01.json"),
        Example("Why a host said nothing:", "tunectl fleet record morning tx-02 --unreachable 'No route'"),
    ),
)
@STORE
@click.argument("session", shell_complete=one_of(session_names))
@click.argument("name", metavar="HOST", shell_complete=one_of(session_hosts))
@click.option("--unreachable", metavar="REASON", help="There was no connection to the host.")
@click.option("--failed", metavar="REASON", help="The host was reached, and the preflight failed.")
def record(options: Options, store: Store, session: str, name: str, unreachable: str | None, failed: str | None) -> int:
    """Keep what `tunectl preflight --format json` printed on HOST (read from stdin), or why there is nothing.

    SESSION is a name or a directory.
    """
    if unreachable is not None and failed is not None:
        raise UsageError("record: a host is either unreachable or has failed")
    if not name.strip():
        raise UsageError("record: the host has no name", "HOST is its name in the inventory")
    if not is_text(name):
        raise UsageError(f"record: {name!r} is not UTF-8")
    directory = session_directory(folders_in(store), session)
    if not (directory / "hosts").is_dir():
        raise UsageError(f"{directory}: is not a session", "`tunectl fleet open` makes one")
    if unreachable is None and failed is None:
        try:
            answer = read_given("-", LARGEST_ANSWER)
        except OSError as error:
            hint = "it is what `tunectl preflight --format json` printed on the host"
            raise UsageError(f"record: {error.strerror}", hint) from error
        record_document(directory, name, answer)
    else:
        kind = Answer.FAILED if unreachable is None else Answer.UNREACHABLE
        record_absent(directory, name, Absent(kind, unreachable or failed or "", now_utc()))
    return OK


@tunectl_command(
    name="report",
    formats=("text", "json", "html"),
    exits=GO,
    examples=(
        Example("The latest session:", "tunectl fleet report"),
        Example("An earlier one, as a page:", "tunectl fleet report morning --format html > morning.html"),
    ),
)
@STORE
@click.argument("session", required=False, shell_complete=one_of(session_names))
@HOSTS
@click.option(
    "--save", is_flag=True, help="Write report.txt, .json and .html, and a page a host, into the session, too."
)
@click.option(
    "--peers", type=click.Choice([*PEERS]), default="hardware", show_default=True, help="Who is compared with whom."
)
@click.option(
    "--max-age", "max_age_h", default=12.0, show_default=True, metavar="H", help="Of the latest session, in hours."
)
def report(
    options: Options, store: Store, session: str | None, hosts: str | None, save: bool, peers: str, max_age_h: float
) -> int:
    """GO or NO-GO for every host of SESSION (a name or a directory; the latest), and for all of them.

    Exit code: 3 if any host is NO-GO; else 1 if any is UNKNOWN; else 4 if any waits for its reboot; else 0.
    """
    for fmt in _SAVED.values() if save else ():
        can_draw(fmt)
    asked = tuple(read_names(hosts)) if hosts is not None else ()
    spare_isolated(options)
    found, is_kept = _latest(store, max_age_h) if session is None else named(store, session)
    if save and is_kept:
        raise UsageError(f"--save: of session {found.name} the columns alone are there", "--format html prints a page")
    if is_kept:
        body = kept_body(store, found.name, asked, peers)
    else:
        found = read_session(Path(found.directory), asked)
        body = fleet_body(found, ask(found), now_utc(), peers=peers)
    identity = read_identity(open_root(options))
    if save:
        from tunectl.report import render

        directory = Path(found.directory)
        pages = {host["name"]: _save_page(directory, host, identity) for host in body["hosts"] if host["file"]}
        for suffix, fmt in _SAVED.items():
            made = Document("fleet", identity, now_utc(), body if fmt != "html" else {**body, "pages": pages})
            write_file(directory / f"report.{suffix}", render(made, fmt).encode())
    emit(options, "fleet", identity, body)
    return exit_code(body["verdict"])


def _save_page(directory: Path, host: Mapping[str, Any], identity: HostId) -> str:
    """Writes the page of a host's own document; the address of it from the session's directory."""
    name = file_name(host["name"]).removesuffix(SUFFIX) + ".html"
    write_file(directory / _PAGES / name, page_of([read_document(Path(host["file"]))], None, identity).encode())
    return f"{_PAGES}/{quote(name)}"


@tunectl_command(
    name="history",
    examples=(
        Example("What a host was found to be, session after session:", "tunectl fleet history tx-01"),
        Example("The last five sessions:", "tunectl fleet history tx-01 --last 5"),
        Example("On how many hosts a knob was in force, and why not:", "tunectl fleet history --knob mm.swappiness"),
    ),
)
@STORE
@click.argument("name", metavar="[HOST]", required=False, shell_complete=one_of(session_hosts))
@click.option("--knob", metavar="KNOB", help="Or a knob or check, in every session in columns.")
@click.option("--cause", metavar="CAUSE", help="Or a cause of findings or gaps there, N for each number.")
@click.option("--last", type=click.IntRange(1), default=30, show_default=True, metavar="N", help="How many sessions.")
def history(options: Options, store: Store, name: str | None, knob: str | None, cause: str | None, last: int) -> int:
    """What HOST, by its name in the inventory, was found to be in each session; or what became of a knob or a cause."""
    if len([one for one in (name, knob, cause) if one]) != 1:
        raise UsageError("history: expected one of HOST, --knob and --cause")
    spare_isolated(options)
    if name is None:
        return history_of(options, store, knob, cause)
    folders = sessions(folders_in(store))
    rounds = ((session, ask_one(session, name)) for session in reversed(folders))
    concerned = (pair for pair in rounds if name in pair[0].hosts or pair[1].answer is not Answer.SILENT)
    own = {session.name for session in folders}
    columns = [(at, pair) for at, pair in kept_rounds(store, name) if pair[0].name not in own]
    every = [*((pair[0].at, pair) for pair in islice(concerned, last)), *columns]
    known = [pair for _, pair in sorted(every, key=lambda one: (one[0], one[1][0].name))[-last:]]
    if not known:
        raise TunectlError(f"{store}: no session has a host {name!r}", "by its name in the inventory")
    emit(options, "fleet.history", read_identity(open_root(options)), history_body(name, known, now_utc()))
    return OK


for _one in (open_, record, report, gate, history, keep, diff, export, sql):
    command.add_command(_one)


def _latest(store: Store, max_age_h: float) -> tuple[Session, bool]:
    """The last session that began, of folders and columns."""
    manifest = read_manifest(store)
    found = [(one.at, False, one) for one in sessions(folders_in(store))]
    found += [(manifest.sessions[name].at, True, named(store, name)[0]) for name in manifest.latest()[-1:]]
    if not found:
        raise TunectlError(f"{store}: there is no session", "`tunectl fleet open` begins one")
    _, is_kept, session = max(found, key=lambda one: (one[0], one[2].name, not one[1]))
    _check_age(session, max_age_h)
    return session, is_kept


def _check_age(session: Session, max_age_h: float) -> None:
    """A scheduler whose round did not begin today must not be answered with yesterday's GO."""
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
