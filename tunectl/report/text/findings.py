"""Findings: in full where a person must act, the others in a line or two. The pages of `verify` and `check`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tunectl.model import Outcome
from tunectl.report.actions import actions_of
from tunectl.report.escape import printable, shown
from tunectl.report.findings import WORDS, Group, compact, groups, name_of, summary
from tunectl.report.text import screen
from tunectl.report.text.page import TextPage, columns, line, prose, wrap
from tunectl.report.urgency import (
    COSTS,
    Urgent,
    findings_in,
    kept,
    needs_attention,
    outcome_of,
    urgent_of,
)
from tunectl.wording import plural, wanted

_STYLES = {
    Outcome.DRIFTED: "red",
    Outcome.REFUSED: "red",
    Outcome.PENDING_REBOOT: "yellow",
    Outcome.UNREADABLE: "magenta",
}
_QUIET = {
    Outcome.UNSUPPORTED: WORDS[Outcome.UNSUPPORTED],
    Outcome.REFUSED: "refused by the kernel, harmless",
    Outcome.WAIVED: WORDS[Outcome.WAIVED],
}
_POINTS = {"asked": "asked", "next_boot": "next boot", "this_boot": "this boot", "kernel": "kernel"}


def findings(page: TextPage, found: Sequence[Group], *, indent: int = 0) -> None:
    """All findings: first those that need attention, in full, then one compact block for each other outcome."""
    for one in urgent_of(found):
        if one.severity is not None:
            page.line()
        _costs(page, one, indent)
        for group in one.groups:
            _attention(page, group, indent)
    for group in (group for group in found if group.outcome is Outcome.UNREADABLE):
        _attention(page, group, indent)
    _harmless(page, found, indent=indent)


def _harmless(page: TextPage, found: Iterable[Group], *, indent: int = 0) -> None:
    """One compact block for each outcome that needs no attention."""
    quiet = [group for group in found if not needs_attention(group)]
    for outcome, title in _QUIET.items():
        if listed := [group for group in quiet if group.outcome is outcome]:
            page.line()
            prose(page, f"{title}:", indent=indent)
            cells = [(name_of(group.knob, group.instances), group.reason) for group in listed]
            columns(page, cells, indent=indent + 2, styles=("", "dim"))


def _costs(page: TextPage, one: Urgent, indent: int) -> None:
    """What targets of this severity cost."""
    if one.severity is not None:
        word, said = one.severity.value, f"{COSTS[one.severity]}: {plural(one.targets, 'target')}"
        for wrapped in wrap(said, page.width - indent - len(word) - 2):
            line(page, " " * indent, (word, "bold"), "  ", (wrapped, "dim"))
            word = " " * len(word)


def compliant(page: TextPage, found: Iterable[Group]) -> None:
    """How many targets are as they should be, in one line."""
    good = [group for group in found if group.outcome is Outcome.COMPLIANT]
    if good:
        page.line()
        targets, knobs = sum(len(group.instances) for group in good), len({group.knob for group in good})
        line(page, ("compliant", "green"), f": {plural(targets, 'target')} of {plural(knobs, 'knob')}")
    if good and page.verbose > 1:
        cells = [(name_of(group.knob, row.instances), shown(row.observed)) for group in good for row in group.rows]
        columns(page, cells, indent=2, styles=("", "dim"))


def _attention(page: TextPage, group: Group, indent: int) -> None:
    page.line()
    total = len(group.instances)
    line(
        page,
        " " * indent,
        (printable(group.knob), "bold"),
        "  ",
        (outcome_of(group), _STYLES[group.outcome]),
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
    rows, left_out = kept(group)
    cells = [
        (
            f"[{compact(row.instances)}]" if any(row.instances) else "",
            *(() if group.outcome is Outcome.UNREADABLE else (f"observed {shown(row.observed)}",)),
            f"desired {wanted(shown(row.desired), group.match)}",
        )
        for row in rows
    ]
    skip = 0 if any(cell[0] for cell in cells) else 1
    columns(page, [cell[skip:] for cell in cells], indent=indent)
    if left_out:
        hidden = len(group.instances) - sum(len(row.instances) for row in rows)
        text = f"and {left_out} more values on {plural(hidden, 'target')}; --format json lists each"
        prose(page, text, indent=indent)


def judged(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.verify/1 or tunectl.check/1 body: the screen; with -v each finding, with -vv those in force."""
    found = findings_in(body)
    grouped, actions = groups(found), actions_of(found, start=page.start)
    said = str(body.get("headline") or summary(found))
    screen.begin(page, str(body["verdict"]), said, last=said)

    def draw(page: TextPage) -> None:
        screen.wrong(page, grouped, actions)
        screen.todo_list(page, actions, found)
        screen.ending(page, body.get("notes", ()), found)

    screen.fit(page, draw)
    if page.verbose:
        findings(page, grouped)
        compliant(page, grouped)
