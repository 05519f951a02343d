"""What `tunectl-probe wake` counted, as types; which cases are void, and the cells, speed-ups and warnings. Pure."""

import errno
import os
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from tunectl.experiments import pair
from tunectl.experiments.frame import Case, Count, Experiment, Judged, Lists, Values
from tunectl.experiments.tick_figures import Figures, halved, ratio
from tunectl.shapes import PERCENTILES, Maybe, about
from tunectl.shapes import Case as WakeCase
from tunectl.wording import nanoseconds, percent

TIMERS = ("timerfd", "clock_nanosleep")  # the kernel sends, by a schedule
_RAN, _SLICES = 7, 9  # fields of a cpu line of /proc/schedstat (Documentation/scheduler/sched-stats.rst)
_IDLE, _STEAL = 4, 8  # of /proc/stat (proc(5)): idle, iowait, irq, softirq, steal; the rest is tasks' time
UNREADY_MOST = 0.01  # of the messages, that may come before a receiver with a working set waits again
_STEPS_OF_DOUBT = 2  # of a time that is counted in steps: one at each end
_SWITCH_NS = 10_000  # with each run of ours goes work of the kernel that it charges to nobody, or to the CPU alone


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What the kernel said at one moment, as it stood."""

    ticks: Count
    tids: Annotated[tuple[Count, Count, Count], about("The receiver, the sender, and the program's main thread.")]
    files: Annotated[
        dict[str, str], about("/proc/schedstat, else /proc/stat, and the schedstat of these threads, by path.")
    ]

    def line(self, path: str, cpu: int) -> str:
        """The line of a CPU in one of the first two; "" where there is none."""
        found = (line for line in self.files.get(path, "").splitlines() if line.startswith(f"cpu{cpu} "))
        return next(found, "")

    @property
    def threads(self) -> list[str]:
        """/proc/PID/task/TID/schedstat of each, "" where it could not be read."""
        return [self.files.get(f"/proc/self/task/{tid}/schedstat", "") for tid in self.tids]


class RawCase(Case, msgspec.Struct, frozen=True, kw_only=True):
    """One mechanism and wait method at one idle time."""

    shape = WakeCase
    asked = ("mechanism", "waiting", "way", "idle_ms")
    mechanism: str
    waiting: Literal["sleeping", "spinning", "busy-poll"]
    way: str
    idle_ms: Annotated[float, Meta(ge=0)]
    sent: Count = 0
    arrived: Annotated[Count, about("Different messages.")] = 0
    duplicates: Count = 0
    reordered: Count = 0
    negative: Annotated[Count, about("Received before sent, by the counters of the two CPUs; not in the values.")] = 0
    unready: Annotated[Count, about("Sent while the receiver still wrote to its working set (--dirty-kib).")] = 0
    late_expirations: Annotated[Count, about("Of a timer: had passed before the thread came to wait for them.")] = 0
    period_ticks: Count = 0
    page_faults: Count = 0
    preemptions: Annotated[Count, about("Of the receiver.")] = 0
    receiver_ns: Annotated[Count, about("CPU time of the receiver, from the last warm-up to the end.")] = 0
    receiver_ticks: Annotated[Count, about("How long that was.")] = 0
    napi_id: Count = 0
    has_no_napi: Annotated[bool, about("busy-poll, and no device queue feeds the socket: nothing was sent.")] = False
    failed: Literal["", "sending", "receiving"] = ""
    errno: Count = 0
    before: Annotated[Account | None, about("Around all of it.")] = None
    after: Account | None = None
    delay: Annotated[Values, about("received - sent; of a timer, from when it was due")] = []
    after_send: Annotated[Values, Maybe, about("received - sent_after")] = []
    send_call: Annotated[Values, Maybe, about("sent_after - sent")] = []
    late: Annotated[Values, Maybe, about("sent - due")] = []
    far: Annotated[Values, Maybe, about("Between hosts: how long the other one had the message.")] = []
    away: Annotated[Values, Maybe, about("Between hosts: the rest of the delay.")] = []

    def words(self) -> list[str]:
        """The program's arguments that say which case it is."""
        return ["--case", f"{self.mechanism}:{self.way}:{self.idle_ms!r}"]


