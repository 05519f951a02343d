"""What reports want from a jitter probe's result: the figures a budget judges, in its words. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tunectl.model import Document


def probe_of(document: Document) -> Mapping[str, Any]:
    """The jitter result a document carries: itself, or a preflight's `probe`; empty where there is none."""
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
