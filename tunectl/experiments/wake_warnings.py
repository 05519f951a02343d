"""What makes a run of `wake`, or one of its cases, mean less than it seems to: sentences for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tunectl.experiments.pair_warnings import (
    clock,
    ended_by,
    ended_early,
    fifo,
    machine,
    placement,
    preempted,
    two_spinners,
    unkept,
)
from tunectl.experiments.tick_figures import Figures
from tunectl.experiments.wake_facts import RawCase, RawWake
from tunectl.experiments.wake_void import step_of_doubt_ns


def run_warnings(run: RawWake) -> list[str]:
    """About the whole run."""
    return [
        *ended_early(run),
        *placement(run),
        *_two_spinners(run),
        *fifo(run),
        *clock(run),
        *_timer_slack(run),
        *machine(run, "waking an idle CPU goes through the hypervisor"),
        *_unseen(run),
    ]


def _two_spinners(run: RawWake) -> Iterator[str]:
    if any(case.waiting == "spinning" and not case.idle_ms for case in run.cases):
        yield from two_spinners(run, " in the cases without idle time")


def _timer_slack(run: RawWake) -> Iterator[str]:
    if run.facts.timer_slack_ns > 1 and any(case.mechanism == "clock_nanosleep" for case in run.cases):
        yield f"timer slack is {run.facts.timer_slack_ns:,} ns: a timer may expire so much late without being late"


def _unseen(run: RawWake) -> Iterator[str]:
    """Sleepers whose CPU somebody else may have had, without anybody knowing."""
    steps = [step for case in run.cases if (step := step_of_doubt_ns(case, run)) is not None]
    if not steps:
        return
    how = f"only in steps of {max(steps) / 1e6:.0f} ms" if max(steps) else "not at all"
    yield (
        f"this kernel counts {how} who has CPU {run.cpus[1]} (no /proc/schedstat): in {len(steps)} of the sleeping "
        "cases another task there may have gone unseen"
    )


def case_warnings(case: RawCase, run: RawWake) -> list[str]:
    """About one case that was measured."""
    return [*_of_case(case, run), *_of_receiver(case)]


def _of_case(case: RawCase, run: RawWake) -> Iterator[str]:
    lost = case.sent - case.arrived
    yield from ended_by(case.failed, case.errno)
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
    yield from unkept(Figures(case.late, run.clock.hz))


def _of_receiver(case: RawCase) -> Iterator[str]:
    if case.late_expirations:
        yield (
            f"{case.late_expirations} of {case.sent} expirations had passed before the thread came to wait for them: "
            "it was late for longer than a period"
        )
    if case.page_faults:
        yield f"the probe itself took {case.page_faults} page faults"
    yield from preempted("receiver", case.preemptions)
