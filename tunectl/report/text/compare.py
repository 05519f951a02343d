"""`tunectl compare`: the verdict, then the tables of before and after."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tunectl.report.escape import printable
from tunectl.report.figures import SIDES, bounds_of, change_of, label_of, listed_cpus, value_of, verdict_of
from tunectl.report.text import screen
from tunectl.report.text.page import Part, TextPage, heading, line, prose
from tunectl.shapes import ComparedSide, Comparison, Row, RowGroup, typed
from tunectl.wording import nanoseconds, percent, plural, seconds_of

_STYLES = {"different": "bold", "no-difference": "bold", "cannot-tell": "bold magenta"}
_SAME = ("equal", "-")  # nothing between the two sides, or nothing that is known of it
_EQUAL = "equal on both sides in every row"
_LEAST = 1e-9  # a ratio's logarithm
_ROOM = 16  # lines of the tables of cases without -v
_GAPS = "gap percentiles are of the gaps that are left: fewer short ones raise them; arrivals count what is felt"


def compare(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.compare/1 body."""
    compared = typed(body, Comparison)
    verdict, *rest = verdict_of(compared)
    prose(page, printable(verdict), style=_STYLES.get(compared.judged.outcome, "") if compared.judged else "")
    page.last = compared.judged.outcome.replace("-", " ") if compared.judged else "no verdict", ""
    for text in rest:
        prose(page, printable(text), indent=2)
    page.line()
    for side, run in zip(SIDES, (compared.before, compared.after), strict=True):
        _side(page, side, run)
    tables(page, compared)
    screen.ending(page, compared.warnings)


def tables(page: TextPage, compared: Comparison, names: Sequence[str] = SIDES) -> None:
    """The tables of a comparison, with other names of the two sides."""
    bounds = percent(compared.confidence * 100)
    if compared.kind != "jitter" and not page.verbose:
        _cases(page, compared.groups, bounds, names)
    else:
        left = len(compared.groups[1:]) if not page.verbose else 0
        for group in compared.groups[: len(compared.groups) - left]:
            _group(page, group, bounds, bool(compared.judged), names)
        if left:
            prose(page, f"{plural(left, 'more table')}, one a CPU: -v", style="dim")
    page.line()
    if any((side.runs or 1) > 1 for side in (compared.before, compared.after)):
        middle = "the middle one of the runs; -v shows the least and the greatest"
        prose(page, f"{' and '.join(names)}: {middle}", style="dim")
    prose(page, f"each row has its own {bounds} bounds: of twenty rows, one lies outside by chance", style="dim")
    if compared.kind == "jitter":
        prose(page, _GAPS, style="dim")


def _cases(page: TextPage, groups: Sequence[RowGroup], percent: str, names: Sequence[str]) -> None:
    """The cases that changed most, as far as there is room; how many others changed less, and how many not at all."""
    changed = [group for group in groups if any(change_of(row)[0] not in _SAME for row in _known(group))]
    changed.sort(key=_moved, reverse=True)
    drawn, end = 0, len(page.lines) + _ROOM
    for group in changed:
        table = TextPage(page.width)
        _group(table, group, percent, False, names)
        if drawn and len(page.lines) + len(table.lines) > end:
            break
        page.lines += table.lines
        drawn += 1
    counted = ((len(changed) - drawn, "more case", "changed less"), (len(groups) - len(changed), "case", _EQUAL))
    if left := ", ".join(f"{plural(count, what)} {said}" for count, what, said in counted if count):
        page.line()
        prose(page, f"{left}: -v", style="dim" if drawn else "")


def _known(group: RowGroup) -> list[Row]:
    return [row for row in group.rows if row.before or row.after]


def _moved(group: RowGroup) -> float:
    """How far a figure of it moved for sure, as a logarithm: by the bound that is nearer to equal."""
    ratios = [row.ratio for row in group.rows if row.ratio]
    nearest = [max(min(of.high or math.inf, max(1.0, of.low or 0.0)), _LEAST) for of in ratios]
    return max((abs(math.log(ratio)) for ratio in nearest), default=0.0)


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
    known = _known(group)
    shown = known if page.verbose else [row for row in known if change_of(row)[0] not in _SAME] or known[:1]
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
    if len(known) > len(shown):
        prose(page, f"{len(known) - len(shown)} more, equal on both sides: -v", indent=2, style="dim")
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
