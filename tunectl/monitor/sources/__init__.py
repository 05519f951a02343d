"""Where the monitor learns of the host: one file a source. To add one, write its file and name it here.

The order is that of reading: the interrupt table first, for the others' sake; the frequency late, when the CPU this
runs on has been busy for a while; the audit last, for it judges all of them.
"""

from __future__ import annotations

from tunectl.monitor.sources import (
    audit,
    clock,
    drift,
    events,
    frequency,
    interrupts,
    latency,
    limits,
    managers,
    thermal,
    throttle,
)
from tunectl.monitor.sources.source import Source

__all__ = ["SOURCES", "Source"]

SOURCES: tuple[Source, ...] = (
    interrupts.SOURCE,
    events.SOURCE,
    throttle.SOURCE,
    limits.SOURCE,
    thermal.SOURCE,
    managers.SOURCE,
    drift.SOURCE,
    frequency.SOURCE,
    clock.SOURCE,
    latency.SOURCE,
    audit.SOURCE,
)
