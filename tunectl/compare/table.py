"""The rows of a comparison: a measure before and after, their ratio, and whether it says anything. Pure."""

from __future__ import annotations

import math
from typing import Any

from tunectl.compare.bounds import Interval, ratio_interval

TOO_SHORT = "one of the runs is too short to bound it"
INCLUDES_ONE = "the bounds of the ratio include 1"
NONE_IN_EITHER = "none in either run"


def row(measure: str, percentile: str | None, before: Interval | None, after: Interval | None) -> dict[str, Any]:
    """One row. A side that is None had nothing to measure: no ratio then."""
    ratio = ratio_interval(before, after) if before and after else None
    verdict, reason = _judged(before, after, ratio)
    return {
        "measure": measure,
        "percentile": percentile,
        "before": interval_body(before),
        "after": interval_body(after),
        "ratio": interval_body(ratio),
        "change": verdict,
        "reason": reason,
    }


def _judged(before: Interval | None, after: Interval | None, ratio: Interval | None) -> tuple[str, str]:
    if before is None or after is None:
        return "not-comparable", NONE_IN_EITHER if before is after else "none in one of the runs"
    if ratio is None:
        return "not-significant", NONE_IN_EITHER
    if ratio.high < 1:
        return "lower", ""
    if ratio.low > 1:
        return "higher", ""
    unbounded = math.inf in (before.high, after.high)
    return "not-significant", TOO_SHORT if unbounded else INCLUDES_ONE


def interval_body(interval: Interval | None) -> dict[str, float | None] | None:
    """An interval in JSON's words: a bound that is not known is null."""
    return None if interval is None else {name: _finite(value) for name, value in interval._asdict().items()}


def _finite(value: float) -> float | None:
    if not math.isfinite(value):
        return None
    return float(f"{value:.6g}")  # a bound is not known to more digits
