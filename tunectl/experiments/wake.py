"""`wake`, spinning against sleeping: what is asked for, which cases that is, and how each is measured."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from tunectl.errors import UsageError
from tunectl.experiments.frame import (
    Takes,
    case_document,
    chosen,
    listed,
    measured_cases,
    within,
)
from tunectl.experiments.link import SMALLEST, Asked, Link, split_address
from tunectl.experiments.pair import BUSY_POLL_US, PairRequest, Placed, given, place
from tunectl.experiments.wake_cells import TIMERS, explained_wake
from tunectl.host.cpusets import CpuFacts, read_scope_facts
from tunectl.host.sysroot import Sysroot
from tunectl.shapes import Case, typed

_USUAL_MESSAGES = 99
SLEEPING, SPINNING, BUSY_POLL = "sleeping", "spinning", "busy-poll"
WAYS = {
    "block": SLEEPING,
    "poll": SLEEPING,
    "epoll": SLEEPING,
    "poll0": SPINNING,
    "epoll0": SPINNING,
    "nonblock": SPINNING,
    "minimal": SPINNING,
    "busy-poll": BUSY_POLL,
}
BETWEEN_HOSTS = ("tcp", "udp")
MESSAGES = ("channel", "eventfd", "pipe", "unix", *BETWEEN_HOSTS)  # the default table
MECHANISMS = (*MESSAGES, "eventloop", *TIMERS)
_GROUPS = {"messages": MESSAGES, "timers": TIMERS}
_POLLING = ("poll", "epoll", "poll0", "epoll0")
_LEAST_IDLES = "0,1,10,100"
_LONGEST_MS = 60_000.0
_CASE_S = 0.1  # beyond its schedule, mostly to find out the counter's rate


@dataclass(frozen=True)
class WakeRequest(PairRequest):
    """The options of `tunectl probe wake`, lists as text; None leaves each at its default."""

    mechanisms: str | None = None
    waiting: str | None = None
    idle_ms: str | None = None
    messages: int | None = None
    message_bytes: int | None = None
    fds: int | None = None
    dirty_kib: int | None = None
    cold_sender: bool = False

    def words(self) -> Iterator[str]:
        """The program's arguments that are the same for each case."""
        yield from given(messages=self.messages, bytes=self.message_bytes, fds=self.fds)
        yield from given(dirty_kib=self.dirty_kib, cold_sender=self.cold_sender)
        yield from self.pair_words()


class Planned(NamedTuple):
    """A case, and why it cannot be measured; "" where it can."""

    mechanism: str
    way: str
    idle_ms: float
    reason: str = ""

    @property
    def text(self) -> str:
        """As the native program's option --case has it."""
        return f"{self.mechanism}:{self.way}:{self.idle_ms!r}"

    @property
    def title(self) -> str:
        """As the progress and all pages have it."""
        return typed({**self.cell, "n": 0, "max_ns": None, "histogram": []}, Case).label

    @property
    def cell(self) -> dict[str, Any]:
        """As the cell of a raw document in which nothing was counted."""
        return {
            "mechanism": self.mechanism,
            "waiting": WAYS[self.way],
            "way": self.way,
            "idle_ms": self.idle_ms,
            "reason": self.reason,
        }


def plan(request: WakeRequest, placed: Placed) -> list[Planned]:
    """The cases of a request, in their order. UsageError where it names what there is not."""
    usual = ",".join(BETWEEN_HOSTS) if request.connect else "messages"
    asked = usual if request.mechanisms is None else request.mechanisms
    mechanisms = chosen("--mechanisms", asked, MECHANISMS, _GROUPS)
    if request.connect and not set(mechanisms) <= set(BETWEEN_HOSTS):
        raise UsageError("--mechanisms: only tcp and udp lead to the host of --connect")
    groups = {kind: tuple(way for way in WAYS if WAYS[way] == kind) for kind in WAYS.values()}
    ways = chosen("--waiting", ",".join(WAYS) if request.waiting is None else request.waiting, WAYS, groups)
    cases = [
        Planned(mechanism, way, idle_ms, _lack(mechanism, way, idle_ms))
        for mechanism in mechanisms
        for way in ways
        for idle_ms in _idles(_LEAST_IDLES if request.idle_ms is None else request.idle_ms)
    ]
    if request.fifo and placed.sender == placed.receiver and not request.connect:
        cases = [_without_starving(case, placed.receiver) for case in cases]
    return cases


def _idles(text: str) -> list[float]:
    expected = f"milliseconds from 0 to {_LONGEST_MS:.0f}, like {_LEAST_IDLES}"
    return listed("--idle-ms", text, lambda word: within(float(word), 0, _LONGEST_MS), expected, once=False)


def _lack(mechanism: str, way: str, idle_ms: float) -> str:
    if way == BUSY_POLL and mechanism not in BETWEEN_HOSTS:
        return "no network device feeds it: there is nothing the kernel could poll"
    if mechanism == "channel" and way in _POLLING:
        return "there is no descriptor to poll"
    if mechanism == "clock_nanosleep" and way != "block":
        return "it is a call that sleeps, and nothing else"
    if mechanism == "eventloop" and way not in ("epoll", "epoll0"):
        return "an event loop waits by epoll or epoll0"
    if mechanism in TIMERS and not idle_ms:
        return "a timer without a period does not expire"
    return ""


def _without_starving(case: Planned, cpu: int) -> Planned:
    if case.reason or WAYS[case.way] != SPINNING or case.mechanism in TIMERS:
        return case
    return case._replace(
        reason=f"a SCHED_FIFO spinner on CPU {cpu} would starve the sender, which feeds it from the same CPU"
    )


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
        return Takes(warm_up_s, _CASE_S + (self.request.messages or _USUAL_MESSAGES) * case.idle_ms / 1e3)

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
        return case_document(argv, self.placed.cpus, self._takes(case), keep)


def run_wake(request: WakeRequest, on_progress: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """The tunectl.probe.wake/1 document; `on_progress` is handed a line for each case.

    Ctrl-C ends the measuring early, and the result so far comes back with `interrupted` true. TunectlError with the
    program's own reason when it fails, or where the other host cannot be reached; UsageError for a wrong request.
    """
    if request.connect:
        split_address("--connect", request.connect)
    run = WakeRun(request, read_scope_facts(Sysroot()), on_progress)
    if request.connect:
        with closing(Link("wake", request.connect)) as link:
            result = explained_wake(run.measure(link), link.peer)
    else:
        result = explained_wake(run.measure(None))
    result["warnings"] = [*filter(None, [run.placed.note]), *result["warnings"]]
    return result
