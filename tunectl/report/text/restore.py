"""`tunectl restore`: what stands as before again, and what was left alone, with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tunectl.model import Scalar, parse_target
from tunectl.report.escape import printable, shown
from tunectl.report.summary import compact
from tunectl.report.text.findings import plural
from tunectl.report.text.layout import columns, heading, prose
from tunectl.report.text.notes import not_run, notes, reboot
from tunectl.report.text.sheet import Sheet

# result: what it means, and whether the values belong on the page
_RESULTS = {
    "failed": ("Could not be restored", True),
    "changed-since": ("Left alone: someone changed these after tunectl did", True),
    "gone": ("Left alone: no longer there", True),
    "already": ("Stood as before already", False),
    "would-restore": ("Would be restored", False),
    "restored": ("Restored", False),
}


def render(body: Mapping[str, Any], sheet: Sheet) -> None:
    """Prints a tunectl.restore/1 body."""
    results: Sequence[Mapping[str, Any]] = body["results"]
    found = Counter(result["result"] for result in results)
    words = [f"{found[word]} {word.replace('-', ' ')}" for word in reversed(_RESULTS) if found[word]]
    said = f"{plural(len(results), 'file')}: {', '.join(words)}." if results else "Nothing to restore."
    prose(sheet, said, style="bold" if set(found) <= {"restored", "would-restore", "already"} else "bold yellow")
    for result, (title, in_full) in _RESULTS.items():
        members = [each for each in results if each["result"] == result]
        if members:
            heading(sheet, f"{title} ({len(members)})")
            (_in_full if in_full else _in_brief)(sheet, members)
    not_run(sheet, body)
    reboot(sheet, body)
    notes(sheet, body.get("notes", ()))


def _in_full(sheet: Sheet, members: Sequence[Mapping[str, Any]]) -> None:
    for each in members:
        prose(sheet, printable(each["path"]), indent=2)
        prose(sheet, _values(each.get("observed"), each.get("before")), indent=6)
        if each.get("message"):
            prose(sheet, each["message"], indent=6, style="yellow")


def _values(observed: Scalar, before: Scalar) -> str:
    now = "" if observed is None else f"holds {shown(observed)}; "
    return now + ("was not there before" if before is None else f"before it held {shown(before)}")


def _in_brief(sheet: Sheet, members: Sequence[Mapping[str, Any]]) -> None:
    """By knob: `irq.affinity [24,27,30-33]`; a file that belongs to no target by its path."""
    knobs: dict[str, list[str]] = {}
    for each in members:
        for target in each.get("targets") or [each["path"]]:
            knob, instance = parse_target(target)
            knobs.setdefault(knob, []).append(instance)
    cells = []
    for knob, instances in knobs.items():
        inner = compact(instance for instance in instances if instance)
        cells.append((printable(knob), f"[{inner}]" if inner else ""))
    columns(sheet, cells, indent=2)
