"""A made-up result with round numbers."""

from __future__ import annotations

from typing import Any


def cpu_result(cpu: int = 2, **changes: Any) -> dict[str, Any]:
    """10 s, 50 interruptions, 1 ms stolen in all."""
    values: dict[str, Any] = {
        "cpu": cpu,
        "duration_ns": 10_000_000_000,
        "loops": 1_000_000_000,
        "loop_ns": {"mean": 10.0, "min": 9.9},
        "interruptions": 50,
        "stolen_ns": 1_000_000,
        "stolen_ppm": 100.0,
        "max_ns": 40_000,
        "gap_ns": {"50": 20_000, "99": 39_000, "99.9": 40_000, "99.99": 40_000},
        "arrival_ns": {"50": 0, "99": 0, "99.9": 8_000, "99.99": 20_000, "99.999": 30_000},
        "percentile_error_ppm": 0,
        "histogram": [[20_000, 20_100, 50]],
        "events_lost": 0,
        "events": [],
        "counters": {
            "irq": {},
            "softirq": {},
            "context_switches": {"voluntary": 0, "involuntary": 0},
            "page_faults": 0,
            "steal_ns": 0,
        },
        "core_khz": {"before": 3_500_000, "after": 3_500_000},
    }
    return values | changes


def result(*cpus: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A document around these CPUs."""
    values: dict[str, Any] = {
        "schema": "tunectl.probe.jitter/1",
        "tunectl_version": "0.1.0",
        "host": {"hostname": "h", "kernel": "6.12", "boot_id": "b", "machine": "x86_64"},
        "at": "2026-11-21T09:00:00Z",
        "threshold_ns": 160,
        "duration_s": 10.0,
        "interrupted": False,
        "clock": {"source": "tsc", "hz": 2.6e9, "granule_ns": 10.0, "drift_ppm": 0.0},
        "warnings": [],
        "budget": {"limits": {}, "verdict": "not-judged", "broken": []},
        "cpus": list(cpus),
    }
    return values | changes