class RawWake(pair.PairRun[RawCase], frozen=True, kw_only=True):
    """What `tunectl-probe wake` counted, in ticks of its counter; docs/probe-wake.md has the definitions."""

    busy_poll_us: pair.BusyPoll
    messages: Annotated[Count, about("Asked for in each case.")]
    bytes: Annotated[Count, about("Of each message.")]
    fds: Annotated[Count, about("In each poll and epoll set; all but the receiver's own are idle.")]
    dirty_kib: Annotated[Count, about("The receiver wrote to so much memory after each message; 0: to none.")]
    has_warm_sender: bool


def _lists(case: RawCase) -> Lists:
    others = {name: (getattr(case, name), None) for name in ("after_send", "send_call", "late", "far", "away")}
    return {"delay": (case.delay, case.arrived - case.negative), **others}


class Occupancy(NamedTuple):
    """Of all tasks, and of them the probe's own threads; `*_slices`: how often they were put there, None: unknown."""

    elapsed_ns: float
    cpu_ns: float
    own_ns: int
    own_slices: int
    cpu_slices: int | None
    step_ns: float  # cpu_ns is counted in steps of this; 0: in ns


def occupancy(case: RawCase, run: RawWake) -> Occupancy | None:
    """None where the kernel counted nothing, or what it said cannot be read."""
    before, after = case.before, case.after
    if before is None or after is None or after.ticks <= before.ticks:
        return None
    elapsed_ns = (after.ticks - before.ticks) * 1e9 / run.clock.hz
    ran, slices = (last - first for first, last in zip(_own(before, run), _own(after, run), strict=True))
    first, last = (_fields(account.line("/proc/schedstat", run.cpus[1])) for account in (before, after))
    if min(len(first), len(last)) > _SLICES:
        counted = last[_SLICES] - first[_SLICES]
        return Occupancy(elapsed_ns, last[_RAN] - first[_RAN], ran, slices, counted, 0)
    first, last = (_fields(account.line("/proc/stat", run.cpus[1])) for account in (before, after))
    if min(len(first), len(last)) <= _STEAL:
        return None
    step_ns = 1e9 / run.facts.user_hz
    others = sum(last[_IDLE : _STEAL + 1]) - sum(first[_IDLE : _STEAL + 1])
    # Idle time is counted to the ns where the kernel stops its tick, while tasks are charged whole ticks.
    return Occupancy(elapsed_ns, elapsed_ns - others * step_ns, ran, slices, None, step_ns)


def _own(account: Account, run: RawWake) -> tuple[int, int]:
    """CPU time and runs of our threads that are on the receiver's CPU."""
    is_one_cpu = run.cpus[0] == run.cpus[1]
    present = 1 if not is_one_cpu else 3 if run.facts.shares_main else 2
    counts = [[0, *_fields(f"- {line}")[1:]] for line in account.threads[:present]]  # ran, waited, slices
    return sum(of[1] for of in counts if len(of) > 3), sum(of[3] for of in counts if len(of) > 3)


def _fields(line: str) -> list[int]:
    """The numbers behind the first word, each at its place from 1; empty where one is none."""
    words = line.split()[1:]
    return [0, *map(int, words)] if words and all(word.isascii() and word.isdigit() for word in words) else []


def why_void(case: RawCase, run: RawWake) -> str:
    """Why the delays of a measured case are no result; "" where they are one."""
    receiver = run.cpus[1]
    if case.waiting == "spinning":
        return pair.why_no_spinner(pair.receiver_share(case, run.clock.hz), receiver) or _why_unready(case, run)
    met = met_others(case, run)
    if met is None or met <= pair.OTHERS_MOST:
        return _why_unready(case, run)
    shown, most = percent(100 * met), percent(100 * pair.OTHERS_MOST)
    return (
        f"void: in {shown} of the messages another task ran on CPU {receiver} (it may in {most}): "
        "the delays are not those of a sleeper that has its CPU to itself"
    )


def _why_unready(case: RawCase, run: RawWake) -> str:
    if case.unready <= UNREADY_MOST * case.sent:
        return ""
    return (
        f"void: {case.unready} of {case.sent} messages came while the receiver still wrote to its working set of "
        f"{run.dirty_kib:,} KiB: ask for a longer --idle-ms, or a smaller --dirty-kib"
    )


