"""The pages of `fleet report`, `fleet history` and `fleet open`."""

from collections.abc import Mapping, Sequence
from typing import Any

from tunectl.command import argv, as_data, quoted
from tunectl.report.escape import printable
from tunectl.report.hosts import (
    MEANS,
    OWN_WORDS,
    VERDICTS,
    Do,
    Why,
    causes,
    folded,
    group_name,
    named,
    odd_hosts,
    tally,
    to_do,
    word,
)
from tunectl.report.text import screen
from tunectl.report.text.page import VERDICT_STYLES, TextPage, columns, copied, heading, line, notes, prose, wrap
from tunectl.shapes import FIGURES
from tunectl.wording import MEASURES, by_chance, plural, times, written

_CUT = " ..."
_SHORT = 60  # cells; longer lists of hosts are counted in a heading
_FEW = 7  # causes shown of a verdict, and actions, without -v
_OWN = 3  # of what hosts ask for in their own words, each a line of its own
_ODDEST = 8  # outliers shown without -v


def report(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.fleet/1 body."""
    verdict = str(body["verdict"])
    screen.begin(page, verdict, f"{tally(body['counts'])}; {MEANS.get(verdict, '')}")
    session = body["session"]
    said = [f"session {session['name']}", session["selection"], f"began {session['at']}" if session["at"] else ""]
    prose(page, " · ".join(printable(part) for part in said if part), indent=2, style="dim")
    everything = to_do(body)
    _to_do(page, [one for one in everything if not one.own_words])
    _own_words(page, [one for one in everything if one.own_words])
    for one in VERDICTS:
        _verdict(page, body, one)
    _outliers(page, body["outliers"], body["outlier_rule"])
    for group in body["groups"]:
        _group(page, group)
    notes(page, body["warnings"], "Warnings")


def _to_do(page: TextPage, listed: Sequence[Do]) -> None:
    """What to do on which hosts, in the order to do it."""
    everybody = list(dict.fromkeys(host for one in listed for host in one.hosts))
    if listed:
        where = ", ".join(folded(everybody))
        heading(page, "To do, in this order", " on ", where if len(where) <= _SHORT else f"{len(everybody):,} hosts")
        own = "`tunectl preflight` of a host has its own list, with its own numbers in place of N"
        prose(page, own, indent=2, style="dim")
    for number, one in enumerate(listed if page.verbose else listed[:_FEW], 1):
        label = f"{number}. ".rjust(4)
        if one.is_command:
            copied(page, "  ", (label, "dim"), (one.what, "bold"))
        else:
            prose(page, one.what, indent=2, label=label)
        is_for_all = set(one.hosts) == set(everybody)
        if page.verbose or not is_for_all:
            prose(page, f"{one.said}: {', '.join(folded(one.hosts))}", indent=6, style="dim")
    if len(listed) > _FEW and not page.verbose:
        prose(page, f"and {len(listed) - _FEW:,} more: -v shows all", indent=2, style="dim")


def _own_words(page: TextPage, listed: Sequence[Do]) -> None:
    """What hosts ask for in their own words, which stands by itself."""
    if listed:
        heading(page, OWN_WORDS)
    for one in listed if page.verbose else listed[:_OWN]:
        prose(page, one.what, indent=2, label=f"{', '.join(folded(one.hosts))}: ")
    if len(listed) > _OWN and not page.verbose:
        prose(page, f"and {len(listed) - _OWN:,} more: -v shows all", indent=2, style="dim")


def _verdict(page: TextPage, body: Mapping[str, Any], verdict: str) -> None:
    """The hosts of one verdict, and what holds them back: each cause once, the most urgent first."""
    hosts = named(body["hosts"], verdict)
    if not hosts:
        return
    page.line()
    reasons, names = causes(body, verdict), ", ".join(folded(hosts))
    beside = not reasons and len(names) <= _SHORT
    counted = f": {plural(len(hosts), 'host')}{f'   {names}' if beside else ''}"
    line(page, (word(verdict), f"bold {VERDICT_STYLES[verdict]}"), counted)
    if not beside:
        prose(page, names, indent=2, style="bold" if reasons else "")
    for number, why in enumerate(reasons if page.verbose else reasons[:_FEW], 1):
        _cause(page, why, number, len(hosts))
    if len(reasons) > _FEW and not page.verbose:
        left = len(reasons) - _FEW
        more = f"and {plural(left, 'more cause')}: -v shows all, a host's own document has its reasons"
        prose(page, more, indent=2, style="dim")


def _cause(page: TextPage, one: Why, number: int, of: int) -> None:
    """A cause with its hosts, and one of their sentences: without -v no more than its first line."""
    is_for_all = len(one.hosts) == of > 1
    rest = (f" ({one.severity})" if one.severity else "") + ("; all of them" if is_for_all else "")
    prose(page, one.title + rest, indent=2, label=f"{number}. ".rjust(4))
    if of > len(one.hosts) or (is_for_all and page.verbose):
        prose(page, f"{one.said}: {', '.join(folded(one.hosts))}", indent=6, style="dim")
    if one.example and page.verbose:
        prose(page, one.example, indent=6)
    elif one.example:
        first, *more = wrap(one.example, page.width - 6 - len(_CUT))
        line(page, " " * 6, (first + (_CUT if more else ""), "dim"))


def _outliers(page: TextPage, outliers: Sequence[Mapping[str, Any]], rule: Mapping[str, Any]) -> None:
    if not outliers:
        return
    heading(page, "Unlike their peers", f", by median and MAD; {by_chance(rule['score'])}")
    hosts = odd_hosts(outliers)
    shown = hosts if page.verbose else hosts[:_ODDEST]
    rows = []
    for _, found in shown:
        for number, one in enumerate(found):
            measure = one["measure"]
            what = MEASURES.get(measure, measure) + ("" if one["worse"] else " (better)")
            figures = written(measure, one["value"]), written(measure, one["median"])
            host = one["host"] if number == 0 else ""
            rows.append([host, what, *figures, times(one["ratio"]), f"{one['score']:.3g}"])
    columns(page, rows, indent=2, right=(2, 3, 4, 5), header=("", "", "value", "median", "ratio", "score"))
    differing = [(host, text) for host, found in shown for text in found[0]["differs"]]
    for host, text in differing:
        prose(page, text, indent=2, label=f"{printable(host)}: ", style="yellow")
    if len(hosts) > len(shown):
        prose(page, f"and {plural(len(hosts) - len(shown), 'more host')}: -v shows all", indent=2, style="dim")


def _group(page: TextPage, group: Mapping[str, Any]) -> None:
    hosts, compared = group["hosts"], group["compared"]
    page.line()
    prose(page, group_name(group, as_data), style="bold")
    counted = f"{plural(len(hosts), 'host')}, {len(compared):,} compared"
    known = [(name, one) for name in MEASURES if (one := group["usual"].get(name))]
    if known and not page.verbose:
        medians = ", ".join(f"{MEASURES[name]} {written(name, one['median'])}" for name, one in known)
        prose(page, f"{counted}; median: {medians}", indent=2)
    else:
        prose(page, counted, indent=2)
        figures = [(name, *(written(name, one[key]) for key in ("median", "low", "high"))) for name, one in known]
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
