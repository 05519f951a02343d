"""A run over time in one line a CPU: which slice had the longest gap, and how much of it was stolen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tunectl.report.measures import nanoseconds, plain
from tunectl.report.text.layout import line, prose
from tunectl.report.text.sheet import Sheet
from tunectl.report.timeline import Slice, run_ns, timeline

_LEVELS = " ▁▂▃▄▅▆▇█"
_UNKNOWN = "?"
MAX_CPUS = 16


def strip(sheet: Sheet, body: Mapping[str, Any], indent: int = 0) -> None:
    """Two lines a CPU, those with the longest gaps first where there are many; nothing where nobody knows when."""
    cpus = sorted(body["cpus"], key=lambda cpu: -(cpu.get("max_ns") or 0))[:MAX_CPUS]
    shown = [cpu for cpu in body["cpus"] if cpu in cpus]
    label = max([len(f"CPU {cpu['cpu']} longest ") for cpu in shown], default=0)
    room = min(max(sheet.width - indent - 2 - label, 10), 100)
    strips = [(cpu, timeline(body, cpu, room)) for cpu in shown]
    if not any(one and one.longest_ns and one.stolen for _, slices in strips for one in slices):
        return
    known = [one for _, slices in strips for one in slices if one]
    top = max(one.longest_ns for one in known)
    floor = min([one.longest_ns for one in known if one.longest_ns] + [top / 10])
    most = max(one.stolen for one in known)
    sheet.line()
    prose(sheet, _title(body, [slices for _, slices in strips], floor, top, most), indent=indent)
    for cpu, slices in strips:
        name = f"CPU {cpu['cpu']} "
        longest = "".join(_level(one and _logarithmic(one.longest_ns, floor, top)) for one in slices)
        stolen = "".join(_level(one and one.stolen / most) for one in slices)
        line(sheet, " " * (indent + 2), f"{name}longest".ljust(label), (longest, "cyan"))
        line(sheet, " " * (indent + 2), "stolen".rjust(len(name) + 6).ljust(label), (stolen, "magenta"))
    if any(slices for _, slices in strips):
        _axis(sheet, indent + 2 + label, max(len(slices) for _, slices in strips), run_ns(body, shown[0]))


def _title(
    body: Mapping[str, Any], strips: Sequence[Sequence[Slice | None]], floor: float, top: float, most: float
) -> str:
    counted = max(map(len, strips))
    width = nanoseconds(body["duration_s"] * 1e9 / counted)
    text = f"over time, {width} a column; longest gap: ▁ {nanoseconds(floor)} to █ {nanoseconds(top)}, logarithmic"
    text += f"; stolen: █ {plain(most * 100)} % of a column"
    unknown = any(one is None for slices in strips for one in slices)
    return f"{text}; ?: the list of gaps was full" if unknown else text


def _logarithmic(ns: float, floor: float, top: float) -> float:
    """0 for no gap, else above 0 up to 1."""
    if ns <= 0:
        return 0.0
    return min(max(math.log(max(ns, floor) / floor) / math.log(top / floor), 0.01), 1.0)


def _level(height: float | None) -> str:
    if height is None:
        return _UNKNOWN
    return _LEVELS[min(math.ceil(height * (len(_LEVELS) - 1)), len(_LEVELS) - 1)]


def _axis(sheet: Sheet, indent: int, cells: int, length_ns: float) -> None:
    end = nanoseconds(length_ns)
    if cells > len(end) + 4:
        line(sheet, " " * indent, ("0 s" + end.rjust(cells - 3), "dim"))
