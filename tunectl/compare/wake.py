"""Two wake results side by side, by way of waiting and idle time. Pure."""

from __future__ import annotations

from typing import Any

from tunectl.compare.bounds import Interval
from tunectl.compare.estimate import gap_percentile
from tunectl.compare.lengths import Lengths
from tunectl.compare.sample import Sample
from tunectl.compare.table import row
from tunectl.probe.shapes import Cell, Wake

_PERCENTILES = {"50": 0.5, "99": 0.01, "99.9": 0.001}
Key = tuple[str, str, str, float, bool]


def key_of(cell: Cell) -> Key:
    """What makes two cells the same experiment."""
    return cell.mechanism, cell.waiting, cell.way, cell.idle_ms, cell.is_round_trip


def wake_groups(before: Wake, after: Wake, confidence: float) -> list[dict[str, Any]]:
    """A table for each cell that both runs have."""
    later = {key_of(cell): cell for cell in after.cells}
    pairs = [(cell, later[key_of(cell)]) for cell in before.cells if key_of(cell) in later]
    pairs = [pair for pair in pairs if pair[0].n or pair[1].n]  # what neither could measure is no row
    return [_group(*pair, confidence) for pair in pairs]


def _group(before: Cell, after: Cell, confidence: float) -> dict[str, Any]:
    """Messages are sent one after the other, with a pause between: they are taken for independent."""
    sides = [Sample(0.0, _lengths(cell), (), 0.0, ()) for cell in (before, after)]
    rows = [
        row("wake_ns", nines, *(gap_percentile(side, share, confidence) for side in sides))
        for nines, share in _PERCENTILES.items()
    ]
    rows.append(_plain("max_ns", before.max_ns, after.max_ns, "one observation has no bounds"))
    rows.append(
        _plain("receiver_cpu_percent", before.receiver_cpu_percent, after.receiver_cpu_percent, "one figure a run")
    )
    return {"name": before.name, "cpu": None, "rows": rows}


def _lengths(cell: Cell) -> Lengths:
    return Lengths((min((low + high) / 2, cell.max_ns or high), count) for low, high, count in cell.histogram)


def _plain(measure: str, before: float | None, after: float | None, reason: str) -> dict[str, Any]:
    """A row whose figures have no bounds."""
    sides = [None if value is None else Interval(value, value, value) for value in (before, after)]
    made = row(measure, None, sides[0], sides[1])
    for side in ("before", "after", "ratio"):
        if made[side]:
            made[side] |= {"low": None, "high": None}
    return made | {"change": "not-comparable", "reason": reason}
