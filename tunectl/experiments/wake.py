"""`wake`, spinning against sleeping: what is asked for, which cases that is, and how each is measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec.structs import replace

from tunectl.experiments import ends
from tunectl.experiments.frame import Takes, chosen, listed, within
from tunectl.experiments.link import SMALLEST, TYPES, Asked, Link, linked, require_reach
from tunectl.experiments.wake_cells import TIMERS, RawCase, explained_wake
from tunectl.work import Tell

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
MESSAGES = ("channel", "eventfd", "pipe", "unix", *TYPES)  # the default table
MECHANISMS = (*MESSAGES, "vsock", "eventloop", *TIMERS)
_GROUPS = {"messages": MESSAGES, "timers": TIMERS}
_POLLING = ("poll", "epoll", "poll0", "epoll0")
_LEAST_IDLES = "0,1,10,100"
_LONGEST_MS = 60_000.0
_CASE_S = 0.1  # beyond its schedule, mostly to find out the counter's rate


@dataclass(frozen=True)
class WakeRequest(ends.PairRequest):
    """The options of `tunectl probe wake`, lists as text; None leaves each at its default."""

    options = ("messages", "message_bytes", "fds", "dirty_kib", "cold_sender", "fifo", "busy_poll_us", "intrude")
    mechanisms: str | None = None
    waiting: str | None = None
    idle_ms: str | None = None
    messages: int | None = None
    message_bytes: int | None = None
    fds: int | None = None
    dirty_kib: int | None = None
    cold_sender: bool = False


def plan(request: WakeRequest, placed: ends.Placed) -> list[RawCase]:
    """The cases of a request, in their order. UsageError where it names what there is not."""
    usual = ",".join(TYPES) if request.connect else "messages"
    asked = usual if request.mechanisms is None else request.mechanisms
    mechanisms = chosen("--mechanisms", asked, MECHANISMS, _GROUPS)
    require_reach("--mechanisms", mechanisms, request)
    groups = {kind: tuple(way for way in WAYS if WAYS[way] == kind) for kind in WAYS.values()}
    ways = chosen("--waiting", ",".join(WAYS) if request.waiting is None else request.waiting, WAYS, groups)
    expected = f"milliseconds from 0 to {_LONGEST_MS:.0f}, like {_LEAST_IDLES}"
    text = _LEAST_IDLES if request.idle_ms is None else request.idle_ms
    idles = listed("--idle-ms", text, lambda word: within(float(word), 0, _LONGEST_MS), expected, once=False)
    cases = [
        RawCase.of(mechanism, WAYS[way], way, idle_ms, reason=_lack(mechanism, way, idle_ms))
        for mechanism in mechanisms
        for way in ways
        for idle_ms in idles
    ]
    if not request.fifo or len(placed.cpus) > 1 or request.connect:
        return cases
    (cpu,) = placed.cpus
    why = f"a SCHED_FIFO spinner on CPU {cpu} would starve the sender, which feeds it from the same CPU"
    starving = [not case.reason and case.waiting == SPINNING and case.mechanism not in TIMERS for case in cases]
    return [replace(case, reason=why) if starves else case for case, starves in zip(cases, starving, strict=True)]


def _lack(mechanism: str, way: str, idle_ms: float) -> str:
    if way == BUSY_POLL and mechanism not in TYPES:
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


def far_words(said: Sequence[str]) -> list[str]:
    """The arguments of the other host's program, made of the words that _measured() sends. ValueError for others."""
    mechanism, way, *numbers = said
    busy_poll_us, message_bytes, fds = map(int, numbers)
    case = ["--case", f"{mechanism}:{way}:0", "--busy-poll-us", str(busy_poll_us)]
    return [*case, "--bytes", str(message_bytes), "--fds", str(fds)]


def _takes(request: WakeRequest, case: RawCase) -> Takes:
    warm_up_s = case.idle_ms / 1e3 * (case.mechanism in TIMERS)  # its first expiration
    return Takes(warm_up_s, _CASE_S + (request.messages or _USUAL_MESSAGES) * case.idle_ms / 1e3)


def _measured(run: ends.CaseRun[RawCase], asked: WakeRequest, link: Link | None, case: RawCase) -> dict[str, Any]:
    """Over `link`, round trips."""
    if link is None:
        return run.counted(case)
    size = asked.message_bytes or SMALLEST
    words = (case.mechanism, case.way, str(asked.busy_poll_us or ends.BUSY_POLL_US), str(size), str(asked.fds or 1))
    with link.case(Asked(case.mechanism, size, words)) as connection:
        fd = connection.fileno()
        return run.counted(case, ("--socket", str(fd), "--peer-hz", str(link.peer.hz)), keep=fd)


def run_wake(request: WakeRequest, on_progress: Tell = lambda _: None) -> dict[str, Any]:
    """The tunectl.probe.wake/1 document. UsageError for a wrong request; else as CaseRun.measure() and linked()."""
    placed = ends.place_request(ends.SENDER_AND_RECEIVER, request)
    cases, takes = plan(request, placed), partial(_takes, request)
    run = ends.CaseRun("wake", request, placed, cases, takes, on_progress)
    with linked("wake", request.connect) as link:
        raw = run.measure(partial(_measured, run, request, link))
        return run.noted(explained_wake(raw, link.peer if link else None))
