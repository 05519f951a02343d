"""The pages of `fleet report`, `fleet history` and `fleet open`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from tunectl.command import argv, as_data, quoted
from tunectl.report.escape import printable
from tunectl.report.hosts import (
    FEW_CAUSES,
    MEANS,
    OWN_WORDS,
    STATES,
    Do,
    OddHost,
    Why,
    causes,
    folded,
    group_name,
    middle,
    named,
    odd_hosts,
    state_of,
    tally,
    to_do,
    word,
)
from tunectl.report.text import screen
from tunectl.report.text.page import (
    VERDICT_STYLES,
    TextPage,
    cell_len,
    columns,
    copied,
    heading,
    line,
    prose,
    roomiest,
    wrap,
)
from tunectl.shapes import FIGURES
from tunectl.wording import MEASURES, by_chance, plural, times, written

_MAX_LINES = 37  # without -v; the verdict once more takes up to three
_SHORT, _LABEL = 60, 30  # cells; longer lists of hosts are counted in a heading, and in front of a text
_CUT = " ...: -v"


class _Room(NamedTuple):
    """How much of each part a page shows; None is all of it."""

    most: int | None = None  # causes of a state, steps, warnings
    fewer: int | None = None  # of what hosts ask for in their own words, and of those unlike their peers
    lines: int = 0  # of a paragraph; 0 is all of them, 1 makes a line of each cause and of each host


class _Told(NamedTuple):
    """A document, and what is found in it once for all rooms."""

    body: Mapping[str, Any]
    failing: Mapping[str, tuple[list[str], list[Why]]]  # by state, the hosts and why
    to_do: list[Do]
    odd: list[OddHost]

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "_Told":
        """What a page tells of it."""
        hosts = {state: names for state in STATES[:-1] if (names := named(body["hosts"], state))}
        failing = {state: (names, causes(body, state)) for state, names in hosts.items()}
        return cls(body, failing, to_do(body), odd_hosts(body["outliers"]))


_ROOMS = (_Room(FEW_CAUSES, FEW_CAUSES, 2), *(_Room(most, most // 2, 1) for most in range(FEW_CAUSES, 0, -1)))


def report(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.fleet/1 body: of a large fleet as much as one screen holds."""
    verdict, session = str(body["verdict"]), body["session"]
    counted = tally({"hosts": len(body["hosts"]), **Counter(map(state_of, body["hosts"]))})
    said = [f"session {session['name']}", session["selection"], f"began {session['at']}" if session["at"] else ""]
    screen.begin(page, verdict, f"{counted}; {MEANS.get(verdict, '')}", [" · ".join(filter(None, said))], counted)
    rooms = (_Room(),) if page.verbose else _ROOMS
    roomiest(page, rooms, partial(_parts, _Told.of(body)), lambda drawn: len(drawn.lines) <= _MAX_LINES)


def _parts(told: _Told, page: TextPage, room: _Room) -> None:
    """What is wrong, what to do, who is unlike the others, and the counts."""
    body, listed = told.body, told.to_do
    for state, (hosts, reasons) in told.failing.items():
        _state(page, state, hosts, reasons, room)
    _to_do(page, [one for one in listed if not one.own_words], room)
    own = [(f"{_who(page, one.hosts, _LABEL)}: ", one.what) for one in listed if one.own_words]
    _texts(page, OWN_WORDS, own, room.fewer, room.lines)
    _outliers(page, told.odd, body["outlier_rule"], room)
    for group in body["groups"][: 0 if room.lines == 1 else room.most]:
        _group(page, group)
    _texts(page, "Warnings", [("- ", str(text)) for text in body["warnings"]], room.most, room.lines and 2)
    _counts(page, told)


def _more(page: TextPage, listed: Sequence[object], shown: int | None, what: str, rest: str = "") -> None:
    """How many of them are not shown."""
    if left := len(listed[shown:]) if shown is not None else 0:
        prose(page, f"and {plural(left, f'more {what}')}: -v shows all{rest}", indent=2, style="dim")


