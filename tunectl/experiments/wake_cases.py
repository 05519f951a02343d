"""Which cases `wake` measures: every mechanism by every way, at every idle time, and why some cannot be. Pure."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tunectl.errors import UsageError
from tunectl.experiments.case_by_case import chosen
from tunectl.experiments.pair_placement import Placed
from tunectl.experiments.wake_request import WakeRequest
from tunectl.shapes import Case, typed

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
TIMERS = ("timerfd", "clock_nanosleep")  # the kernel sends, by a schedule
MESSAGES = ("channel", "eventfd", "pipe", "unix", *BETWEEN_HOSTS)  # the default table
MECHANISMS = (*MESSAGES, "eventloop", *TIMERS)
_GROUPS = {"messages": MESSAGES, "timers": TIMERS}
_POLLING = ("poll", "epoll", "poll0", "epoll0")
_LEAST_IDLES = "0,1,10,100"
_MOST_IDLES, _LONGEST_MS = 16, 60_000.0


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
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        found = [math.nan]
    if not all(0 <= ms <= _LONGEST_MS for ms in found):
        limits = f"expected milliseconds from 0 to {_LONGEST_MS:.0f}, like {_LEAST_IDLES}"
        raise UsageError(f"--idle-ms {text}: {limits}")
    if len(found) > _MOST_IDLES:
        raise UsageError(f"--idle-ms {text}: at most {_MOST_IDLES} of them")
    return found


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
