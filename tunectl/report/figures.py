"""Figures: which ones a probe's result and a comparison have, what they are called, and how they are written. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from tunectl.model import Document

_NAMES = {
    "arrival_ns": "arrival",
    "gap_ns": "gap",
    "wake_ns": "wake-up",
    "max_ns": "longest",
    "interruptions_per_s": "interruptions",
    "stolen_ppm": "stolen",
    "receiver_cpu_percent": "receiver's CPU",
}
CHANGES = {
    "lower": "lower",
    "higher": "higher",
    "not-significant": "not significant",
    "not-comparable": "-",
}


def nanoseconds(value: float | None, space: str = " ") -> str:
    """A duration in the unit that suits it: `812 ns`, `12.3 µs`, `4.56 ms`, `1.2 s`."""
    if value is None or not math.isfinite(value):
        return "-"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if value >= size * 0.9995:  # so that 999.96 µs is 1 ms, not 1000 µs
            number = f"{value / size:.3g}" if value < size * 999.5 else f"{value / size:.0f}"
            return f"{number}{space}{unit}"
    return f"{value:.3g}{space}ns"


def plain(value: float | None) -> str:
    """`1,234`, `12.3`, `0.042`: three digits; an exponent only below 0.0001 and from 1e15 on."""
    if value is None or not math.isfinite(value):
        return "-"
    if value and not 1e-4 <= abs(value) < 1e15:
        return f"{value:.2e}"
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def _share(ppm: float | None) -> str:
    """`8,590 ppm`; from one percent on `71.9 %`."""
    if ppm is None:
        return "-"
    return f"{plain(ppm / 1e4)} %" if ppm >= 9999.5 else f"{plain(ppm)} ppm"


_WRITTEN: Mapping[str, Callable[[float | None], str]] = {
    "interruptions_per_s": lambda value: f"{plain(value)}/s" if value is not None else "-",
    "stolen_ppm": lambda value: _share(value),
    "receiver_cpu_percent": lambda value: f"{plain(value)} %" if value is not None else "-",
}


def label_of(row: Mapping[str, Any]) -> str:
    """`gap P99.9`, `interruptions`."""
    name = _NAMES.get(row["measure"], row["measure"])
    return f"{name} P{row['percentile']}" if row["percentile"] else name


def value_of(row: Mapping[str, Any], side: str) -> str:
    """One side's estimate, with its unit."""
    return _written(row, (row[side] or {}).get("value"))


def bounds_of(row: Mapping[str, Any], side: str) -> str:
    """`12 µs to 15 µs`; `over 12 µs` where the run was too short to bound it above; empty without bounds."""
    low, high = ((row[side] or {}).get(end) for end in ("low", "high"))
    if low is None:
        return ""
    if high is None:
        return f"over {_written(row, low)}"
    return f"{_written(row, low)} to {_written(row, high)}"


def ratio_of(row: Mapping[str, Any]) -> tuple[str, str]:
    """The ratio and its bounds: (times 0.42, "0.31 to 0.55"); "-" without a ratio."""
    ratio = row["ratio"]
    if not ratio or ratio["value"] is None:
        return "-", ""
    low, high = ratio["low"], ratio["high"]
    times = f"\N{MULTIPLICATION SIGN}{plain(ratio['value'])}"
    if low is None:
        return times, ""
    if high is None:
        return times, f"over {plain(low)}" if low else "unknown"
    return times, f"{plain(low)} to {plain(high)}"


def _written(row: Mapping[str, Any], value: float | None) -> str:
    return _WRITTEN.get(row["measure"], nanoseconds)(value)


def probe_of(document: Document) -> Mapping[str, Any]:
    """The jitter result a document carries: itself, or a preflight's `probe`; empty without one."""
    if document.name == "probe.jitter":
        return document.body
    probe = document.body.get("probe")
    return probe if isinstance(probe, Mapping) else {}


def figure(probe: Mapping[str, Any], cpu: Mapping[str, Any], measure: str) -> float | None:
    """One CPU's `max_ns`, `stolen_ppm`, `p99_9_ns` (of arrivals) or `interruptions_per_s`; None if not measured."""
    value: Any = None
    if measure == "p99_9_ns":
        value = (cpu.get("arrival_ns") or {}).get("99.9")
    elif measure == "interruptions_per_s":
        own_ns, count = cpu.get("duration_ns"), cpu.get("interruptions")
        duration = own_ns / 1e9 if own_ns else probe.get("duration_s")
        value = count / duration if duration and count is not None else None
    else:
        value = cpu.get(measure)
    return value if isinstance(value, int | float) and math.isfinite(value) else None


def worst(probe: Mapping[str, Any], measure: str) -> float | None:
    """The largest of that figure over all probed CPUs; None if none was measured."""
    found = [figure(probe, cpu, measure) for cpu in probe.get("cpus", ())]
    return max((value for value in found if value is not None), default=None)


def budget_of(probe: Mapping[str, Any]) -> Mapping[str, Any]:
    """The result's `budget`: limits, verdict (within, broken, not-judged), broken, reason; empty where it has none."""
    budget = probe.get("budget")
    return budget if isinstance(budget, Mapping) else {}


_LIMITED = {
    "max_ns": "longest interruption",
    "p99_9_ns": "P99.9 of arrivals",
    "interruptions_per_s": "interruptions",
    "stolen_ppm": "stolen time",
}


def limits_of(probe: Mapping[str, Any]) -> list[tuple[str, str, str, str, str]]:
    """(measure, figure, limit, on which CPU, over or within) of the worst CPU for each measure of the budget."""
    limits: Mapping[str, Any] = budget_of(probe).get("limits") or {}
    rows = []
    for measure, label in _LIMITED.items():
        found = [
            (value, cpu["cpu"]) for cpu in probe.get("cpus", ()) if (value := figure(probe, cpu, measure)) is not None
        ]
        if found:
            value, cpu = max(found)
            limit, row = limits.get(measure), {"measure": measure}
            word = "no limit" if limit is None else "OVER" if value > limit else "within"
            rows.append(
                (label, _written(row, value), "-" if limit is None else _written(row, limit), f"CPU {cpu}", word)
            )
    return rows
