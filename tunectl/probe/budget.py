"""Judges a probe's result by the operator's limits. Pure.

What was not measured never helps: an interrupted run, a run without a CPU or without length can break a limit, but
cannot keep within it; and a percentile that is only known to within an error (events were lost) is taken at its worst.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from tunectl.errors import UsageError
from tunectl.probe.result import CpuSummary, left_out, summary_rows


def _worst_percentile(row: CpuSummary) -> float:
    return min(row.p99_9_ns * (1 + row.percentile_error_ppm / 1e6), row.max_ns)


# The keys of [budget] in the host file: what each limits, in the reader's words, and its unit.
_MEASURES: Mapping[str, tuple[str, str, Callable[[CpuSummary], float]]] = {
    "max_ns": ("the longest interruption", "ns", lambda row: row.max_ns),
    "p99_9_ns": ("the wait that 99.9 % of arrivals do not exceed", "ns", _worst_percentile),
    "interruptions_per_s": ("interruptions", "per second", lambda row: row.interruptions_per_s),
    "stolen_ppm": ("time stolen", "ppm", lambda row: row.stolen_ppm),
}


def judge(result: Mapping[str, Any], limits: Mapping[str, float]) -> dict[str, Any]:
    """The `budget` block for a tunectl.probe.jitter/1 document: {limits, verdict, broken, reason}.

    `limits` has the keys of the host file's [budget], each for every CPU by itself; a value equal to its limit
    is within. verdict: "broken" with a sentence for each CPU and limit in `broken`; "within"; or "not-judged",
    `reason` saying why.
    UsageError for an unknown limit or one that is no number.
    """
    _check_limits(limits)
    rows = summary_rows(result)
    pairs = [(row, name) for row in rows for name in limits]
    broken = [_sentence(row, name, limits[name]) for row, name in pairs if not _holds(row, name, limits[name])]
    reason = _why_not_judged(result, rows, limits)
    verdict = "broken" if broken else "not-judged" if reason else "within"
    return {
        "limits": dict(limits),
        "verdict": verdict,
        "broken": broken,
        "reason": reason if not broken else "",
    }


def _check_limits(limits: Mapping[str, float]) -> None:
    for name, limit in limits.items():
        if name not in _MEASURES:
            raise UsageError(f"budget: unknown limit {name}", f"known are {', '.join(_MEASURES)}")
        if isinstance(limit, bool) or not isinstance(limit, int | float) or math.isnan(limit):
            raise UsageError(f"budget: {name} = {limit!r} is no number")


def _holds(row: CpuSummary, name: str, limit: float) -> bool:
    return _MEASURES[name][2](row) <= limit


def _sentence(row: CpuSummary, name: str, limit: float) -> str:
    what, unit, value = _MEASURES[name]
    return f"CPU {row.cpu}: {what}: {value(row):.10g} {unit}, allowed {limit:.10g} {unit} ({name})"


def _why_not_judged(result: Mapping[str, Any], rows: list[CpuSummary], limits: Mapping[str, float]) -> str:
    if not limits:
        return "no limit is set"
    if not result.get("not_measured") and (not rows or not result["duration_s"] > 0):
        return "nothing was measured"
    if any(not cpu["loops"] for cpu in result["cpus"]):
        return "a CPU was never measured"
    if left := left_out(result):
        return left
    if result.get("interrupted"):
        return "the run was interrupted, so rare interruptions had less chance to show"
    return ""
