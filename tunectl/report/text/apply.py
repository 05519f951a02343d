"""`tunectl apply`: what was written, what was not, and how the host stands now."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tunectl.report.escape import printable
from tunectl.report.text.findings import plural
from tunectl.report.text.layout import banner, prose
from tunectl.report.text.notes import not_run, notes, reboot
from tunectl.report.text.plan import change_blocks
from tunectl.report.text.sheet import Sheet

_LIFETIMES = {"boot": ", next boot"}


def render(body: Mapping[str, Any], sheet: Sheet) -> None:
    """Prints a tunectl.apply/1 body."""
    changes = body["changes"]
    found = Counter(change["result"] for change in changes)
    said = ", ".join(f"{found[word]} {word}" for word in ("changed", "refused", "failed") if found[word])
    done = f"{plural(len(changes), 'change')}: {said}." if changes else "Nothing to change; nothing was written."
    if body.get("verdict"):
        banner(sheet, str(body["verdict"]), done)
    else:
        prose(sheet, done, style="bold")
    change_blocks(sheet, changes, _result)
    not_run(sheet, body)
    reboot(sheet, body)
    notes(sheet, body.get("notes", ()))
    if changes and body.get("journal"):
        sheet.line()
        prose(sheet, f"Journal: {body['journal']}; `tunectl restore` goes back.")


def _result(change: Mapping[str, Any]) -> str:
    number = change.get("errno")
    code = f" ({errno.errorcode.get(number, number)})" if number else ""
    return printable(f"{change['result']}{code}") + _LIFETIMES.get(change["lifetime"], "")
