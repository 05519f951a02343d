"""A run of `feed`: the native program measures one case at a time, and one of them again without time stamps."""

from __future__ import annotations

import os
from collections.abc import Callable
from tempfile import NamedTemporaryFile
from typing import Any

from tunectl.errors import TunectlError
from tunectl.host.cpusets import CpuFacts
from tunectl.probe.case_by_case import measured_cases
from tunectl.probe.feed_cases import Planned, plan
from tunectl.probe.feed_request import FeedRequest
from tunectl.probe.pair_placement import Placed, place
from tunectl.probe.runner import document_of, start

_CASE_S = 0.5  # beyond its schedule: the counter's rate, the warm-up
_GRACE_S = 60.0


class FeedRun:
    """The cases of a request, and the documents that they make. UsageError for a request that is none."""

    def __init__(self, request: FeedRequest, facts: CpuFacts, tell: Callable[[str], None]) -> None:
        self.request, self.tell = request, tell
        self.placed: Placed = place(request.cpus, request.among, facts, frozenset(os.sched_getaffinity(0)))
        self.cases: list[Planned] = plan(request, self.placed)
        self.notes: list[str] = [self.placed.note] if self.placed.note else []

    def measure(self) -> dict[str, Any]:
        """What was counted, as if one run of the program had counted it. TunectlError where nothing was."""
        return measured_cases(self.cases, self._measured, self._scheduled_s, self.tell)

    def without_stamps(self, raw: dict[str, Any]) -> dict[str, Any] | None:
        """The document of the first case that was stamped in `raw`, once more and without stamps.

        None where no case was, and where the run was interrupted; where it failed `notes` has the reason.
        """
        stamped = [case for case, cell in zip(self.cases, raw["cells"], strict=True) if cell.get("stamped")]
        if not stamped or raw["interrupted"]:
            return None
        self.tell(f"{stamped[0].title}: once more without time stamps, {self._scheduled_s(stamped[0]):.0f} s left")
        try:
            document = self._run(stamped[0], is_stamped=False)
        except (TunectlError, KeyboardInterrupt) as error:
            self.notes.append(f"what time stamps cost was not measured: {error or 'interrupted'}")
            return None
        if document["interrupted"]:
            self.notes.append("what time stamps cost was not measured: interrupted")
            return None
        return document

    def _scheduled_s(self, _: Planned) -> float:
        return _CASE_S + self.request.duration_s

    def _measured(self, case: Planned) -> dict[str, Any]:
        return self._run(case, is_stamped=self.request.stamps != "off")

    def _run(self, case: Planned, is_stamped: bool) -> dict[str, Any]:
        argv = ["feed", "--cpus", self.placed.text, *case.words(), *self.request.words(is_stamped)]
        with NamedTemporaryFile("w", prefix="tunectl-", suffix=".plan") as file:
            if self.request.replay:
                file.write(self.request.replay.lines)
                file.flush()
                argv += ["--plan", file.name]
            done = start(argv, self.placed.cpus, timeout_s=2 * self._scheduled_s(case) + _GRACE_S)
        measured: dict[str, Any] = document_of(done)
        return measured
