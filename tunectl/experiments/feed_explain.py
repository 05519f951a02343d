"""The document of a run of `feed`, from what the native program counted. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

from tunectl.experiments.feed_cells import cells, judged, stamp_cost_ns
from tunectl.experiments.feed_facts import read_raw
from tunectl.experiments.feed_request import Replay
from tunectl.experiments.feed_warnings import run_warnings
from tunectl.experiments.pair_facts import Peer

_AS_IT_IS = ("tunectl_version", "host", "at", "duration_s", "interrupted", "fifo_priority", "busy_poll_us")


class RoundTrip(NamedTuple):
    """Messages went to another host and back, by this interface of this host."""

    peer: Peer
    interface: str


def explained_feed(
    raw: dict[str, Any],
    unstamped: dict[str, Any] | None = None,
    replay: Replay | None = None,
    trip: RoundTrip | None = None,
) -> dict[str, Any]:
    """The tunectl.probe.feed/1 document of what `tunectl-probe feed` counted. Pure.

    `unstamped` is the document of one more run: of the first case that was stamped, without stamps. `replay` is the
    capture that decided the messages' times; without a `trip` they stayed on this host.
    """
    run = read_raw(raw)
    found = judged(run)
    without = judged(read_raw(unstamped)) if unstamped else []
    return {
        "schema": "tunectl.probe.feed/1",
        **{name: raw[name] for name in _AS_IT_IS},
        "clock": run.clock.shown(raw["clock"]),
        "peer": trip.peer._asdict() if trip else None,
        "interface": trip.interface if trip else None,
        "replay": replay.said(max(case.grown for case in run.cases)) if replay else None,
        "stamp_cost_ns": stamp_cost_ns(found, without),
        "warnings": run_warnings(run),
        "budget": {"limits": {}, "verdict": "not-judged", "broken": []},
        "cells": cells(run, found, trip is not None),
    }
