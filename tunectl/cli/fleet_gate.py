"""tunectl fleet gate: may what some hosts have go to all of them?"""

import re
from collections.abc import Iterable
from pathlib import Path

import click

from tunectl.cli.command import emit, open_root, tunectl_command
from tunectl.cli.fleet_store import STORE, named, read_names, spare_isolated
from tunectl.cli.helped import GO, Example, exit_code
from tunectl.cli.options import Options
from tunectl.cli.values import one_of
from tunectl.cli.values import sessions as session_names
from tunectl.compare.chance import CONFIDENCE
from tunectl.errors import UsageError
from tunectl.fleet.ask import asking, session_in
from tunectl.fleet.clickhouse import Store
from tunectl.fleet.gate import FACTS, Canary, gate_body
from tunectl.fleet.records import Asked, Session
from tunectl.fleet.store import ask, read_session
from tunectl.host.identity import read_identity
from tunectl.shapes import now_utc

_PERCENT = re.compile(r"(\d{1,2}(?:\.\d{1,6})?) ?%")


@tunectl_command(
    name="gate",
    exits=GO,
    examples=(
        Example("One rack has the new firmware:", "tunectl fleet gate morning --canary A1 --max-no-go 1%"),
        Example("Whoever runs a kernel:", "tunectl fleet gate morning --canary kernel=6.12.9 --max-no-go 1%"),
        Example("The hosts of a list, as of open:", "tunectl fleet gate morning --canary @canary.json --max-no-go 1%"),
    ),
)
@STORE
@click.argument("session", shell_complete=one_of(session_names))
@click.option("--canary", required=True, metavar="GROUP", help="A rack, @FILE with hosts (@- is stdin), or FACT=VALUE.")
@click.option("--max-no-go", required=True, metavar="P%", help="The share of NO-GO that is permitted.")
@click.option("--confidence", default=CONFIDENCE, show_default=True, metavar="P", help="Of the bounds, 0.5 to 0.9999.")
def gate(options: Options, store: Store, session: str, canary: str, max_no_go: str, confidence: float) -> int:
    """May what the canary has go to all hosts? GROUP of SESSION against its peers.

    FACT is kernel, build, microcode, bios, cards, tunectl or isolated. GO needs a share of NO-GO that is within P for
    certain, and figures that are not worse than those of peers of the same hardware. Too few hosts are UNKNOWN.

    Exit code: 3 for NO-GO; else 1 where it cannot be told; else 4 where hosts wait for their reboot; else 0.
    """
    match = _PERCENT.fullmatch(max_no_go.strip())
    if not match or not float(match[1]):
        raise UsageError(f"--max-no-go {max_no_go!r}: a share above 0% and below 100%", "such as 1% or 0.5%")
    if not 0.5 <= confidence <= 0.9999:
        raise UsageError(f"--confidence {confidence:g}: a share, from 0.5 to 0.9999", "0.95 is usual")
    listed = read_names(canary[1:], "--canary @") if canary.startswith("@") else {}
    spare_isolated(options)
    found, is_kept = named(store, session)
    answers: Iterable[Asked]
    if is_kept:
        with asking(store, session) as connection:
            found, answers = session_in(connection, store, session, tuple(listed))
    else:
        found = read_session(Path(found.directory), tuple(listed))
        answers = ask(found)
    chosen = _canary(canary, listed, found)
    body = gate_body(found, answers, now_utc(), chosen, float(match[1]) / 100, confidence)
    emit(options, "fleet.gate", read_identity(open_root(options)), body)
    return exit_code(body["verdict"])


def _canary(given: str, listed: dict[str, str], session: Session) -> Canary:
    """Hosts of a list or of a rack, or a fact. What the inventory calls a rack is one, whatever its name looks like."""
    hosts = frozenset(listed or (host for host, rack in session.racks if rack == given))
    fact, equals, value = given.partition("=")
    if hosts or not equals or given.startswith("@"):
        return Canary(given, hosts)
    if fact not in FACTS or not value:
        raise UsageError(f"--canary {given!r}: no fact of a host", f"one of {', '.join(FACTS)}, then = and its value")
    return Canary(given, fact=fact, value=value)
