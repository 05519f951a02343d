"""`tunectl compare`: the table of before and after, and which differences are more than chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tunectl.report.escape import printable
from tunectl.report.figures import CHANGES, bounds_of, label_of, nanoseconds, ratio_of, value_of
from tunectl.report.text.page import Part, TextPage, heading, line, notes, prose

_STYLES = {"lower": "green", "higher": "red", "not-significant": "dim", "not-comparable": "dim"}
_SHORT = {"not significant": "n.s."}
_GAPS = "gap percentiles are of the gaps that are left: fewer short ones raise them; arrivals count what is felt"


def compare(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.compare/1 body."""
    for side in ("before", "after"):
        _side(page, side, body[side])
    percent = f"{body['confidence'] * 100:g}%"
    for group in body["groups"]:
        _group(page, group, percent)
    page.line()
    rows = [row for group in body["groups"] for row in group["rows"]]
    _legend(page, rows, percent)
    notes(page, body["warnings"], "Also different, or limiting")


def _side(page: TextPage, side: str, run: Mapping[str, Any]) -> None:
    host = run["host"]
    what = [run["file"], host["hostname"], f"Linux {host['kernel']}" if host["kernel"] else "", run["at"]]
    if "cpus" in run:
        what.append(f"CPUs {run['cpus']} for {run['duration_s']:.3g} s, gaps over {nanoseconds(run['threshold_ns'])}")
    prose(page, " · ".join(printable(part) for part in what if part), label=f"{side}: ".ljust(8))


def _group(page: TextPage, group: Mapping[str, Any], percent: str) -> None:
    rows = [_cells(row) for row in group["rows"] if row["before"] or row["after"]]
    header = ("", "before", "after", "ratio", f"{percent} bounds", "")
    widths = [max(len(cells[at]) for cells in [header, *rows]) for at in range(len(header))]
    if 2 + sum(widths) + 2 * (len(widths) - 1) > page.width:
        rows = [(*cells[:-1], _SHORT.get(cells[-1], cells[-1])) for cells in rows]
    heading(page, group["name"])
    _row(page, header, widths, "dim", "dim")
    for row, cells in zip([row for row in group["rows"] if row["before"] or row["after"]], rows, strict=True):
        _row(page, cells, widths, "", _STYLES.get(row["change"], ""))
        if page.verbose:
            said = [f"{side} {bounds}" for side in ("before", "after") if (bounds := bounds_of(row, side))]
            prose(page, "; ".join([*said, row["reason"]] if row["reason"] else said), indent=4, style="dim")
    for row in group["rows"]:
        if row["measure"] == "max_ns" and row["change"] != "not-comparable" and row["ratio"] and not page.verbose:
            prose(page, row["reason"], indent=2, label="longest: ", style="dim")


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    ratio, bounds = ratio_of(row)
    change = CHANGES.get(row["change"], row["change"])
    return label_of(row), value_of(row, "before"), value_of(row, "after"), ratio, bounds, change


def _row(page: TextPage, cells: Sequence[str], widths: Sequence[int], style: str, last: str) -> None:
    parts: list[Part] = ["  ", (cells[0].ljust(widths[0]), style)]
    for text, width in zip(cells[1:-1], widths[1:-1], strict=True):
        parts += ["  ", (text.rjust(width), style)]
    line(page, *parts, "  ", (cells[-1], last))


def _legend(page: TextPage, rows: Sequence[Mapping[str, Any]], percent: str) -> None:
    judged = [row for row in rows if row["ratio"] and row["ratio"]["low"] is not None]
    text = f"not significant (n.s.): the {percent} bounds of the ratio include 1, or a run is too short to bound it"
    prose(page, text, style="dim")
    if any(row["measure"] == "gap_ns" for row in rows):
        prose(page, _GAPS, style="dim")
    if len(judged) > 1:
        chance = len(judged) * (1 - float(percent[:-1]) / 100)
        text = f"{len(judged)} ratios are judged: about {chance:.2g} would look different by chance alone"
        prose(page, text, style="dim")
