"""A histogram of interruptions on a logarithmic scale, both ways: a single 5 ms gap must be seen beside a million."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from tunectl.report.text.layout import columns, prose
from tunectl.report.text.sheet import Sheet

_STEPS = (1, 2, 5)  # of a decade


def nanoseconds(value: float | None, space: str = " ") -> str:
    """A duration in the unit that suits it: `812 ns`, `12.3 µs`, `4.56 ms`, `1.2 s`."""
    if value is None or not math.isfinite(value):
        return "-"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if value >= size * 0.9995:  # so that 999.96 µs is 1 ms, not 1000 µs
            number = f"{value / size:.3g}" if value < size * 999.5 else f"{value / size:.0f}"
            return f"{number}{space}{unit}"
    return f"{value:.3g}{space}ns"


def histogram(sheet: Sheet, cpus: Iterable[Mapping[str, Any]], indent: int = 0, what: str = "interruptions") -> None:
    """The interruptions of all CPUs by length, in steps of 1, 2 and 5; nothing where there were none."""
    bins: dict[tuple[int, int], int] = {}
    for cpu in cpus:
        for from_ns, _, count in cpu.get("histogram") or ():
            if count > 0 and from_ns is not None:
                place = _bin(from_ns)
                bins[place] = bins.get(place, 0) + count
    if not bins:
        return
    sheet.line()
    prose(sheet, f"{what} by length (both scales logarithmic)", indent=indent)
    room = max(sheet.width - indent - 2 - 18 - 14, 10)
    most = math.log10(max(bins.values())) + 1
    rows = []
    place = min(bins)
    while place <= max(bins):
        count = bins.get(place, 0)
        bar = "█" * max(round(room * (math.log10(count) + 1) / most), 1) if count else ""
        rows.append((f"{nanoseconds(_value(place))} to {nanoseconds(_value(_next(place)))}", f"{count:,}", bar))
        place = _next(place)
    columns(sheet, rows, indent=indent + 2, right={0, 1}, styles=("", "", "cyan"))


def _bin(value: float) -> tuple[int, int]:
    """(decade, index of 1, 2 or 5) of the step that holds `value`, in ns; below 1 ns is the first."""
    decade = len(str(int(value))) - 1 if value >= 1 else 0
    lead = value / 10**decade
    return decade, max(index for index, step in enumerate(_STEPS) if step <= max(lead, 1))


def _next(place: tuple[int, int]) -> tuple[int, int]:
    decade, index = place
    return (decade, index + 1) if index + 1 < len(_STEPS) else (decade + 1, 0)


def _value(place: tuple[int, int]) -> float:
    return float(_STEPS[place[1]] * 10 ** place[0])
