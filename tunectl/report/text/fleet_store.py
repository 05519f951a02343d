"""The pages of `fleet keep`, `fleet diff`, and of what a query of the store answers."""

from collections.abc import Mapping
from typing import Any

from tunectl.command import as_data
from tunectl.report.escape import printable
from tunectl.report.hosts import folded, word
from tunectl.report.text.page import TextPage, columns, heading, line, prose
from tunectl.wording import plural

_FEW = 20


def kept(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.fleet.kept/1 body."""
    line(page, (printable(body["store"]), "bold"))
    for one in body["sessions"]:
        without = f", {plural(one['without'], 'host')} without one" if one["without"] else ""
        known = f", {one['known']:,} kept already" if one["known"] else ""
        prose(page, f"{one['name']}: {plural(one['documents'], 'document')}{known}{without}", indent=2)
        for named in one["named"] if page.verbose else one["named"][:_FEW]:
            prose(page, f"{as_data(named['host'])}: {named['problem']}", indent=4, label="- ")
        if len(one["named"]) > _FEW and not page.verbose:
            prose(page, f"and {len(one['named']) - _FEW:,} more: -v shows all", indent=4, style="dim")
    if not body["sessions"]:
        prose(page, "every session is kept already", indent=2)
    if body["removed"]:
        prose(page, f"no longer kept: {', '.join(body['removed'])}", indent=2)


def diff(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.fleet.diff/1 body."""
    line(page, (f"{body['before']} -> {body['after']}", "bold"))
    verdicts = [
        (" -> ".join(word(one[side]) if one[side] else "not asked" for side in ("before", "after")), one["hosts"])
        for one in body["verdicts"]
    ]
    facts = [(one["change"], one["hosts"]) for one in body["changes"]]
    for title, rows in (("Verdicts", verdicts), ("Hosts", facts)):
        if rows:
            heading(page, title)
        for what, hosts in rows:
            prose(page, f"{what}: {plural(len(hosts), 'host')}: {', '.join(folded(hosts))}", indent=2)
    if causes := body["causes"]:
        heading(page, "Causes", ", of hosts with a document in both")
    elif not (verdicts or facts):
        prose(page, "nothing changed", indent=2)
    for one in causes if page.verbose else causes[:_FEW]:
        _cause(page, one)
    if len(causes) > _FEW and not page.verbose:
        prose(page, f"and {len(causes) - _FEW:,} more: -v shows all", indent=2, style="dim")


def _cause(page: TextPage, one: Mapping[str, Any]) -> None:
    """A cause that came or went."""
    instances, cause = (f"[{one['instances']}]" * bool(one["instances"]), f" ({one['cause']})" * bool(one["cause"]))
    count = f"{one['hosts_before']:,} -> {one['hosts_after']:,} hosts"
    prose(page, f"{one['knob']}{instances} {one['outcome']}{cause}: {count}", indent=2)
    for what in ("came", "went"):
        if one[what]:
            prose(page, f"{what}: {', '.join(folded(one[what]))}", indent=6, style="dim")


def table(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.fleet.table/1 body."""
    figures = [at for at in range(len(body["columns"])) if all(type(row[at]) in (int, float) for row in body["rows"])]
    rows = [[_shown(cell) for cell in row] for row in body["rows"]]
    columns(page, rows, right=figures if rows else (), header=body["columns"])
    more = ", and there are more: --rows 0 shows all" if body["more"] else ""
    prose(page, f"{plural(len(rows), 'row')}{more}", style="dim")


def _shown(cell: object) -> str:
    return "" if cell is None else f"{cell:,.12g}" if type(cell) in (int, float) else str(cell)
