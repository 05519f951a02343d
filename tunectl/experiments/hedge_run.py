"""A run of `hedge`: the native program measures, or simulates, one case at a time."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tunectl.experiments.case_by_case import Takes, case_document, measured_cases
from tunectl.experiments.hedge_cases import Planned, plan
from tunectl.experiments.hedge_request import HedgeRequest
from tunectl.experiments.pair_placement import PlacedServers, place_servers
from tunectl.host.cpusets import CpuFacts
from tunectl.host.sysroot import Sysroot
from tunectl.host.thermal import read_throttles

_CASE_S = 0.5  # beyond its schedule: the counter's rate, the plan
_LAST_SERVICES = 10  # for answers to the last requests
_GRACE_S = 60.0
_SIMULATED_S = 1e-6  # what a simulated request takes, about


class HedgeRun:
    """The cases of a request, and the documents that they make. UsageError for a request that is none."""

    def __init__(self, request: HedgeRequest, facts: CpuFacts, tell: Callable[[str], None]) -> None:
        self.request, self.tell = request, tell
        self.cases: list[Planned] = plan(request)
        self.placed: PlacedServers | None = None
        if not request.simulate:
            allowed = frozenset(os.sched_getaffinity(0))
            self.placed = place_servers(request.cpus, request.among, facts, allowed)
        self.notes: list[str] = [self.placed.note] if self.placed and self.placed.note else []

    def measure(self) -> dict[str, Any]:
        """What was counted, as if one run of the program had counted it. TunectlError where nothing was."""
        return measured_cases(self.cases, self._measured, self._takes, self.tell)

    def _takes(self, case: Planned) -> Takes:
        if self.request.simulate:
            return Takes(0.0, _SIMULATED_S * self.request.requests(case.load))
        last_s = _LAST_SERVICES * self.request.service_ns / 1e9
        return Takes(self.request.warm_up_s(case.load), _CASE_S + self.request.duration_s + last_s)

    def _measured(self, case: Planned) -> dict[str, Any]:
        placed = self.placed
        argv = ["hedge", *case.words(), *self.request.words()]
        if placed:
            argv += ["--cpus", placed.text]
        before = _throttles(placed)
        limit_s = 2 * self._takes(case).total + _GRACE_S
        measured = case_document(argv, placed.cpus if placed else frozenset(), limit_s)
        after = _throttles(placed)
        known = before is not None and after is not None
        measured["cells"][0]["throttled"] = max((after or 0) - (before or 0), 0) if known else None
        return measured


def _throttles(placed: PlacedServers | None) -> int | None:
    """How often the servers' cores and packages were throttled since boot; None where nobody counts."""
    found = [read_throttles(Sysroot(), cpu) for cpu in (placed.a, placed.b)] if placed else []
    counts = [count for one in found for count in one if count is not None]
    return sum(counts) if counts else None
