"""`tunectl knobs`: the catalogue, or one knob in full."""

from collections.abc import Mapping, Sequence
from typing import Any

from tunectl.report.escape import printable, shown
from tunectl.report.text.page import TextPage, columns, heading, lasting, prose
from tunectl.report.text.screen import by_family
from tunectl.wording import plural

MAX_IN_FULL = 10  # knobs, without -v
_LABEL = 10  # cells of the label column of one knob's page


def knobs(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.knobs/1 body: one knob in full, several as a table."""
    knobs: Sequence[Mapping[str, Any]] = body["knobs"]
    if len(knobs) == 1:
        _one(page, knobs[0])
        return
    facilities: dict[str, list[Mapping[str, Any]]] = {}
    for knob in knobs:
        facilities.setdefault(knob["facility"], []).append(knob)
    tells = "`tunectl knobs WORD` tells more of some, all of one"
    of = f" of {len(facilities)} facilities" if len(facilities) > 1 else ""
    prose(page, f"{plural(len(knobs), 'knob')}{of}; {tells}.", style="bold")
    in_full = len(knobs) <= MAX_IN_FULL or page.verbose
    if len(facilities) > 1 and not in_full:
        page.line()
        by_family(page, [(printable(knob["name"]), 1, "") for knob in knobs], lines=2)
        return
    for facility, members in facilities.items():
        heading(page, facility)
        for knob in members:
            profiles = knob.get("profiles") or {}
            values = ", ".join(f"{name}: {shown(asked.get('value'))}" for name, asked in profiles.items())
            row = (printable(knob["name"]), lasting(knob["lifetime"]), values or "in no shipped profile")
            columns(page, [row], indent=2, widths=(26, 13, max(page.width - 2 - 26 - 13 - 4, 8)), styles=("cyan",))
            if in_full:
                prose(page, knob["why"], indent=4, style="dim")


def _one(page: TextPage, knob: Mapping[str, Any]) -> None:
    prose(page, printable(knob["name"]), style="bold")
    prose(page, knob["why"])
    page.line()
    begins = {"runtime": "at once; systemd.apply_at_boot writes it again", "boot": "from the next boot on"}
    fields = {
        "facility": knob["facility"],
        "in force": begins.get(knob["lifetime"], knob["lifetime"]),
        "satisfied": f"observed {knob['match']} desired",
        "severity": knob.get("severity", ""),
        "risk": knob["risk"],
        "source": knob["source"],
    }
    for label, text in fields.items():
        prose(page, text, label=label, hang=_LABEL)
    for number, path in enumerate(knob.get("paths", ())):
        prose(page, path, label="files" if number == 0 else "", hang=_LABEL)
    for name, asked in (knob.get("profiles") or {}).items():
        heading(page, f"{name}: {shown(asked.get('value'))}")
        prose(page, asked.get("reason", ""), indent=2)
