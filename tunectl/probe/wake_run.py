"""A run of `wake`: the native program measures one case at a time, and what it counted is put together here."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tunectl.host.cpusets import CpuFacts
from tunectl.probe.case_by_case import measured_cases
from tunectl.probe.pair_placement import Placed, place
from tunectl.probe.runner import document_of, start
from tunectl.probe.wake_cases import Planned, plan
from tunectl.probe.wake_link import Asked, Link
from tunectl.probe.wake_request import BUSY_POLL_US, MESSAGES, SMALLEST, WakeRequest

_CASE_S = 0.1  # beyond its schedule, mostly to find out the counter's rate
_GRACE_S = 60.0


class WakeRun:
    """The cases of a request, and the document that they make together. UsageError for a request that is none."""

    def __init__(self, request: WakeRequest, facts: CpuFacts, tell: Callable[[str], None]) -> None:
        self.request, self.tell = request, tell
        self.placed: Placed = place(request.cpus, request.among, facts, frozenset(os.sched_getaffinity(0)))
        self.cases: list[Planned] = plan(request, self.placed)

    def measure(self, link: Link | None) -> dict[str, Any]:
        """What was counted, as if one run of the program had counted it; over `link`, round trips.

        TunectlError where no case could be measured at all.
        """
        return measured_cases(self.cases, partial(self._measured, link), self._scheduled_s, self.tell)

    def _scheduled_s(self, case: Planned) -> float:
        return _CASE_S + (self.request.messages or MESSAGES) * case.idle_ms / 1e3

    def _measured(self, link: Link | None, case: Planned) -> dict[str, Any]:
        if link is None:
            return self._run(case, (), None)
        asked = self.request
        wanted = Asked(
            case.mechanism,
            case.way,
            asked.busy_poll_us or BUSY_POLL_US,
            asked.message_bytes or SMALLEST,
            asked.fds or 1,
        )
        connection = link.open(wanted)
        try:
            words = ("--socket", str(connection.fileno()), "--peer-hz", str(link.peer.hz))
            return self._run(case, words, connection)
        finally:
            connection.close()
            link.close_case()

    def _run(self, case: Planned, words: Sequence[str], connection: socket.socket | None) -> dict[str, Any]:
        argv = ["wake", "--cpus", self.placed.text, "--case", case.text, *self.request.words(), *words]
        keep = connection.fileno() if connection else None
        done = start(argv, self.placed.cpus, timeout_s=2 * self._scheduled_s(case) + _GRACE_S, keep=keep)
        measured: dict[str, Any] = document_of(done)
        return measured
