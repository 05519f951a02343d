"""Findings: in full where a person must act, the others in a line or two. The pages of `verify` and `check`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from tunectl.model import Finding, Outcome
from tunectl.report.escape import printable, shown
from tunectl.report.findings import Group, Row, brief, compact, finding_of, groups, name_of, spread
from tunectl.report.text.page import TextPage, banner, columns, line, notes, prose

_STYLES = {
    Outcome.DRIFTED: "red",
    Outcome.REFUSED: "red",
    Outcome.PENDING_REBOOT: "yellow",
    Outcome.UNREADABLE: "magenta",
}
MAX_ROWS = 8  # different values shown for one group: the most frequent ones
_POINTS = {"asked": "asked", "next_boot": "next boot", "this_boot": "this boot", "kernel": "kernel"}


def parsed(bodies: Iterable[Any]) -> tuple[Finding, ...]:
    """A body's findings, typed. A body that was just made holds them typed already."""
    return tuple(body if isinstance(body, Finding) else finding_of(body) for body in bodies)


def findings(
    page: TextPage, found: Sequence[Finding], *, indent: int = 0, shown_above: Collection[Outcome] = ()
) -> None:
    """All findings: first those that need attention, then one compact block for each other outcome.

    `shown_above` are the outcomes that the page has already shown one by one.
    """
    gathered = groups(finding for finding in found if finding.outcome is not Outcome.COMPLIANT)
    for group in gathered:
        if _needs_attention(group) and group.outcome not in shown_above:
            _attention(page, group, indent)
    quiet = [group for group in gathered if not _needs_attention(group)]
    _listed(page, "unsupported on this host", [g for g in quiet if g.outcome is Outcome.UNSUPPORTED], indent)
    _listed(page, "refused by the kernel, harmless", [g for g in quiet if g.outcome is Outcome.REFUSED], indent)
    _listed(page, "waived", [g for g in quiet if g.outcome is Outcome.WAIVED], indent)


def compliant(page: TextPage, found: Sequence[Finding]) -> None:
    """How many targets are as they should be, in one line."""
    good = [finding.knob for finding in found if finding.outcome is Outcome.COMPLIANT]
    if good:
        page.line()
        line(page, ("compliant", "green"), f": {plural(len(good), 'target')} of {plural(len(set(good)), 'knob')}")
    if good and page.verbose:
        rows = groups(finding for finding in found if finding.outcome is Outcome.COMPLIANT)
        cells = [(name_of(group.knob, row.instances), shown(row.observed)) for group in rows for row in group.rows]
        columns(page, cells, indent=2, styles=("", "dim"))


def _needs_attention(group: Group) -> bool:
    return group.harmful if group.outcome is Outcome.REFUSED else group.outcome in _STYLES


def plural(count: int, word: str) -> str:
    """`1 target`, `4,096 targets`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _attention(page: TextPage, group: Group, indent: int) -> None:
    word = group.outcome.value.replace("-", " ") + (", harmful" if group.outcome is Outcome.REFUSED else "")
    page.line()
    total = len(group.instances)
    line(
        page,
        " " * indent,
        (printable(group.knob), "bold"),
        "  ",
        (word, _STYLES[group.outcome]),
        f", {plural(total, 'target')}" if total > 1 else "",
    )
    _rows(page, group, indent + 2)
    for point, label in _POINTS.items():
        if group.points is not None and point in group.points:
            prose(page, shown(group.points[point]), indent=indent + 2, label=label, hang=11)
    for label, text in (("why", group.reason), ("fix", group.fix)):
        if text:
            prose(page, text, indent=indent + 2, label=label, hang=5)


def _rows(page: TextPage, group: Group, indent: int) -> None:
    """One line for each value: which targets show it, and what they should show."""
    rows = group.rows
    within = spread([row.observed for row in rows], [row.desired for row in rows]) if len(rows) > MAX_ROWS else None
    if within:
        rows = (Row(group.instances, within, rows[0].desired),)
    kept = rows if len(rows) <= MAX_ROWS else sorted(rows, key=lambda row: -len(row.instances))[:MAX_ROWS]
    cells = [
        (
            f"[{compact(row.instances)}]" if any(row.instances) else "",
            *_observed(group, row),
            f"desired {shown(row.desired)}",
        )
        for row in kept
    ]
    skip = 0 if any(cell[0] for cell in cells) else 1
    columns(page, [cell[skip:] for cell in cells], indent=indent)
    if len(kept) < len(rows):
        hidden = sum(len(row.instances) for row in rows) - sum(len(row.instances) for row in kept)
        text = f"and {len(rows) - len(kept)} more values on {plural(hidden, 'target')}; --format json lists each"
        prose(page, text, indent=indent)


def _observed(group: Group, row: Row) -> tuple[str, ...]:
    return () if group.outcome is Outcome.UNREADABLE else (f"observed {shown(row.observed)}",)


def _listed(page: TextPage, title: str, quiet: Sequence[Group], indent: int) -> None:
    if not quiet:
        return
    page.line()
    prose(page, f"{title}:", indent=indent)
    cells = [(name_of(group.knob, group.instances), group.reason) for group in quiet]
    columns(page, cells, indent=indent + 2, styles=("", "dim"))


def judged(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.verify/1 or tunectl.check/1 body: the verdict and the counts, then what needs doing."""
    found = parsed(body["findings"])
    banner(page, str(body["verdict"]), brief(found))
    findings(page, found)
    compliant(page, found)
    notes(page, body.get("notes", ()))
