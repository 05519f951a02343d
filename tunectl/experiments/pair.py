"""What threads on CPUs of their own share: their facts, whether each had its CPU, and what to beware of. Pure."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Generic, NamedTuple

from tunectl.cpulist import parse_shown
from tunectl.experiments.ends import SENDER_AND_RECEIVER, Ends
from tunectl.experiments.frame import CasesRun, Count, CpuFact, HostFacts, RawCase
from tunectl.experiments.tick_figures import Figures
from tunectl.probe.jitter_warnings import DRIFT_PPM, is_slow
from tunectl.shapes import about
from tunectl.wording import nanoseconds, percent, plural, ppm

SPINNER_LEAST = 0.90  # of the time, that a spinner must have had its CPU
OTHERS_MOST = 0.01  # of the messages, that may meet another task on a sleeper's CPU
_LATE_NS = 1_000_000  # a sender later than that did not keep its schedule


class Peer(NamedTuple):
    """The other host of a round trip: its address as it was given, the rate of its counter, the CPU of its thread."""

    address: str
    hz: int
    cpu: int


class RunFacts(HostFacts, frozen=True, kw_only=True):
    """The same of two threads."""

    cpus: Annotated[tuple[CpuFact, CpuFact], about("The sender's and the receiver's.")]


BusyPoll = Annotated[Count, about("What SO_BUSY_POLL was set to in the busy-poll cells.")]


class PairRun(CasesRun[RawCase], Generic[RawCase], frozen=True, kw_only=True):
    """The same of a sender and a receiver."""

    cpus: Annotated[tuple[Count, Count], about("The sender's and the receiver's.")]
    facts: RunFacts

    @property
    def is_one_core(self) -> bool:
        """Are the two CPUs hardware threads of one core?"""
        return self.cpus[0] != self.cpus[1] and shares_core(self.cpus, self.facts.cpus, 0, 1)


def cpu_share(receiver_ns: int, receiver_ticks: int, hz: float) -> float:
    """The receiver's CPU time as a share of the time. The kernel's clock and the counter differ a little: at most 1."""
    elapsed_ns = receiver_ticks * 1e9 / hz
    return min(receiver_ns / elapsed_ns, 1.0) if elapsed_ns else 0.0


def receiver_share(case: Any, hz: float) -> float:
    """How much of its CPU the receiver of a case had."""
    return cpu_share(case.receiver_ns, case.receiver_ticks, hz)


def why_no_spinner(share: float, receiver: int) -> str:
    """Why the times of a spinner that had its CPU for this share are no result; "" where they are one."""
    if share >= SPINNER_LEAST:
        return ""
    needed = f"it needs {100 * SPINNER_LEAST:.0f} %"
    return (
        f"void: the spinner had CPU {receiver} for {percent(100 * share)} of the time ({needed}): "
        "the delays are those of waiting for a CPU"
    )


Pair = PairRun[Any]
Cases = CasesRun[Any]


def ended_early(run: Cases) -> Iterator[str]:
    """A run that is not whole."""
    if run.interrupted:
        yield "a signal ended the run early: cases are missing or are shorter"


def placement(ends: Ends, run: Cases, facts: HostFacts, cores: Iterable[str]) -> Iterator[str]:
    """Which CPUs the threads had; `cores` is what is said of those that share a core, or a CPU."""
    if shared := [cpu for cpu, fact in zip(run.cpus, facts.cpus, strict=True) if not fact.is_isolated]:
        yield f"not isolated: {ends.named(shared)}; other threads can be scheduled there, and delay a {ends.item}"
    yield from cores
    if facts.shares_main and len(set(run.cpus)) > 1:
        yield (
            f"no CPU is left for the probe's main thread: it shares CPU {run.cpus[0]} with the {ends.names[0]}, and "
            f"nobody watches whether somebody else wants the {ends.number} CPUs"
        )
    if slow := [cpu for cpu, fact in zip(run.cpus, facts.cpus, strict=True) if is_slow(fact.governor)]:
        yield f"the frequency governor is not performance on {ends.named(slow)}"


def pair_warnings(run: Pair, virtual: str, spun: str | None = None, more: Iterable[str] = ()) -> Iterator[str]:
    """About a whole run of a sender and a receiver.

    `virtual` says what it means that the host is a virtual machine; `spun` in which cases the receiver spins, as the
    sender does, None: in none.
    """
    sender, receiver = run.cpus
    yield from ended_early(run)
    cores = []
    if sender == receiver:
        cores = [
            f"sender and receiver share CPU {sender}: a spinner there holds up the thread that feeds it, and a sleeper "
            "is woken without leaving the CPU"
        ]
    elif run.is_one_core:
        cores = [f"sender and receiver (CPUs {sender} and {receiver}) share a physical core: they slow each other"]
    yield from placement(SENDER_AND_RECEIVER, run, run.facts, cores)
    if run.is_one_core and spun is not None:
        yield (
            f"two spinners share a physical core{spun}: the receiver, and the sender, which spins until the next "
            "message is due"
        )
    if run.fifo_priority and sender == receiver:
        yield f"a SCHED_FIFO spinner would starve the sender on its own CPU {sender}: the spinning cases were left out"
    yield from real_time_limits(run)
    yield from counter(run)
    yield from _offset(run)
    yield from more
    yield from host(run, run.facts, virtual)


def shares_core(cpus: Sequence[int], facts: Sequence[CpuFact], one: int, other: int) -> bool:
    """Is the CPU of one thread a hardware thread of the other's core?"""
    return cpus[one] in parse_shown(facts[other].core_cpus)


def real_time_limits(run: Cases) -> Iterator[str]:
    """What the kernel does to a real-time spinner."""
    if run.fifo_priority and run.machine.rt_runtime_us >= 0:
        runtime_us, period_us = run.machine.rt_runtime_us, run.machine.rt_period_us
        yield (
            f"sched_rt_runtime_us is {runtime_us} of {period_us}: the kernel may take the CPU from a SCHED_FIFO "
            "spinner for some 50 ms of each second, and so may the deadline fair server"
        )


def _offset(run: Pair) -> Iterator[str]:
    """Whether the stamps of the two CPUs can be compared."""
    sender, receiver = run.cpus
    least, most = run.clock.offset_ticks or (0, 0)
    if least > most:
        yield (
            f"the counters of CPU {sender} and CPU {receiver} are not synchronised (no offset between them explains "
            "the stamps): delays are wrong"
        )
    elif least > 0 or most < 0:
        low, high = (nanoseconds(ticks * 1e9 / run.clock.hz) for ticks in (least, most))
        yield f"the counter of CPU {receiver} is {low} to {high} ahead of CPU {sender}'s: delays are wrong by as much"


def counter(run: Cases) -> Iterator[str]:
    """Whether the counter of one CPU can be trusted."""
    if not run.machine.has_stable_tsc:
        yield "this CPU's counter is not invariant (constant_tsc, nonstop_tsc): delays may be wrong"
    if abs(run.clock.drift_ppm) > DRIFT_PPM:
        yield f"the counter's rate moved by {ppm(run.clock.drift_ppm)} during the run"


def host(run: Cases, facts: HostFacts, virtual: str) -> Iterator[str]:
    """What the host is; `virtual` says what that means where it is a virtual machine."""
    if run.machine.is_virtual:
        yield f"this is a virtual machine: {virtual}"
    if not facts.is_locked:
        yield "memory could not be locked (see `ulimit -l`)"


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
