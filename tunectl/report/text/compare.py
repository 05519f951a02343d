"""`tunectl compare`: the verdict, then the tables of before and after."""

from collections.abc import Mapping, Sequence
from typing import Any

from tunectl.report.escape import printable
from tunectl.report.figures import SIDES, bounds_of, change_of, label_of, listed_cpus, value_of, verdict_of
from tunectl.report.text.page import Part, TextPage, heading, line, notes, prose
from tunectl.shapes import ComparedSide, Comparison, RowGroup, typed
from tunectl.wording import nanoseconds, percent, plural, seconds_of

_STYLES = {"different": "bold", "no-difference": "bold", "cannot-tell": "bold magenta"}
_SAME = (("equal", ""), ("-", ""))  # nothing between the two sides, and nothing that is known of it
_GAPS = "gap percentiles are of the gaps that are left: fewer short ones raise them; arrivals count what is felt"


def compare(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.compare/1 body."""
    compared = typed(body, Comparison)
    verdict, *rest = verdict_of(compared)
    prose(page, printable(verdict), style=_STYLES.get(compared.judged.outcome, "") if compared.judged else "")
    page.last = compared.judged.outcome.replace("-", " ") if compared.judged else "", ""
    for text in rest:
        prose(page, printable(text), indent=2)
    page.line()
    for side, run in zip(SIDES, (compared.before, compared.after), strict=True):
        _side(page, side, run)
    tables(page, compared)
    notes(page, compared.warnings, "Also different, or limiting")


def tables(page: TextPage, compared: Comparison, names: Sequence[str] = SIDES) -> None:
    """The tables of a comparison, with other names of the two sides."""
    bounds = percent(compared.confidence * 100)
    of_cpus = compared.groups[1:] if compared.kind == "jitter" and not page.verbose else []
    for group in compared.groups[: len(compared.groups) - len(of_cpus)]:
        _group(page, group, bounds, bool(compared.judged), names)
    if of_cpus:
        prose(page, f"{plural(len(of_cpus), 'more table')}, one a CPU: -v", style="dim")
    page.line()
    if any((side.runs or 1) > 1 for side in (compared.before, compared.after)):
        middle = "the middle one of the runs; -v shows the least and the greatest"
        prose(page, f"{' and '.join(names)}: {middle}", style="dim")
    same = any(change_of(row) in _SAME for group in compared.groups for row in group.rows if row.before or row.after)
    more = "" if page.verbose or not same else "; those that are equal on both sides: -v"
    prose(page, f"each row has its own {bounds} bounds: of twenty rows, one lies outside by chance{more}", style="dim")
    if compared.kind == "jitter":
        prose(page, _GAPS, style="dim")


def _side(page: TextPage, side: str, run: ComparedSide) -> None:
    host = run.host
    what = [run.file, host.hostname, f"Linux {host.kernel}" if host.kernel else "", run.at]
    if (run.runs or 1) > 1:
        what.append(f"{run.runs} runs, the first of them")
    if run.cpus:
        length = f"{seconds_of(run.duration_s or 0)}, gaps over {nanoseconds(run.threshold_ns or 0)}"
        what.append(f"{listed_cpus(run.cpus)} for {length}")
    prose(page, " · ".join(printable(part) for part in what if part), label=f"{side}: ".ljust(8))


def _group(page: TextPage, group: RowGroup, percent: str, judged: bool, names: Sequence[str]) -> None:
    shown = [row for row in group.rows if row.before or row.after]
    shown = shown if page.verbose else [row for row in shown if change_of(row) not in _SAME] or shown[:1]
    cells = [(label_of(row), value_of(row, row.before), value_of(row, row.after), *change_of(row)) for row in shown]
    header = ("", *names, f"{names[1]} is", f"{percent} bounds")
    widths = [max(len(row[at]) for row in [header, *cells]) for at in range(len(header))]
    heading(page, group.name)
    # What finds no room beside the figures stands below: the bounds first, then what became of them, too.
    beside = next((at for at in (5, 4) if sum(widths[:at]) + 2 * at <= page.width), 3)
    _row(page, header[:beside], widths, "dim")
    for row, texts in zip(shown, cells, strict=True):
        _row(page, texts[:beside], widths, "")
        for what, text in zip(header[beside:], texts[beside:], strict=True):
            if text:
                prose(page, f"{what}{':' if what == header[-1] else ''} {text}", indent=4, style="dim")
        if page.verbose:
            sides = (("before", row.before), ("after", row.after))
            said = [f"{name} {bounds}" for name, side in sides if (bounds := bounds_of(row, side))]
            prose(page, "; ".join([*said, row.reason] if row.reason else said), indent=4, style="dim")
    for row in shown:
        if judged and row.measure == "max_ns" and row.reason and row.ratio and not page.verbose:
            prose(page, row.reason, indent=2, label="longest: ", style="dim")


def _row(page: TextPage, cells: Sequence[str], widths: Sequence[int], style: str) -> None:
    parts: list[Part] = ["  ", (cells[0].ljust(widths[0]), style)]
    for text, width in zip(cells[1:3], widths[1:3], strict=True):
        parts += ["  ", (text.rjust(width), style)]
    for text, width in zip(cells[3:], widths[3:], strict=False):
        parts += ["  ", (text.ljust(width), style)]
    line(page, *parts)
