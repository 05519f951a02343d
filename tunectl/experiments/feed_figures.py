"""Figures of messages that were due, and of the stages on their way. Pure."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping

from tunectl.experiments.feed_facts import RawCase
from tunectl.experiments.tick_figures import FEWEST, Figures
from tunectl.shapes import FEED_STAGES

BARS = ("50", "90", "99", "99.9", "max")


def due_figures(case: RawCase, hz: float) -> Figures:
    """From due to the book, of every message that was due.

    One that was never sent counts as what it had waited at the end; one that was lost as longer than all others.
    """
    return Figures([*case.total, *case.unsent_ticks], hz, case.lost)


def spread_ns(values: list[int], hz: float) -> dict[str, float | None] | None:
    """min, mean, percentiles and max of some values; None without any."""
    return Figures(values, hz).spread_ns(FEWEST)


def bars_ns(case: RawCase, due: Figures, has_wire: bool) -> dict[str, dict[str, float | None] | None]:
    """Of what the time at a percentile is made: the mean of each stage, of the messages about as long as that.

    None where the percentile is, and where no message so long has arrived.
    """
    spread: Mapping[str, float | None] = due.spread_ns(FEWEST) or {}
    return {name: _bar(case, due, name, has_wire) if spread.get(name) is not None else None for name in BARS}


def _bar(case: RawCase, due: Figures, name: str, has_wire: bool) -> dict[str, float | None] | None:
    ticks = due.most if name == "max" else due.at(name)
    place = bisect_right(case.profile, ticks, key=lambda row: row[0]) - 1
    if place < 0 or not math.isfinite(ticks) or ticks > case.profile[place][1]:
        return None
    _, _, count, *sums = case.profile[place]
    bar: dict[str, float | None] = {
        stage: round(ticks_ * 1e9 / due.hz / count, 1) for stage, ticks_ in zip(FEED_STAGES, sums, strict=True)
    }
    return bar if has_wire else bar | {"wire": None}