def met_others(case: RawCase, run: RawWake) -> float | None:
    """The share of the messages that were under way while another task had a sleeper's CPU; None where unknown.

    At least as many as it was preempted by one; on a CPU for both the sender preempts it, too, and that is no other.
    A run of length L meets a message that is under way for F with the chance (L + F) / T, so all of them meet the share
    (sum of L + runs * F) / T. No more messages than there were runs, where the kernel counts them.
    """
    is_alone = run.cpus[0] != run.cpus[1] or case.mechanism in TIMERS
    lost_cpu = min(case.preemptions / case.sent, 1.0) if case.sent and is_alone else 0.0
    account = occupancy(case, run)
    if account is None:
        return lost_cpu or None
    slices = account.cpu_slices
    runs = None if slices is None else max(slices - account.own_slices, 0)  # of others, on this CPU
    if runs is not None and runs <= pair.OTHERS_MOST * case.sent:
        return lost_cpu
    doubt_ns = _STEPS_OF_DOUBT * account.step_ns + _SWITCH_NS * account.own_slices
    others_ns = max(account.cpu_ns - account.own_ns - doubt_ns, 0)
    delays = Figures(case.delay, run.clock.hz)
    flight_ns = delays.ns(delays.at("50")) if delays.n else 0
    met = (others_ns + (runs or 0) * flight_ns) / account.elapsed_ns
    return min(max(met, lost_cpu), 1.0)


def step_of_doubt_ns(case: RawCase, run: RawWake) -> float | None:
    """Of a sleeper's case too short for the steps in which the kernel counts who had the CPU: such a step; 0 where it
    counts nothing. None for all other cases.
    """
    if case.waiting == "spinning" or not case.delay:
        return None
    account = occupancy(case, run)
    if account is None:
        return 0.0
    return account.step_ns if _STEPS_OF_DOUBT * account.step_ns > pair.OTHERS_MOST * account.elapsed_ns else None


def run_warnings(run: RawWake) -> Iterator[str]:
    """About the whole run."""
    is_spun = any(case.waiting == "spinning" and not case.idle_ms for case in run.cases)
    slack = []
    if run.facts.timer_slack_ns > 1 and any(case.mechanism == "clock_nanosleep" for case in run.cases):
        how_late = nanoseconds(run.facts.timer_slack_ns)
        slack = [f"timer slack is {how_late}: a timer may expire so much late without being late"]
    virtual = "waking an idle CPU goes through the hypervisor"
    yield from pair.pair_warnings(run, virtual, " in the cases without idle time" if is_spun else None, slack)
    steps = [step for case in run.cases if (step := step_of_doubt_ns(case, run)) is not None]
    if steps:  # sleepers whose CPU somebody else may have had, without anybody knowing
        how = f"only in steps of {nanoseconds(max(steps))}" if max(steps) else "not at all"
        yield (
            f"this kernel counts {how} who has CPU {run.cpus[1]} (no /proc/schedstat): in {len(steps)} of the sleeping "
            "cases another task there may have gone unseen"
        )


def _cause(case: RawCase, run: RawWake) -> tuple[str, str]:
    """What makes a case void whose threads no cpu.max stopped, and what would help."""
    if _why_unready(case, run):
        why = "messages came while the receiver still wrote to its working set"
        return why, "a longer --idle-ms, or a smaller --dirty-kib"
    looks = f"what has CPU {run.cpus[1]}: `tunectl probe jitter --attribute`"
    return "other tasks had the receiver's CPU", f"--cpus with one that the kernel isolates ({looks})"


def case_warnings(case: RawCase, run: RawWake) -> Iterator[str]:
    """About one case that was measured."""
    lost = case.sent - case.arrived
    yield from pair.ended_by(case.failed, case.errno)
    if case.sent < run.messages:
        yield f"{case.sent} of {run.messages} messages were sent"
    if lost > 0:
        yield f"{lost} of {case.sent} messages were lost"
    if case.duplicates:
        yield f"{case.duplicates} messages came twice or were no messages of this case"
    if case.reordered:
        yield f"{case.reordered} messages came after a later one"
    if case.negative:
        yield f"{case.negative} messages were received before they were sent, by the two CPUs' counters: left out"
    yield from pair.unkept(Figures(case.late, run.clock.hz))
    if case.late_expirations:
        yield (
            f"{case.late_expirations} of {case.sent} expirations had passed before the thread came to wait for them: "
            "it was late for longer than a period"
        )
    if case.page_faults:
        yield f"the probe itself took {case.page_faults} page faults"
    yield from pair.preempted("receiver", case.preemptions)


