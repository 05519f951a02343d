"""The pages of `plan`, `apply` and `restore`: what would be written, what was written, and what was restored."""

import errno
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tunectl.model import Finding, Outcome, Scalar, Target, parse_target
from tunectl.report.actions import actions_of
from tunectl.report.escape import printable, shown
from tunectl.report.findings import brief, generalised, groups, name_of, spread
from tunectl.report.text import screen
from tunectl.report.text.findings import findings
from tunectl.report.text.page import (
    TextPage,
    column_widths,
    columns,
    copied,
    heading,
    lasting,
    not_run,
    notes,
    prose,
    reboot,
)
from tunectl.report.urgency import findings_in
from tunectl.wording import few, plural

MAX_VALUES, FEW_VALUES = 8, 3  # lines of one knob in one block, with and without -v; further lines are only counted
MAX_PLANNED, MAX_DONE = 20, 8  # values that are a table without -v; more of them are told by family
MAX_LEFT = 3  # files that `restore` left alone, in full without -v
_PHASES = {
    "loader": "firmware, boot loader",
    "kernel": "kernel, until a watchdog is open",
    "panic": "kernel that panicked",
    "initramfs": "initramfs at its prompt",
    "userspace": "from then on",
}
_COVERS = {
    "watchdog": "{what}{after}",
    "bmc": "the BMC's timer, if the firmware leaves it running",
    "line": "with --try-boot{after} ({what})",
    "nothing": "nothing",
    "unknown": "not known",
}
Changes = Sequence[Mapping[str, Any]]


