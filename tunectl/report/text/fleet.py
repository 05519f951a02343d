"""`tunectl fleet report`: the verdict, every host that is not GO with its reasons, who differs from its peers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tunectl.report.escape import printable
from tunectl.report.fleets import MEANS, MEASURES, VERDICTS, Alike, alike, odd_hosts, tally, times, word, written
from tunectl.report.machines import folded, machine_name
from tunectl.report.text.layout import VERDICT_STYLES, banner, columns, heading, line, prose
from tunectl.report.text.notes import notes
from tunectl.report.text.sheet import Sheet

_FEW = 3  # reasons of a host, but for -v
_ODDEST = 20  # hosts unlike their peers, but for -v
_SHOWN = ("max_ns", "p99_9_ns", "interruptions_per_s", "stolen_ppm", "loop_ns")


def render(body: Mapping[str, Any], sheet: Sheet) -> None:
    """Prints a tunectl.fleet/1 body."""
    verdict = str(body["verdict"])
    banner(sheet, verdict, f"{tally(body['counts'])}; {MEANS.get(verdict, '')}")
    session = body["session"]
    said = [f"session {session['name']}", session["selection"], f"began {session['at']}" if session["at"] else ""]
    prose(sheet, " · ".join(printable(part) for part in said if part), indent=2, style="dim")
    hidden, gathered = 0, alike(body["hosts"])
    for named in VERDICTS:
        hidden += _verdict(sheet, named, [one for one in gathered if one.verdict == named])
    if hidden:
        sheet.line()
        prose(sheet, f"{hidden:,} more reasons: -v shows all, --format json has them by host", style="dim")
    _outliers(sheet, body["outliers"])
    for group in body["groups"]:
        _group(sheet, group)
    notes(sheet, body["warnings"], "Warnings")


def _verdict(sheet: Sheet, verdict: str, gathered: Sequence[Alike]) -> int:
    """The hosts of one verdict, those that say the same together; returns how many reasons were left out."""
    if not gathered:
        return 0
    hosts = sum(len(one.hosts) for one in gathered)
    sheet.line()
    line(sheet, (word(verdict), f"bold {VERDICT_STYLES[verdict]}"), f": {hosts:,} host{'' if hosts == 1 else 's'}")
    for one in gathered:
        prose(sheet, ", ".join(folded(one.hosts)), indent=2, style="bold" if one.reasons else "")
        shown = one.reasons if sheet.verbose else one.reasons[:_FEW]
        for number, reason in enumerate(shown, 1):
            prose(sheet, reason, indent=4, label=f"{number}. ".rjust(len(str(len(shown))) + 2))
    return _left_out(sheet, gathered)


def _left_out(sheet: Sheet, gathered: Sequence[Alike]) -> int:
    return 0 if sheet.verbose else sum(max(len(one.reasons) - _FEW, 0) for one in gathered)


def _outliers(sheet: Sheet, outliers: Sequence[Mapping[str, Any]]) -> None:
    if not outliers:
        return
    heading(sheet, "Unlike their peers", ", by the median and its absolute deviation")
    hosts = odd_hosts(outliers)
    shown = hosts if sheet.verbose else hosts[:_ODDEST]
    rows = [_odd(one, is_first=number == 0) for _, found in shown for number, one in enumerate(found)]
    columns(sheet, rows, indent=2, right=(2, 3, 4, 5), header=("", "", "value", "median", "ratio", "score"))
    differing = [(host, text) for host, found in shown for text in found[0]["differs"]]
    for host, text in differing:
        prose(sheet, text, indent=2, label=f"{printable(host)}: ", style="yellow")
    if len(hosts) > len(shown):
        prose(sheet, f"and {len(hosts) - len(shown):,} more hosts: -v shows all", indent=2, style="dim")


def _odd(one: Mapping[str, Any], is_first: bool) -> list[str]:
    measure = one["measure"]
    what = MEASURES.get(measure, measure) + ("" if one["worse"] else " (better)")
    figures = written(measure, one["value"]), written(measure, one["median"])
    return [one["host"] if is_first else "", what, *figures, times(one["ratio"]), f"{one['score']:.3g}"]


def _group(sheet: Sheet, group: Mapping[str, Any]) -> None:
    hosts, compared = group["hosts"], group["compared"]
    sheet.line()
    prose(sheet, machine_name(group["hardware"]), style="bold")
    prose(sheet, f"{len(hosts):,} host{'' if len(hosts) == 1 else 's'}, {len(compared):,} compared", indent=2)
    rows = [
        [MEASURES[name], written(name, one["median"]), f"{written(name, one['low'])} to {written(name, one['high'])}"]
        for name in _SHOWN
        if (one := group["usual"].get(name))
    ]
    if rows:
        columns(sheet, rows, indent=2, right=(1,), header=("", "median", "usual"))
    if sheet.verbose or not rows:
        prose(sheet, ", ".join(folded(hosts)), indent=2, style="dim")
    for note in group["notes"]:
        prose(sheet, note, indent=2, label="- ")
