"""What makes a run of a sender and a receiver, or one of its cases, mean less than it seems to: sentences. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from tunectl.experiments.pair_facts import CasesRun, HostFacts, PairRun
from tunectl.experiments.tick_figures import Figures
from tunectl.probe.jitter_warnings import DRIFT_PPM, is_slow
from tunectl.wording import nanoseconds, plural

Pair = PairRun[Any]
Cases = CasesRun[Any]
_LATE_NS = 1_000_000  # a sender later than that did not keep its schedule


def ended_early(run: Cases) -> Iterator[str]:
    """A run that is not whole."""
    if run.interrupted:
        yield "a signal ended the run early: cases are missing or are shorter"


def placement(run: Pair) -> Iterator[str]:
    """Which CPUs the two threads had."""
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


def two_spinners(run: Pair, which: str = "") -> Iterator[str]:
    """A receiver that spins beside a sender that does; `which` says in which cases."""
    if run.is_one_core:
        yield (
            f"two spinners share a physical core{which}: the receiver, and the sender, which spins until the next "
            "message is due"
        )


def fifo(run: Pair) -> Iterator[str]:
    """What a real-time priority comes with."""
    if not run.fifo_priority:
        return
    if run.cpus[0] == run.cpus[1]:
        yield (
            f"a SCHED_FIFO spinner would starve the sender on its own CPU {run.cpus[1]}: the spinning cases were "
            "left out"
        )
    yield from real_time_limits(run)


def real_time_limits(run: Cases) -> Iterator[str]:
    """What the kernel does to a real-time spinner."""
    if run.fifo_priority and run.machine.rt_runtime_us >= 0:
        runtime_us, period_us = run.machine.rt_runtime_us, run.machine.rt_period_us
        yield (
            f"sched_rt_runtime_us is {runtime_us} of {period_us}: the kernel may take the CPU from a SCHED_FIFO "
            "spinner for some 50 ms of each second, and so may the deadline fair server"
        )


def clock(run: Pair) -> Iterator[str]:
    """Whether the stamps of the two CPUs can be compared."""
    sender, receiver = run.cpus
    least, most = run.clock.offset_ticks or (0, 0)
    yield from counter(run)
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


def counter(run: Cases) -> Iterator[str]:
    """Whether the counter of one CPU can be trusted."""
    if not run.machine.has_stable_tsc:
        yield "this CPU's counter is not invariant (constant_tsc, nonstop_tsc): delays may be wrong"
    if abs(run.clock.drift_ppm) > DRIFT_PPM:
        yield f"the counter's rate moved by {run.clock.drift_ppm:.0f} ppm during the run"


def machine(run: Pair, virtual: str) -> Iterator[str]:
    """What the host is; `virtual` says what that means where it is a virtual machine."""
    yield from host(run, run.facts, virtual)


def host(run: Cases, facts: HostFacts, virtual: str) -> Iterator[str]:
    """The same of a run of more threads."""
    if run.machine.is_virtual:
        yield f"this is a virtual machine: {virtual}"
    if not facts.is_locked:
        yield "memory could not be locked (see `ulimit -l`)"


def _named(run: Pair, sender: bool, receiver: bool) -> str:
    """`CPU 3`, `CPUs 2 and 3`, or "" for neither."""
    chosen = list(dict.fromkeys(cpu for cpu, is_meant in zip(run.cpus, (sender, receiver), strict=True) if is_meant))
    return f"CPU{'s' * (len(chosen) - 1)} {' and '.join(map(str, chosen))}" if chosen else ""


def ended_by(failed: str, errno: int) -> Iterator[str]:
    """The call that ended a case; "" where none did."""
    if failed:
        yield f"{failed} failed before the last message: {os.strerror(errno)}"


def unkept(late: Figures) -> Iterator[str]:
    """A sender far behind its schedule."""
    median_ns = late.at("50") * 1e9 / late.hz if late.n else 0.0
    if median_ns > _LATE_NS:
        yield (
            f"the sender did not keep its schedule: half of the messages were sent {nanoseconds(median_ns)} late "
            "or later"
        )


def preempted(who: str, times: int) -> Iterator[str]:
    """Another task took the thread's CPU."""
    if times:
        yield f"the {who} was preempted {plural(times, 'time')}"