def plan(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.plan/1 body."""
    changes: Changes = body["changes"]
    found = findings_in(body)
    if changes:
        counted = Counter(change["lifetime"] for change in changes)
        boots = (("runtime", "this boot"), ("boot", "the next boot"))
        parts = [f"{counted[lifetime]} for {boot}" for lifetime, boot in boots if counted[lifetime]]
        why = "" if page.verbose else "; -v lists all, and why"
        said = f"{plural(len(changes), 'change')}: {', '.join(parts)}. Nothing was written{why}."
        prose(page, said, style="bold")
    else:
        prose(page, f"{_no_change(found)}.", style="bold")
    if found:
        prose(page, f"As it stands: {brief(found)}.")
    rows = _by_value(changes)
    rest = [finding for finding in _beside(changes, found) if finding.outcome is not Outcome.COMPLIANT]
    grouped, actions = groups(rest), actions_of(rest, start=page.start)

    def draw(page: TextPage) -> None:
        if len(rows) <= MAX_PLANNED or page.verbose:
            _blocks(page, changes, lambda change: lasting(change["lifetime"]))
        else:
            page.line()
            screen.by_family(page, rows, indent=0, lines=page.room.values)
        reboot(page, body)
        _hang(page, body.get("hang", ()))
        if page.verbose:
            findings(page, grouped)
        else:
            screen.wrong(page, grouped, ())
            screen.todo_list(page, actions, rest)
        screen.ending(page, body.get("notes", ()))

    screen.fit(page, draw)


def _hang(page: TextPage, covers: Iterable[Mapping[str, Any]]) -> None:
    """What ends a hang of the next boot, a line a phase."""
    rows = []
    for cover in covers:
        after = f" after {cover['seconds']} s" if cover.get("seconds") else ""
        by = _COVERS[cover["by"]].format(what=printable(cover.get("what") or ""), after=after)
        rows.append((_PHASES[cover["phase"]], by))
    if rows:
        heading(page, "What boots the host again where that boot hangs")
        columns(page, rows, styles=("", "cyan"))


def _beside(changes: Changes, found: Iterable[Finding]) -> list[Finding]:
    """The findings whose targets are not among these changes."""
    named = {_target(change) for change in changes}
    return [finding for finding in found if (finding.knob, finding.instance) not in named]


def _no_change(found: Iterable[Finding]) -> str:
    """What is said where there is no change: a host with settings that another has to mend is not one in order."""
    drifted = any(finding.outcome is Outcome.DRIFTED for finding in found)
    return "Nothing that apply can change" if drifted else "Nothing to change"


def _blocks(page: TextPage, changes: Changes, last: Callable[[Mapping[str, Any]], str]) -> None:
    """A table of targets, `observed → desired` and `last` of each; with -v the reason under each knob's rows.

    A change that carries a `message` (of the kernel, when it was applied) shows it under its rows too.
    """
    blocks: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for change in changes:
        instance = _target(change).instance
        said = generalised(change["reason"], instance), generalised(change.get("message") or "", instance)
        blocks.setdefault((change["knob"], *said), []).append(change)
    tables = [_rows(members, last) for members in blocks.values()]
    widths = column_widths([row for table in tables for row in table], page.width)
    for (_, reason, message), members, table in zip(blocks, blocks.values(), tables, strict=True):
        if page.verbose or table is tables[0]:
            page.line()
        most = MAX_VALUES if page.verbose else FEW_VALUES
        columns(page, table[:most], widths=widths, styles=("bold", "", "cyan"))
        if len(table) > most:
            prose(page, f"and {plural(len(table) - most, 'more value')}; --format json lists each", indent=4)
        alone = members[0] if len(members) == 1 else {}
        if page.verbose:
            prose(page, alone.get("reason", reason), indent=4, style="dim")
        if message:
            prose(page, alone.get("message", message), indent=4, style="yellow")


def _by_value(changes: Changes) -> list[tuple[str, int, str]]:
    """Each knob's targets that show the same and want the same: their name, how many, `observed → desired`."""
    alike: dict[tuple[str, str], list[str]] = {}
    for change in changes:
        value = f"{shown(change['observed'])} → {shown(change['desired'])}"
        alike.setdefault((change["knob"], value), []).append(_target(change).instance)
    return [(name_of(knob, same, 6), len(same), value) for (knob, value), same in alike.items()]


def _target(change: Mapping[str, Any]) -> Target:
    return parse_target(change["target"], change["knob"])


def _rows(members: Changes, last: Callable[[Mapping[str, Any]], str]) -> list[tuple[str, str, str]]:
    """One row for each value; the most frequent first where there are too many to show."""
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


def apply(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.apply/1 body."""
    changes = body["changes"]
    found = Counter(change["result"] for change in changes)
    said = ", ".join(f"{found[word]} {word}" for word in ("changed", "refused", "failed") if found[word])
    judged = findings_in(body)
    done = f"{plural(len(changes), 'change')}: {said}" if changes else f"{_no_change(judged)}; nothing was written"
    waits = body.get("unconfirmed") or {}
    if waits.get("kind") == "boot" and not changes:
        prose(page, "Nothing changes now: the next boot, and that one alone, tries the new line.", style="bold")
    elif body.get("verdict"):
        screen.begin(page, str(body["verdict"]), done, last=done)
    else:
        prose(page, f"{done}.", style="bold")
    if len(_by_value(changes)) <= MAX_DONE or page.verbose:
        _blocks(page, changes, _result_of)
    else:  # each was on the page of the question, or of `plan`
        families = Counter(change["knob"].partition(".")[0] for change in changes if change["result"] == "changed")
        named = ", ".join(f"{printable(family)} {count:,}" for family, count in families.items())
        page.line()
        prose(page, named, label="changed  ")
        _blocks(page, [change for change in changes if change["result"] != "changed"], _result_of)
    rest = [finding.target for finding in _beside(changes, judged) if finding.outcome is Outcome.DRIFTED]
    if rest:
        page.line()
        prose(page, f"Drifted, and not changed: {few(rest)}. `verify` says why, and what to do.")
    not_run(page, body)
    screen.ending(page, body.get("notes", ()))
    reboot(page, body)
    if changes and body.get("journal"):
        prose(page, f"Journal: {body['journal']}. To go back:")
        copied(page, "  ", (str(body["restore"]), "bold"))


def _result_of(change: Mapping[str, Any]) -> str:
    number = change.get("errno")
    code = f" ({errno.errorcode.get(number, number)})" if number else ""
    return printable(f"{change['result']}{code}") + (", next boot" if change["lifetime"] == "boot" else "")


# result: what it means, and whether the values belong on the page
_RESULTS = {
    "failed": ("Could not be restored", True),
    "changed-since": ("Left alone: changed after tunectl wrote them", True),
    "gone": ("Left alone: no longer there", True),
    "already": ("Already as before", False),
    "would-restore": ("Would be restored", False),
    "restored": ("Restored", False),
}


def restore(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.restore/1 body."""
    results: Sequence[Mapping[str, Any]] = body["results"]
    found = Counter(result["result"] for result in results)
    words = [f"{found[word]} {word.replace('-', ' ')}" for word in reversed(_RESULTS) if found[word]]
    said = f"{plural(len(results), 'file')}: {', '.join(words)}." if results else "Nothing to restore."
    standing: Sequence[str] = body.get("standing") or ()
    if standing:
        said = said if results else "Nothing was restored."
        things = plural(len(standing), "more thing" if results else "thing")
        said += f" {things} that tunectl wrote and the journal does not name: left."
    well = not standing and set(found) <= {"restored", "would-restore", "already"}
    prose(page, said, style="bold" if well else "bold yellow")
    if standing:
        heading(page, f"Still stands: the journal does not name it ({len(standing)})")
        for path in standing:
            prose(page, printable(path), indent=2)
    if tuned := body.get("may_be_tuned"):
        heading(page, f"May still be tuned: as the host file asks, and what it was before is not known ({len(tuned)})")
        _tuned(page, tuned)
    _became(page, results)
    not_run(page, body)
    reboot(page, body)
    notes(page, body.get("notes", ()))


def _became(page: TextPage, results: Sequence[Mapping[str, Any]]) -> None:
    for result, (title, has_values) in _RESULTS.items():
        members = [each for each in results if each["result"] == result]
        if members:
            heading(page, f"{title} ({len(members)})")
        if not has_values:
            _by_knob(page, members)
            continue
        kept = members if page.verbose or len(members) <= MAX_LEFT + 1 else members[:MAX_LEFT]
        for each in kept:
            observed, before = _held(each.get("observed")), _held(each.get("before"))
            now = f"holds {observed}; " if observed else ""
            prose(page, printable(each["path"]), indent=2)
            prose(page, now + (f"before it held {before}" if before else "was not there before"), indent=6)
            if each.get("message"):
                prose(page, each["message"], indent=6, style="yellow")
        if len(members) > len(kept):
            prose(page, f"and {len(members) - len(kept):,} more, each with -v:", indent=2)
            _by_knob(page, members[len(kept) :])


def _held(value: Scalar) -> str:
    """What a file holds, where that is one line, without its end; "" for none that is there."""
    lines = str(value or "").count("\n")
    one = value.removesuffix("\n") if isinstance(value, str) else value
    return "" if value is None else plural(lines, "line") if lines > 1 else shown(one)


def _by_knob(page: TextPage, members: Sequence[Mapping[str, Any]]) -> None:
    """By family; a file without a target by its path."""
    knobs: dict[str, list[str]] = {}
    for each in members:
        for target in each.get("targets") or [each["path"]]:
            knob, instance = parse_target(target)
            knobs.setdefault(knob, []).append(instance)
    screen.by_family(page, [(name_of(knob, instances, 6), len(instances), "") for knob, instances in knobs.items()])


_TRIALS = {
    "armed": ("waits for its confirmation", "bold yellow"),
    "confirmed": ("is confirmed, and stays", "bold green"),
    "returned": ("was taken back", "bold yellow"),
}


def trial(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.trial/1 body."""
    what, style = _TRIALS.get(body["status"], (printable(body["status"]), "bold"))
    why = f": {printable(body['why'])}" if body.get("why") else ""
    prose(page, f"The change {printable(body['id'])} {what}{why}.", style=style)
    _became(page, body["results"])
    not_run(page, body)
    notes(page, body.get("notes", ()))


def _tuned(page: TextPage, tuned: Sequence[Mapping[str, Any]]) -> None:
    """What each shows, and what every kernel starts with; targets of one knob that agree in both are one line."""
    rows: dict[tuple[str, Scalar, Scalar, str], list[str]] = {}
    for one in tuned:
        knob, instance = parse_target(one["target"])
        key = (knob, one["observed"], one["boots_with"], ", ".join(one.get("given_at", ())))
        rows.setdefault(key, []).append(instance)
    cells = []
    for (knob, observed, boots_with, given_at), instances in rows.items():
        starts = printable(given_at) if boots_with is None else f"the kernel starts with {shown(boots_with)}"
        cells.append((name_of(knob, instances), f"is {shown(observed)}", starts))
    columns(page, cells, indent=2)