def _hosts(page: TextPage, state: str, hosts: Sequence[str]) -> None:
    """A state with its hosts: one line, but with -v."""
    styled, counted = (word(state), f"bold {VERDICT_STYLES.get(state, 'magenta')}"), f": {plural(len(hosts), 'host')}"
    names, room = ", ".join(folded(hosts)), page.width - cell_len(styled[0] + counted) - 3
    page.line()
    if page.verbose:
        line(page, styled, counted)
        prose(page, names, indent=2)
    else:
        first = names if len(wrap(names, room)) == 1 else wrap(names, room - len(_CUT))[0] + _CUT
        line(page, styled, counted, "   ", first)


def _state(page: TextPage, state: str, hosts: Sequence[str], reasons: Sequence[Why], room: _Room) -> None:
    """The hosts of one state, and what holds them back: each cause once, the most urgent first."""
    _hosts(page, state, hosts)
    for number, why in enumerate(reasons[: room.most], 1):
        _cause(page, why, number, len(hosts), room)
    _more(page, reasons, room.most, "cause", ", a host's own document has its reasons")


def _cause(page: TextPage, one: Why, number: int, of: int, room: _Room) -> None:
    """A cause with its hosts, and one of their sentences: without -v no more than its first line."""
    title = (
        one.title
        + (f" ({one.severity})" if one.severity else "")
        + ("; all of them" if len(one.hosts) == of > 1 else "")
    )
    label, where = f"{number}. ".rjust(4), f"{one.said}: {', '.join(folded(one.hosts))}"
    is_partial = of > len(one.hosts)
    if room.lines == 1:
        is_short = cell_len(f"{title}; {where}") <= page.width - 2 - len(label)
        said = f"{title}; {where if is_short else one.said}" if is_partial else title
        prose(page, said, indent=2, label=label, most=1)
        return
    prose(page, title, indent=2, label=label, most=room.lines)
    if is_partial or page.verbose:
        prose(page, where, indent=6, style="dim", most=room.lines)
    if one.example:
        screen.clipped(page, one.example, indent=6, style="dim", lines=1)


def _who(page: TextPage, hosts: Sequence[str], cells: int) -> str:
    """The hosts by name, or how many where that is too long: but with -v."""
    names = ", ".join(folded(hosts))
    return names if page.verbose or cell_len(names) <= cells else plural(len(hosts), "host")


def _to_do(page: TextPage, listed: Sequence[Do], room: _Room) -> None:
    """What to do on which hosts, in the order to do it."""
    everybody = list(dict.fromkeys(host for one in listed for host in one.hosts))
    if listed:
        heading(page, "To do, in this order", " on ", _who(page, everybody, _SHORT))
        own = "`tunectl preflight` of a host has its own list, with its own numbers for N"
        prose(page, own, indent=2, style="dim")
    for number, one in enumerate(listed[: room.most], 1):
        label = f"{number}. ".rjust(4)
        if one.is_command:
            copied(page, "  ", (label, "dim"), (one.what, "bold"))
        else:
            screen.clipped(page, one.what, indent=2, label=label)
        if page.verbose or set(one.hosts) != set(everybody):
            prose(page, f"{one.said}: {', '.join(folded(one.hosts))}", indent=6, style="dim", most=room.lines)
    _more(page, listed, room.most, "step")


def _texts(page: TextPage, title: str, texts: Sequence[tuple[str, str]], shown: int | None, lines: int) -> None:
    """Texts, each behind its label."""
    if texts:
        heading(page, title)
    for label, text in texts[:shown]:
        prose(page, text, indent=2, label=label, most=lines)
    _more(page, texts, shown, "text")


