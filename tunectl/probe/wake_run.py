"""A run of `wake`: the native program measures one case at a time, and what it counted is put together here."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from typing import Any

from tunectl.errors import TunectlError
from tunectl.host.cpusets import CpuFacts
from tunectl.probe.runner import document_of, start
from tunectl.probe.wake_cases import Planned, plan
from tunectl.probe.wake_link import Asked, Link, UnreachableError
from tunectl.probe.wake_placement import Placed, place
from tunectl.probe.wake_request import BUSY_POLL_US, MESSAGES, SMALLEST, WakeRequest

_INTERRUPTED = "interrupted before it was measured"
_CASE_S = 0.1  # beyond its schedule, mostly to find out the counter's rate
_GRACE_S = 60.0


class WakeRun:
    """The cases of a request, and the document that they make together. UsageError for a request that is none."""

    def __init__(self, request: WakeRequest, facts: CpuFacts, tell: Callable[[str], None]) -> None:
        self.request, self.tell = request, tell
        self.placed: Placed = place(request, facts, frozenset(os.sched_getaffinity(0)))
        self.cases: list[Planned] = plan(request, self.placed.sender, self.placed.receiver)
        self._document: dict[str, Any] = {}

    def measure(self, link: Link | None) -> dict[str, Any]:
        """What was counted, as if one run of the program had counted it; over `link`, round trips.

        A case that cannot be measured has the reason instead. Ctrl-C ends a case early, and leaves out the rest.
        TunectlError where none could be measured at all.
        """
        cells = [self._cell(place, case, link) for place, case in enumerate(self.cases)]
        if all(cell["reason"] for cell in cells):
            reasons = dict.fromkeys(cell["reason"] for cell in cells)
            raise TunectlError(f"nothing was measured: {'; '.join(reasons)}")
        return self._document | {"cells": cells}

    def _cell(self, place: int, case: Planned, link: Link | None) -> dict[str, Any]:
        if case.reason:
            return case.cell
        if self._document.get("interrupted"):
            return case._replace(reason=_INTERRUPTED).cell
        left = sum(self._scheduled_s(one) for one in self.cases[place:])
        of = f"case {place + 1} of {len(self.cases)}, {left:.0f} s left"
        try:
            self.tell(f"{case.mechanism}, {case.way}, {case.idle_ms:g} ms: {of}")
            return self._taken(self._measured(case, link))
        except UnreachableError as error:
            return case._replace(reason=str(error)).cell
        except KeyboardInterrupt:
            if not self._document:
                raise TunectlError("interrupted before anything was measured") from None
            self._document["interrupted"] = True
            return case._replace(reason=_INTERRUPTED).cell

    def _scheduled_s(self, case: Planned) -> float:
        return 0.0 if case.reason else _CASE_S + (self.request.messages or MESSAGES) * case.idle_ms / 1e3

    def _measured(self, case: Planned, link: Link | None) -> dict[str, Any]:
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
        cpus = frozenset({self.placed.sender, self.placed.receiver})
        done = start(argv, cpus, timeout_s=2 * self._scheduled_s(case) + _GRACE_S, keep=keep)
        measured: dict[str, Any] = document_of(done)
        return measured

    def _taken(self, measured: dict[str, Any]) -> dict[str, Any]:
        """The cell; what is of the run is kept: of the last case, but when the first began, and how long all took."""
        before = self._document
        self._document = measured | {
            "at": before.get("at", measured["at"]),
            "duration_s": round(before.get("duration_s", 0.0) + measured["duration_s"], 3),
        }
        (cell,) = measured["cells"]
        found: dict[str, Any] = cell
        return found
