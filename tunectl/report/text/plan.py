"""`tunectl plan`: what `apply` would write, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tunectl.model import Outcome, Target, parse_target
from tunectl.report.escape import printable, shown
from tunectl.report.summary import brief, generalised, name_of, spread
from tunectl.report.text.findings import findings, parsed, plural
from tunectl.report.text.layout import column_widths, columns, prose
from tunectl.report.text.notes import notes, reboot
from tunectl.report.text.sheet import Sheet

MAX_VALUES = 8  # lines of one knob in one block; then they are counted
_LIFETIMES = {"runtime": "this boot", "boot": "next boot"}
Changes = Sequence[Mapping[str, Any]]


def render(body: Mapping[str, Any], sheet: Sheet) -> None:
    """Prints a tunectl.plan/1 body."""
    changes: Changes = body["changes"]
    found = parsed(body.get("findings", ()))
    if changes:
        prose(sheet, f"{plan_of(changes)}. Nothing was written.", style="bold")
    else:
        prose(sheet, "Nothing to change.", style="bold green")
    if found:
        prose(sheet, f"As it stands: {brief(found)}.")
    change_blocks(sheet, changes)
    reboot(sheet, body)
    # A drifted target is in the changes above already, unless nothing can be done about it.
    planned = {_target(change) for change in changes}
    rest = [
        finding
        for finding in found
        if finding.outcome is not Outcome.COMPLIANT and (finding.knob, finding.instance) not in planned
    ]
    findings(sheet, rest)
    notes(sheet, body.get("notes", ()))


def plan_of(changes: Changes) -> str:
    """`14 changes: 9 for this boot, 5 for the next`."""
    found = Counter(change["lifetime"] for change in changes)
    parts = [f"{found[word]} for {text}" for word, text in (("runtime", "this boot"), ("boot", "the next boot"))]
    return f"{plural(len(changes), 'change')}: " + ", ".join(part for part in parts if not part.startswith("0 "))


def change_blocks(sheet: Sheet, changes: Changes, last: Callable[[Mapping[str, Any]], str] | None = None) -> None:
    """A table of targets, `observed → desired` and lifetime (or `last`), with the reason under each knob's rows.

    A change that carries a `message` (of the kernel, when it was applied) shows it under its rows too.
    """
    blocks: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for change in changes:
        instance = _target(change).instance
        said = generalised(change["reason"], instance), generalised(change.get("message") or "", instance)
        blocks.setdefault((change["knob"], *said), []).append(change)
    tables = [_rows(members, last or _lifetime) for members in blocks.values()]
    widths = column_widths([row for table in tables for row in table], sheet.width)
    for (_, reason, message), members, table in zip(blocks, blocks.values(), tables, strict=True):
        sheet.line()
        columns(sheet, table[:MAX_VALUES], widths=widths, styles=("bold", "", "cyan"))
        if len(table) > MAX_VALUES:
            prose(sheet, f"and {len(table) - MAX_VALUES} more values; --format json lists each", indent=4)
        alone = members[0] if len(members) == 1 else {}
        prose(sheet, alone.get("reason", reason), indent=4, style="dim")
        if message:
            prose(sheet, alone.get("message", message), indent=4, style="yellow")


def _target(change: Mapping[str, Any]) -> Target:
    return parse_target(change["target"], change["knob"])


def _lifetime(change: Mapping[str, Any]) -> str:
    return _LIFETIMES.get(change["lifetime"], printable(change["lifetime"]))


def _rows(members: Changes, last: Callable[[Mapping[str, Any]], str]) -> list[tuple[str, str, str]]:
    """One row a value; the most frequent first where they are too many to show."""
    knob = members[0]["knob"]
    rows: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for change in members:
        value = f"{shown(change['observed'])} → {shown(change['desired'])}"
        rows.setdefault((value, last(change)), []).append(change)
    words = {word for _, word in rows}
    if len(rows) > MAX_VALUES and len(words) == 1:
        within = spread([each["observed"] for each in members], [each["desired"] for each in members])
        if within:
            rows = {(f"{within} → {shown(members[0]['desired'])}", words.pop()): list(members)}
    listed = list(rows.items())
    if len(listed) > MAX_VALUES:
        listed.sort(key=lambda row: -len(row[1]))
    return [(name_of(knob, [_target(each).instance for each in same]), *row) for row, same in listed]
