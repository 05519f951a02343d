"""`tunectl knobs`: the catalogue, or one knob in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tunectl.report.escape import printable, shown
from tunectl.report.text.findings import plural
from tunectl.report.text.layout import columns, heading, prose
from tunectl.report.text.sheet import Sheet

_LIFETIMES = {"runtime": "this boot", "boot": "next boot"}
_LABEL = 10  # cells of the label column of one knob's page


def render(body: Mapping[str, Any], sheet: Sheet) -> None:
    """Prints a tunectl.knobs/1 body: one knob in full, several as a table."""
    knobs: Sequence[Mapping[str, Any]] = body["knobs"]
    if len(knobs) == 1:
        _one(sheet, knobs[0])
    else:
        _catalogue(sheet, knobs)


def _catalogue(sheet: Sheet, knobs: Sequence[Mapping[str, Any]]) -> None:
    facilities: dict[str, list[Mapping[str, Any]]] = {}
    for knob in knobs:
        facilities.setdefault(knob["facility"], []).append(knob)
    said = f"{plural(len(knobs), 'knob')} of {len(facilities)} facilities; `tunectl knobs NAME` tells all of one."
    prose(sheet, said, style="bold")
    for facility, members in facilities.items():
        heading(sheet, facility)
        for knob in members:
            profiles = knob.get("profiles") or {}
            values = ", ".join(f"{name}: {shown(asked.get('value'))}" for name, asked in profiles.items())
            row = (printable(knob["name"]), _lasting(knob), values or "in no shipped profile")
            columns(sheet, [row], indent=2, widths=(26, 13, sheet.width - 2 - 26 - 13 - 4), styles=("cyan",))
            prose(sheet, knob["why"], indent=4, style="dim")


def _lasting(knob: Mapping[str, Any]) -> str:
    return _LIFETIMES.get(knob["lifetime"], printable(knob["lifetime"]))


def _one(sheet: Sheet, knob: Mapping[str, Any]) -> None:
    prose(sheet, printable(knob["name"]), style="bold")
    prose(sheet, knob["why"])
    sheet.line()
    lasts = {"runtime": "until the next boot", "boot": "from the next boot on"}
    fields = {
        "facility": knob["facility"],
        "lasts": lasts.get(knob["lifetime"], knob["lifetime"]),
        "satisfied": f"observed {knob['match']} desired",
        "risk": knob["risk"],
        "source": knob["source"],
    }
    for label, text in fields.items():
        prose(sheet, text, label=label, hang=_LABEL)
    for number, path in enumerate(knob.get("paths", ())):
        prose(sheet, path, label="files" if number == 0 else "", hang=_LABEL)
    for name, asked in (knob.get("profiles") or {}).items():
        heading(sheet, f"{name}: {shown(asked.get('value'))}")
        prose(sheet, asked.get("reason", ""), indent=2)
