"""What makes a run of `wake`, or one of its cases, mean less than it seems to: sentences for people. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterator

from tunectl.probe.jitter_warnings import DRIFT_PPM, is_slow
from tunectl.probe.wake_facts import RawCase, RawWake
from tunectl.probe.wake_figures import Figures
from tunectl.probe.wake_void import step_of_doubt_ns

_LATE_NS = 1_000_000  # a sender later than that did not keep its schedule


def run_warnings(run: RawWake) -> list[str]:
    """About the whole run."""
    return [
        *_ended_early(run),
        *_placement(run),
        *_two_spinners(run),
        *_fifo(run),
        *_clock(run),
        *_host(run),
        *_unseen(run),
    ]


def _ended_early(run: RawWake) -> Iterator[str]:
    if run.interrupted:
        yield "a signal ended the run early: cases are missing or hold fewer messages"


def _named(run: RawWake, sender: bool, receiver: bool) -> str:
    """`CPU 3`, `CPUs 2 and 3`, or "" for neither."""
    chosen = list(dict.fromkeys(cpu for cpu, is_meant in zip(run.cpus, (sender, receiver), strict=True) if is_meant))
    return f"CPU{'s' * (len(chosen) - 1)} {' and '.join(map(str, chosen))}" if chosen else ""


def _placement(run: RawWake) -> Iterator[str]:
    facts, (sender, receiver) = run.facts, run.cpus
    if shared := _named(run, not facts.cpus[0].is_isolated, not facts.cpus[1].is_isolated):
        yield f"not isolated: {shared}; other threads can be scheduled there, and delay a message"
    if sender == receiver:
        yield (
            f"sender and receiver share CPU {sender}: a spinner there holds up the thread that feeds it, and a sleeper "
            "is woken without leaving the CPU"
        )
    if run.is_one_core:
        yield f"sender and receiver (CPUs {sender} and {receiver}) share a physical core: they slow each other"
    if facts.shares_main and sender != receiver:
        yield (
            f"no CPU is left for the probe's main thread: it shares CPU {sender} with the sender, and nobody watches "
            "whether somebody else wants the two CPUs"
        )
    if slow := _named(run, is_slow(facts.cpus[0].governor), is_slow(facts.cpus[1].governor)):
        yield f"the frequency governor is not performance on {slow}"


def _two_spinners(run: RawWake) -> Iterator[str]:
    if run.is_one_core and any(case.waiting == "spinning" and not case.idle_ms for case in run.cases):
        yield (
            "two spinners share a physical core in the cases without idle time: the receiver, and the sender, which "
            "spins until the next message is due"
        )


def _fifo(run: RawWake) -> Iterator[str]:
    if not run.fifo_priority:
        return
    if run.cpus[0] == run.cpus[1]:
        yield (
            f"a SCHED_FIFO spinner would starve the sender on its own CPU {run.cpus[1]}: the spinning cases were "
            "left out"
        )
    if run.machine.rt_runtime_us >= 0:
        runtime_us, period_us = run.machine.rt_runtime_us, run.machine.rt_period_us
        yield (
            f"sched_rt_runtime_us is {runtime_us} of {period_us}: the kernel may take the CPU from a SCHED_FIFO "
            "spinner for some 50 ms of each second, and so may the deadline fair server"
        )


def _clock(run: RawWake) -> Iterator[str]:
    sender, receiver = run.cpus
    least, most = run.clock.offset_ticks or (0, 0)
    if not run.machine.has_stable_tsc:
        yield "this CPU's counter is not invariant (constant_tsc, nonstop_tsc): delays may be wrong"
    if least > most:
        yield (
            f"the counters of CPU {sender} and CPU {receiver} are not synchronised (no offset between them explains "
            "the stamps): delays are wrong"
        )
    elif least > 0 or most < 0:
        low, high = (ticks * 1e9 / run.clock.hz for ticks in (least, most))
        yield (
            f"the counter of CPU {receiver} is {low:.0f} to {high:.0f} ns ahead of CPU {sender}'s: delays are wrong by "
            "as much"
        )
    if abs(run.clock.drift_ppm) > DRIFT_PPM:
        yield f"the counter's rate moved by {run.clock.drift_ppm:.0f} ppm during the run"


def _host(run: RawWake) -> Iterator[str]:
    if run.facts.timer_slack_ns > 1 and any(case.mechanism == "clock_nanosleep" for case in run.cases):
        yield f"timer slack is {run.facts.timer_slack_ns:,} ns: a timer may expire so much late without being late"
    if run.machine.is_virtual:
        yield "this is a virtual machine: waking an idle CPU goes through the hypervisor"
    if not run.facts.is_locked:
        yield "memory could not be locked (see `ulimit -l`)"


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
    late = Figures(case.late, run.clock.hz)
    median_late_ns = late.at("50") * 1e9 / run.clock.hz if late.n else 0.0
    if case.failed:
        yield f"{case.failed} failed before the last message: {os.strerror(case.errno)}"
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
    if median_late_ns > _LATE_NS:
        yield (
            f"the sender did not keep its schedule: half of the messages were sent {median_late_ns / 1e3:.0f} us late "
            "or later"
        )


def _of_receiver(case: RawCase) -> Iterator[str]:
    if case.late_expirations:
        yield (
            f"{case.late_expirations} of {case.sent} expirations had passed before the thread came to wait for them: "
            "it was late for longer than a period"
        )
    if case.page_faults:
        yield f"the probe itself took {case.page_faults} page faults"
    if case.preemptions:
        yield f"the receiver was preempted {case.preemptions} times"
