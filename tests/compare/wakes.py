"""Wake results as docs/interface.md describes them."""

from typing import Any


def cell(mechanism: str, waiting: str, idle_ms: float, scale: float = 1.0, **changes: Any) -> dict[str, Any]:
    """200 messages from 4 to 6 µs times `scale`, and one of 40."""
    lengths = [int((4000 + 10 * at) * scale) for at in range(200)] + [int(40_000 * scale)]
    values: dict[str, Any] = {
        "mechanism": mechanism,
        "waiting": waiting,
        "idle_ms": idle_ms,
        "cpus": [0, 1],
        "n": len(lengths),
        "min_ns": lengths[0],
        "mean_ns": sum(lengths) / len(lengths),
        "percentiles_ns": {"50": lengths[100], "99": lengths[198], "99.9": lengths[200]},
        "max_ns": lengths[-1],
        "histogram": [[ns, ns, 1] for ns in lengths],
        "way": "block",
        "receiver_cpu_percent": 1.5,
        "napi_id": 0,
        "warnings": [],
    }
    return values | changes


def wake_document(*cells: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A document around these cells."""
    values: dict[str, Any] = {
        "schema": "tunectl.probe.wake/1",
        "tunectl_version": "0.1.0",
        "host": {"hostname": "h", "kernel": "6.12", "boot_id": "b", "machine": "x86_64"},
        "at": "2026-11-21T09:00:00Z",
        "cells": list(cells),
        "speedups": [],
        "warnings": [],
    }
    return values | changes
