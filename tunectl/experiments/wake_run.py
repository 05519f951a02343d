"""A run of `wake`: the native program measures one case at a time, and what it counted is put together here."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tunectl.experiments.case_by_case import Takes, case_document, measured_cases
from tunectl.experiments.pair_link import SMALLEST, Asked, Link
from tunectl.experiments.pair_placement import Placed, place
from tunectl.experiments.pair_request import BUSY_POLL_US
from tunectl.experiments.wake_cases import TIMERS, Planned, plan
from tunectl.experiments.wake_request import MESSAGES, WakeRequest
from tunectl.host.cpusets import CpuFacts

_CASE_S = 0.1  # beyond its schedule, mostly to find out the counter's rate
_GRACE_S = 60.0


def far_words(said: Sequence[str]) -> list[str]:
    """The arguments of the other host's program, made of the words that _measured() sends. ValueError for others."""
    mechanism, way, *numbers = said
    busy_poll_us, message_bytes, fds = map(int, numbers)
    case = ["--case", f"{mechanism}:{way}:0", "--busy-poll-us", str(busy_poll_us)]
    return [*case, "--bytes", str(message_bytes), "--fds", str(fds)]


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
        return measured_cases(self.cases, partial(self._measured, link), self._takes, self.tell)

    def _takes(self, case: Planned) -> Takes:
        warm_up_s = case.idle_ms / 1e3 * (case.mechanism in TIMERS)  # its first expiration
        return Takes(warm_up_s, _CASE_S + (self.request.messages or MESSAGES) * case.idle_ms / 1e3)

    def _measured(self, link: Link | None, case: Planned) -> dict[str, Any]:
        if link is None:
            return self._run(case)
        asked = self.request
        size = asked.message_bytes or SMALLEST
        words = (case.mechanism, case.way, str(asked.busy_poll_us or BUSY_POLL_US), str(size), str(asked.fds or 1))
        with link.case(Asked(case.mechanism, size, words)) as connection:
            fd = connection.fileno()
            return self._run(case, ("--socket", str(fd), "--peer-hz", str(link.peer.hz)), keep=fd)

    def _run(self, case: Planned, words: Sequence[str] = (), keep: int | None = None) -> dict[str, Any]:
        argv = ["wake", "--cpus", self.placed.text, "--case", case.text, *self.request.words(), *words]
        return case_document(argv, self.placed.cpus, 2 * self._takes(case).total + _GRACE_S, keep)
