"""The document of a run of `hedge`, from what the native program counted. Pure."""

from __future__ import annotations

from typing import Any

from tunectl.experiments.hedge_cells import cells
from tunectl.experiments.hedge_facts import read_raw
from tunectl.experiments.hedge_warnings import run_warnings

_AS_IT_IS = ("tunectl_version", "host", "at", "duration_s", "interrupted", "simulated", "fifo_priority")


def explained_hedge(raw: dict[str, Any]) -> dict[str, Any]:
    """The tunectl.probe.hedge/1 document of what `tunectl-probe hedge` counted. Pure."""
    run = read_raw(raw)
    return {
        "schema": "tunectl.probe.hedge/1",
        **{name: raw[name] for name in _AS_IT_IS},
        "clock": run.clock.shown(raw["clock"]),
        "warnings": run_warnings(run),
        "cells": cells(run),
    }
