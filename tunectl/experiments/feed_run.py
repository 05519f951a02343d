"""A run of `feed`: the native program measures one case at a time, and one of them again without time stamps."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple

from tunectl.errors import TunectlError
from tunectl.experiments.case_by_case import Takes, case_document, measured_cases
from tunectl.experiments.feed_cases import Planned, plan
from tunectl.experiments.feed_request import FeedRequest
from tunectl.experiments.feed_stamps import OFF, choose
from tunectl.experiments.pair_link import SMALLEST, Asked, Link
from tunectl.experiments.pair_placement import Placed, place
from tunectl.experiments.pair_request import BUSY_POLL_US
from tunectl.host.cpusets import CpuFacts
from tunectl.host.netdrops import read_nic_drops, read_softnet_drops
from tunectl.host.sysroot import Sysroot
from tunectl.host.timestamping import read_stamping

_CASE_S = 0.5  # beyond its schedule: the counter's rate
_GRACE_S = 60.0


class Way(NamedTuple):
    """To another host and back."""

    link: Link
    interface: str  # of this host


def far_words(said: Sequence[str]) -> list[str]:
    """The arguments of the other host's program, made of the words that _measured() sends. ValueError for others."""
    transport, waiting, busy_poll_us = said
    # Bytes go back as they came: of the formats, this is the one that every transport takes.
    case = ["--transport", transport, "--format", "binary", "--waiting", waiting]
    return [*case, "--busy-poll-us", str(int(busy_poll_us))]


class FeedRun:
    """The cases of a request, and the documents that they make. UsageError for a request that is none."""

    def __init__(self, request: FeedRequest, facts: CpuFacts, tell: Callable[[str], None]) -> None:
        self.request, self.tell = request, tell
        self.placed: Placed = place(request.cpus, request.among, facts, frozenset(os.sched_getaffinity(0)))
        self.cases: list[Planned] = plan(request, self.placed)
        self.notes: list[str] = [self.placed.note] if self.placed.note else []

    def measure(self, way: Way | None = None) -> dict[str, Any]:
        """What was counted, as if one run of the program had counted it. TunectlError where nothing was."""
        stamps = choose(self.request.stamps, read_stamping(Sysroot(), way.interface) if way else None)
        self.notes += [stamps.note] * bool(stamps.note)
        again = next((case for case in self.cases if _may_be_stamped(case)), None) if stamps.words != OFF else None
        after_s = self._takes(again).total if again else 0.0
        return measured_cases(self.cases, partial(self._measured, way, stamps.words), self._takes, self.tell, after_s)

    def without_stamps(self, raw: dict[str, Any], way: Way | None = None) -> dict[str, Any] | None:
        """The document of the first case that was stamped in `raw`, once more and without stamps.

        None where no case was, and where the run was interrupted; where it failed `notes` has the reason.
        """
        stamped = [case for case, cell in zip(self.cases, raw["cells"], strict=True) if cell.get("stamped")]
        if not stamped or raw["interrupted"]:
            return None
        self.tell(f"{stamped[0].title}: once more without time stamps, {self._takes(stamped[0]).total:.0f} s left")
        try:
            document = self._measured(way, OFF, stamped[0])
        except (TunectlError, KeyboardInterrupt) as error:
            self.notes.append(f"what time stamps cost was not measured: {error or 'interrupted'}")
            return None
        if document["interrupted"]:
            self.notes.append("what time stamps cost was not measured: interrupted")
            return None
        return document

    def _takes(self, case: Planned) -> Takes:
        return Takes(case.warm_up_s, _CASE_S + self.request.duration_s)

    def _measured(self, way: Way | None, stamps: Sequence[str], case: Planned) -> dict[str, Any]:
        if way is None:
            return self._counted(case, stamps)
        words = (case.transport, case.waiting, str(self.request.busy_poll_us or BUSY_POLL_US))
        with way.link.case(Asked(case.transport, SMALLEST, words)) as connection:
            return self._counted(case, stamps, connection.fileno(), way.interface)

    def _counted(
        self, case: Planned, stamps: Sequence[str], fd: int | None = None, nic: str | None = None
    ) -> dict[str, Any]:
        """With what the host dropped meanwhile."""
        before = _host_drops(nic)
        measured = self._run(case, [*stamps, *(("--socket", str(fd)) if fd is not None else ())], fd)
        drops = {name: _grown(before[name], after) for name, after in _host_drops(nic).items()}
        for cell in measured["cells"]:
            if "drops" in cell:
                cell["drops"] |= drops
        return measured

    def _run(self, case: Planned, words: Sequence[str], keep: int | None) -> dict[str, Any]:
        argv = ["feed", "--cpus", self.placed.text, *case.words(), *self.request.words(), *words]
        with NamedTemporaryFile("w", prefix="tunectl-", suffix=".plan") as file:
            if self.request.replay:
                file.write(self.request.replay.lines)
                file.flush()
                argv += ["--plan", file.name]
            return case_document(argv, self.placed.cpus, 2 * self._takes(case).total + _GRACE_S, keep)


def _may_be_stamped(case: Planned) -> bool:
    """What the kernel decrypts has no receive stamps."""
    return not case.reason and case.tls == "off"


def _host_drops(nic: str | None) -> dict[str, int | None]:
    root = Sysroot()
    return {"softnet": read_softnet_drops(root), "nic": read_nic_drops(root, nic) if nic else None}


def _grown(before: int | None, after: int | None) -> int | None:
    """None where somebody did not count, or began anew: a driver that was loaded again."""
    return None if before is None or after is None or after < before else after - before