def _outliers(page: TextPage, hosts: Sequence[OddHost], rule: Mapping[str, Any], room: _Room) -> None:
    """Hosts unlike their peers, the oddest first; where there is little room, each with its oddest figure."""
    shown = hosts[: room.fewer]
    if not shown:
        return
    heading(page, "Unlike their peers", f", by median and MAD; {by_chance(rule['score'])}")
    rows = []
    for host, found in shown:
        for number, one in enumerate(found[:1] if room.lines == 1 else found):
            measure = str(one["measure"])
            what = MEASURES.get(measure, measure) + ("" if one["worse"] else " (better)")
            figures = written(measure, one["value"]), written(measure, one["median"])
            rows.append(["" if number else host, what, *figures, times(one["ratio"]), f"{one['score']:.3g}"])
    columns(page, rows, indent=2, right=(2, 3, 4, 5), header=("", "", "value", "median", "ratio", "score"))
    for host, text in [(host, text) for host, found in shown for text in found[0]["differs"]]:
        prose(page, text, indent=2, label=f"{printable(host)}: ", style="yellow", most=room.lines)
    _more(page, hosts, room.fewer, "host")


def _counts(page: TextPage, told: _Told) -> None:
    """Who is ready to trade; and in one line how many were measured, and compared."""
    body = told.body
    if ready := named(body["hosts"], "go"):
        _hosts(page, "go", ready)
    else:
        page.line()
    measured = sum(host["measured"] is not None for host in body["hosts"])
    compared = sum(len(group["compared"]) for group in body["groups"] if group["usual"])
    said = f"{measured:,} measured, {compared:,} compared with peers, {len(told.odd):,} unlike them"
    prose(page, said + ("" if page.verbose else ": -v lists them"), indent=2)


def _group(page: TextPage, group: Mapping[str, Any]) -> None:
    hosts, compared = group["hosts"], group["compared"]
    page.line()
    prose(page, group_name(group, as_data), style="bold")
    counted = f"{plural(len(hosts), 'host')}, {len(compared):,} compared"
    known = [(name, one) for name in MEASURES if (one := group["usual"].get(name))]
    if known and not page.verbose:
        medians = ", ".join(f"{MEASURES[name]} {middle(name, one)}" for name, one in known)
        prose(page, f"{counted}; median: {medians}", indent=2)
    else:
        prose(page, counted, indent=2)
        figures = [
            (name, middle(name, one), *(written(name, one[key]) for key in ("low", "high"))) for name, one in known
        ]
        rows = [(MEASURES[name], median, f"{low} to {high}") for name, median, low, high in figures]
        columns(page, rows, indent=2, right=(1,), header=("", "median", "usual") if rows else ())
    if page.verbose or not known:
        prose(page, ", ".join(folded(hosts)), indent=2, style="dim")
    for note in group["notes"]:
        prose(page, note, indent=2, label="- ")


def history(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.fleet.history/1 body."""
    prose(page, f"{body['name']} in {plural(len(body['sessions']), 'session')}", style="bold")
    page.line()
    rows = []
    for one in body["sessions"]:
        figures = (written(measure, (one["measured"] or {}).get(measure)) for measure in FIGURES)
        rows.append([one["session"]["name"], word(one["verdict"]), *figures])
    header = ("session", "verdict", "longest", "P99.9", "rate", "stolen")
    columns(page, rows, indent=2, right=(2, 3, 4, 5), header=header)
    for one in body["sessions"]:
        if one["changed"] or one["reasons"]:
            heading(page, one["session"]["name"], ": ", (word(one["verdict"]), VERDICT_STYLES.get(one["verdict"], "")))
        for text in one["changed"]:
            prose(page, text, indent=2, label="changed: ", style="yellow")
        ours = len(one["reasons"]) - one.get("own_words", 0)
        said = [text if place < ours else f"it says: {quoted(text)}" for place, text in enumerate(one["reasons"])]
        for text in said if page.verbose else said[:1]:
            prose(page, text, indent=2, label="- ")
        if not page.verbose and len(one["reasons"]) > 1:
            prose(page, f"and {plural(len(one['reasons']) - 1, 'more reason')}: -v shows them", indent=4, style="dim")
    if body["compare"]:
        heading(page, "The last two side by side")
        copied(page, "  ", argv("tunectl", "compare", of=body["compare"]))


def session(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.fleet.session/1 body."""
    line(page, (printable(body["directory"]), "bold"))
    hosts = body["hosts"]
    prose(page, f"{len(hosts):,} to be asked: {', '.join(folded(hosts))}", indent=2)
