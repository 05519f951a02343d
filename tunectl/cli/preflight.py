"""tunectl preflight"""

import os
from datetime import UTC, datetime
from typing import Any

import click

from tunectl.cli.command import (
    GATE,
    Typed,
    document_of,
    emit,
    open_root,
    progress,
    stay_off,
    today,
    tunectl_command,
    typed,
    write_whole,
)
from tunectl.cli.helped import FAILED, GO, OK, Example, exit_code
from tunectl.cli.options import WINDOW_S, Options, intrude_option, load_option
from tunectl.cli.verify import Verified, verify_body
from tunectl.cpulist import format_cpulist
from tunectl.errors import UsageError
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.identity import read_identity
from tunectl.hostfile.shape import Report
from tunectl.model import Document
from tunectl.preflight.keeping import keep as keep_document
from tunectl.preflight.keeping import missed, open_place, place_of, waiting_in
from tunectl.preflight.run import Flight, Request, run_preflight
from tunectl.probe.loads import chosen
from tunectl.report import render
from tunectl.report.actions import actions_of
from tunectl.shapes import plain
from tunectl.tuning.inspection import config_or_proposal
from tunectl.units import TIMER, time_of
from tunectl.wording import plural


@tunectl_command(
    formats=GATE,
    exits=GO,
    examples=(
        Example("Is this host ready to trade?", "sudo tunectl preflight"),
        Example("Keep the result as a document:", "sudo tunectl preflight --format json > tx-01.json"),
        Example("A minute, then once more beside all loads:", "sudo tunectl preflight --duration 60 --load all"),
    ),
)
@click.option(
    "--duration",
    "duration_s",
    type=float,
    metavar="S",
    help="How long the probe runs [as long as its limits need, 5 to 60].",
)
@click.option("--window", "window_s", default=WINDOW_S, show_default=True, metavar="S", help="How long checks watch.")
@load_option
@click.option("--feed/--no-feed", default=None, help="Run `probe feed`, too [as the host file says].")
@intrude_option
@click.option("--strict", is_flag=True, help="What cannot be found out fails, too.")
@click.option(
    "--deliver",
    is_flag=True,
    help="Measure nothing: hand the kept documents to what [report] names, until all are taken.",
)
@click.option("--keep", is_flag=True, help="Keep the document on this host, and do with it what [report] says.")
def command(
    options: Options,
    duration_s: float | None,
    window_s: float,
    load: str | None,
    feed: bool | None,
    intrude: bool,
    strict: bool,
    keep: bool,
    deliver: bool,
) -> int:
    """Is this host ready to trade? verify + check + probe + thermal state: GO or NO-GO, with every reason."""
    if (duration_s is not None and not 0 < duration_s <= 86400) or not 0 < window_s <= 86400:
        raise UsageError("--duration and --window: seconds, above 0 and at most a day")
    if deliver:
        return _deliver(options)
    loads = chosen(load.split(","), "--load") if load is not None else None
    root, how = open_root(options), typed(options)
    place = open_place(options.state_path) if keep else ""
    began = datetime.now(UTC)
    with progress(options) as tell:
        request = Request(
            root=root,
            host_path=options.host_path,
            host_required=bool(options.host),
            state=options.state_path,
            invocation=options.invocation,
            today=today(),
            duration_s=duration_s,
            window_s=window_s,
            strict=strict,
            tell=tell,
            intrude=intrude,
            stay_off=lambda isolated: stay_off(root, isolated),
            load=loads,
            feed=feed,
            typed=how.finding,
        )
        flight = run_preflight(request)
    if keep:  # by now off the isolated CPUs: it starts a program
        flight.notes += missed(place, time_of(root.get_text(TIMER)), began)
    body = _body(flight, strict, intrude, how)
    try:
        if keep:
            _keep(place, flight, document_of(options, "preflight", flight.identity, body))
    finally:
        emit(options, "preflight", flight.identity, body)
    return exit_code(flight.verdict, options.fmt)


def _deliver(options: Options) -> int:
    from tunectl.cli.daemon import say  # with the monitor, which no other preflight needs whole
    from tunectl.preflight.handing import hand_on, open_receiver

    root = open_root(options)
    config, _ = config_or_proposal(root, options.host_path, read_scope_facts(root), required=bool(options.host))
    hand = open_receiver(config.report, read_identity(root).hostname) if config else None
    if config and hand:
        stay_off(root, config.scope.isolated)
        return FAILED if hand_on(open_place(options.state_path), hand, say) else OK
    place = place_of(options.state_path)
    waiting = len(waiting_in(place)) if os.path.isdir(place) else 0
    if waiting:
        say(f"[report] of the host file names nobody who takes what waits in {place}: {plural(waiting, 'document')}")
    return FAILED if waiting else OK


def _keep(place: str, flight: Flight, document: Document) -> None:
    """The document for whoever asks later. One that cannot be kept is shown to node_exporter all the same."""
    report = flight.inspection.config.report if flight.inspection else Report()
    try:
        at = datetime.fromisoformat(document.at)
        keep_document(
            place, at, render(document, "json").encode(), report.keep, waits=bool(report.folder or report.url)
        )
    finally:
        if report.textfile is not None:
            write_whole(report.textfile, render(document, "prometheus"))


def _body(flight: Flight, strict: bool, intrude: bool, how: Typed) -> dict[str, Any]:
    verify: Verified | dict[str, Any] = {"verdict": "unreadable", "findings": [], "notes": []}
    if flight.inspection and flight.plan:
        verify = verify_body(flight.inspection, flight.plan, strict)
    return {
        "verdict": flight.verdict,
        "headline": flight.headline,
        "reasons": [reason.text for reason in flight.reasons],
        "reasons_about": [reason.about for reason in flight.reasons],
        "actions": _actions(flight, how),
        "waivers": plain(flight.waivers),
        "looser": plain(flight.looser),
        "strict": strict,
        "cpu_sets": _cpu_sets(flight),
        "hardware": plain(flight.machine),
        "firmware": plain(flight.firmware),
        "smis": plain(flight.smis),
        "verify": verify,
        "check": {"verdict": flight.check_verdict, "findings": flight.check},
        "probe": plain(flight.probe),
        "load": list(flight.load),
        "loaded": plain(flight.loaded),
        "is_feed_asked": flight.is_feed_asked,
        "feed": flight.fed.document,
        "beside": [beside.document() for beside in flight.beside],
        "intrude": intrude,
        "thermal": {**flight.thermal, "findings": flight.thermal["findings"]},
        "notes": flight.notes,
        **({"unconfirmed": waits} if (waits := flight.inspection and flight.inspection.unconfirmed()) else {}),
    }


def _actions(flight: Flight, how: Typed) -> list[dict[str, Any]]:
    broken = [run is not None and run.budget.verdict == "broken" for run in (flight.probe, flight.loaded)]
    over_budget = broken == [True, False]  # the search beside the load measures without it, too
    found, unproved = map(how.finding, flight.findings), map(how.fix, flight.unproved)
    return actions_of(found, over_budget=over_budget, unproved=unproved, start=how.start)


def _cpu_sets(flight: Flight) -> dict[str, Any]:
    """Which CPUs were judged, and what says which are isolated."""
    scope = flight.scope
    sets = (scope.online, scope.isolated, scope.housekeeping) if scope else ()
    named = dict(zip(("online", "isolated", "housekeeping"), map(format_cpulist, sets), strict=False))
    origin = flight.inspection.config.origin if flight.inspection else "nobody: none can be isolated"
    return {**named, "from": origin, "cores": flight.cores, "nodes": flight.nodes}