def _why_nothing(case: RawCase) -> str:
    if sum(case.delay[1::2]):
        return ""
    if case.has_no_napi:
        return (
            "the socket's NAPI id is 0: no device queue that the kernel could poll feeds it (loopback has none), "
            "so SO_BUSY_POLL would change nothing"
        )
    if case.failed:
        what = "the queue stayed full for a second" if case.errno == errno.EAGAIN else os.strerror(case.errno)
        return f"{case.failed} failed: {what}"
    return "every message was lost" if case.sent else "interrupted before the first message"


def _counted(run: RawWake, judged: Judged) -> dict[str, Any]:
    case, hz = judged.case, run.clock.hz
    delays = judged.figures(case.delay, hz)
    spreads = {
        "after_send_ns": case.after_send,
        "send_call_ns": case.send_call,
        "late_ns": case.late,
        "far_ns": case.far,
        "one_way_estimate_ns": halved(case.away),  # nothing says that both directions take the same
    }
    return {
        "n": delays.n,
        "sent": case.sent,
        "lost": max(case.sent - case.arrived, 0),
        "duplicates": case.duplicates,
        "reordered": case.reordered,
        "late_expirations": case.late_expirations if case.mechanism in TIMERS else None,
        **delays.summary_ns(),
        **{name: judged.figures(values, hz).spread_ns() for name, values in spreads.items()},
        "period_ns": delays.ns(case.period_ticks),
        "receiver_cpu_percent": None if _why_nothing(case) else round(100 * pair.receiver_share(case, hz), 2),
        "napi_id": case.napi_id,
        "histogram": delays.histogram_ns(),
    }


def speedups(run: RawWake, judgements: Sequence[Judged]) -> list[dict[str, Any]]:
    """How many times shorter than asleep, for each case that has figures and did not sleep.

    Asleep is the first case that slept, of the same mechanism and idle time, and has figures.
    """
    rows = []
    cases = [judged.case for judged in judgements if judged.has_figures]
    asleep = {(case.mechanism, case.idle_ms): case for case in reversed(cases) if case.waiting == "sleeping"}
    for case in cases:
        over = asleep.get((case.mechanism, case.idle_ms))
        if case.waiting == "sleeping" or over is None:
            continue
        short, long = (Figures(each.delay, run.clock.hz) for each in (case, over))
        rows.append(
            {
                "mechanism": case.mechanism,
                "idle_ms": case.idle_ms,
                "waiting": case.waiting,
                "way": case.way,
                "over": over.way,
                "mean": ratio(long.mean, short.mean),
                "percentiles": {name: ratio(long.at(name), short.at(name)) for name in PERCENTILES},
                "max": ratio(long.most, short.most),
            }
        )
    return rows


WAKE = Experiment(
    "wake",
    RawWake,
    kept=("messages", "bytes", "fds", "dirty_kib", "fifo_priority", "busy_poll_us", "has_warm_sender"),
    lists=_lists,
    why_nothing=_why_nothing,
    why_void=why_void,
    counted=_counted,
    run_warnings=run_warnings,
    warnings=case_warnings,
    cause=_cause,
)


def explained_wake(raw: dict[str, Any], peer: pair.Peer | None = None) -> dict[str, Any]:
    """The tunectl.probe.wake/1 document of what `tunectl-probe wake` counted; `peer` is the other host. Pure."""
    run = WAKE.read(raw)
    found = WAKE.judged(run)
    return {
        **WAKE.opening(raw),
        "timer_slack_ns": run.facts.timer_slack_ns,
        "clock": run.clock.shown(raw["clock"]),
        "peer": peer._asdict() if peer else None,
        "warnings": list(run_warnings(run)),
        "no_result": WAKE.no_result(run, found),
        "cells": WAKE.cells(run, found, is_round_trip=peer is not None),
        "speedups": speedups(run, found),
    }
