"""The document of a run of `wake`, from what the native program counted. Pure."""

from __future__ import annotations

from typing import Any

from tunectl.experiments.pair_facts import Peer
from tunectl.experiments.wake_cells import cells, judged, speedups
from tunectl.experiments.wake_facts import read_raw
from tunectl.experiments.wake_warnings import run_warnings

_AS_IT_IS = (
    "tunectl_version",
    "host",
    "at",
    "duration_s",
    "interrupted",
    "messages",
    "bytes",
    "fds",
    "dirty_kib",
    "fifo_priority",
    "busy_poll_us",
)


def explained_wake(raw: dict[str, Any], peer: Peer | None = None) -> dict[str, Any]:
    """The tunectl.probe.wake/1 document of what `tunectl-probe wake` counted; `peer` is the other host. Pure."""
    run = read_raw(raw)
    found = judged(run)
    return {
        "schema": "tunectl.probe.wake/1",
        **{name: raw[name] for name in _AS_IT_IS},
        "has_warm_sender": run.has_warm_sender,
        "timer_slack_ns": run.facts.timer_slack_ns,
        "clock": run.clock.shown(raw["clock"]),
        "peer": peer._asdict() if peer else None,
        "warnings": run_warnings(run),
        "cells": cells(run, found, peer is not None),
        "speedups": speedups(found),
    }
