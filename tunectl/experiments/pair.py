"""Threads on CPUs of their own, a sender and a receiver or a client and two servers: asked for, placed, and judged."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Generic, NamedTuple

from msgspec import Meta

from tunectl.cpulist import CpuSet, named_cpus, parse_cpulist, parse_shown
from tunectl.errors import UsageError
from tunectl.experiments.frame import CasesRun, Count, CpuFact, HostFacts, RawCase
from tunectl.experiments.tick_figures import Figures
from tunectl.host.cpusets import CpuFacts
from tunectl.probe.jitter_warnings import DRIFT_PPM, is_slow, throttling
from tunectl.wording import nanoseconds, plural

BUSY_POLL_US = 50  # where nothing else is asked for
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

    cpus: Annotated[tuple[CpuFact, CpuFact], Meta(description="The sender's and the receiver's.")]


class PairRun(CasesRun[RawCase], Generic[RawCase], frozen=True, kw_only=True):
    """The same of a sender and a receiver."""

    busy_poll_us: Annotated[Count, Meta(description="What SO_BUSY_POLL was set to in the busy-poll cells.")]
    cpus: Annotated[tuple[Count, Count], Meta(description="The sender's and the receiver's.")]
    facts: RunFacts

    @property
    def is_one_core(self) -> bool:
        """Are the two CPUs hardware threads of one core?"""
        return self.cpus[0] != self.cpus[1] and self.cpus[0] in parse_shown(self.facts.cpus[1].core_cpus)


@dataclass(frozen=True)
class PairRequest:
    """Options that `tunectl probe wake` and `tunectl probe feed` share; None leaves each at its default."""

    cpus: str | None = None
    among: str | None = None
    fifo: int | None = None
    busy_poll_us: int | None = None
    intrude: bool = False
    listen: str | None = None
    connect: str | None = None

    def pair_words(self) -> Iterator[str]:
        """The program's arguments of these."""
        yield from given(fifo=self.fifo, busy_poll_us=self.busy_poll_us, intrude=self.intrude)


def given(**options: float | bool | None) -> Iterator[str]:
    """The program's arguments of these options; none of one that is None or False."""
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            yield option
        elif value is not None and value is not False:
            yield from (option, str(value))


class Placed(NamedTuple):
    """The two CPUs, and what has to be said of the choice; "" where nothing."""

    sender: int
    receiver: int
    note: str = ""

    @property
    def text(self) -> str:
        """As the option --cpus has it."""
        return f"{self.sender},{self.receiver}"

    @property
    def cpus(self) -> CpuSet:
        """Both, or the one that they share."""
        return frozenset({self.sender, self.receiver})


def asked_cpus(cpus: str | None, among: str | None) -> CpuSet:
    """The CPUs that place() may choose, as far as they are named. A list that is none is refused there."""
    with suppress(UsageError):
        return parse_cpulist(cpus or among or "")
    return frozenset()


def place(cpus: str | None, among: str | None, facts: CpuFacts, allowed: CpuSet) -> Placed:
    """Those that `cpus` names; else the last two, on different cores, of `among`, of the isolated CPUs, of `allowed`.

    UsageError where none can be taken.
    """
    if cpus is not None:
        sender, receiver = _parse_named(cpus, facts.online, 2, "the sender's CPU and the receiver's, like 2,3")
        return Placed(sender, receiver)
    candidates, is_asked = _candidates(among, facts, allowed, 2)
    if not (online := candidates & facts.online):
        raise UsageError("none of the CPUs to choose from is online", "name two with --cpus S,R")
    sender, receiver = _last_two(online, facts)
    if is_asked:
        return Placed(sender, receiver)
    chosen = named_cpus({sender, receiver})
    were = "was" if sender == receiver else "were"
    taken = f"{chosen} {were} chosen among the allowed ones"
    note = f"no two CPUs are isolated on this host: {taken} (--cpus S,R names others)"
    return Placed(sender, receiver, note)


class PlacedServers(NamedTuple):
    """The CPUs of a client and its two servers, and what has to be said of the choice; "" where nothing."""

    client: int
    a: int
    b: int
    note: str = ""

    @property
    def text(self) -> str:
        """As the option --cpus has it."""
        return f"{self.client},{self.a},{self.b}"

    @property
    def cpus(self) -> CpuSet:
        """All three."""
        return frozenset({self.client, self.a, self.b})


def place_servers(cpus: str | None, among: str | None, facts: CpuFacts, allowed: CpuSet) -> PlacedServers:
    """Those that `cpus` names; else the last three, if possible on three cores, chosen as place() does.

    UsageError where there are no three.
    """
    if cpus is not None:
        expected = "the client's CPU and those of both servers, like 2,3,4"
        client, a, b = _parse_named(cpus, facts.online, 3, expected)
        if len({client, a, b}) < 3:
            raise UsageError(f"--cpus {cpus}: all three threads spin, so each needs a CPU of its own")
        return PlacedServers(client, a, b)
    candidates, is_asked = _candidates(among, facts, allowed, 3)
    online = candidates & facts.online
    if len(online) < 3:
        said = f"a client and two servers spin, each on a CPU of its own: here {len(online)} can be chosen"
        raise UsageError(said, "name three with --cpus C,A,B, or say --simulate, which needs none")
    client, a, b = _last_three(online, facts)
    chosen = named_cpus({client, a, b})
    said = f"no three CPUs are isolated on this host: {chosen} were chosen among the allowed ones"
    return PlacedServers(client, a, b, "" if is_asked else f"{said} (--cpus C,A,B names others)")


def _candidates(among: str | None, facts: CpuFacts, allowed: CpuSet, fewest: int) -> tuple[CpuSet, bool]:
    """The CPUs to choose from, and whether somebody asked for these: by a list, or by isolating them."""
    if among is not None:
        return parse_cpulist(among), True
    isolated = facts.kernel_isolated | facts.partitioned
    return (isolated, True) if len(isolated & facts.online) >= fewest else (allowed, False)


def _parse_named(text: str, online: CpuSet, count: int, expected: str) -> list[int]:
    if not re.fullmatch(r"\d{1,5}" + r",\d{1,5}" * (count - 1), text, re.ASCII):
        raise UsageError(f"--cpus {text}: expected {expected}")
    named = [*map(int, text.split(","))]
    for cpu in named:
        if cpu not in online:
            raise UsageError(f"CPU {cpu} is not online on this host")
    return named


def _last_three(online: CpuSet, facts: CpuFacts) -> tuple[int, int, int]:
    """Server B on the very last; A and the client each on the nearest below, if possible on a core of their own."""
    left, chosen = sorted(online), list[int]()
    while len(chosen) < 3:
        near = frozenset[int]().union(*(facts.siblings.get(cpu, frozenset()) for cpu in chosen))
        chosen.append(([cpu for cpu in left if cpu not in near] or left)[-1])
        left.remove(chosen[-1])
    b, a, client = chosen
    return client, a, b


def _last_two(online: CpuSet, facts: CpuFacts) -> tuple[int, int]:
    """The receiver on the very last; the sender on the nearest below, if possible on another core, or there too."""
    *others, receiver = sorted(online)
    elsewhere = [cpu for cpu in others if cpu not in facts.siblings.get(receiver, frozenset())]
    return (elsewhere or others or [receiver])[-1], receiver


def cpu_share(receiver_ns: int, receiver_ticks: int, hz: float) -> float:
    """The receiver's CPU time as a share of the time. The kernel's clock and the counter differ a little: at most 1."""
    elapsed_ns = receiver_ticks * 1e9 / hz
    return min(receiver_ns / elapsed_ns, 1.0) if elapsed_ns else 0.0


def why_throttled(throttled_us: int) -> str:
    """Why the times of threads that a cgroup's cpu.max stopped for so long are no result; "" where it never did."""
    throttled = throttling(throttled_us)
    return f"void: {throttled}: the delays hold that" if throttled else ""


def why_no_spinner(share: float, receiver: int) -> str:
    """Why the times of a spinner that had its CPU for this share are no result; "" where they are one."""
    if share >= SPINNER_LEAST:
        return ""
    needed = f"it needs {100 * SPINNER_LEAST:.0f} %"
    return (
        f"void: the spinner had CPU {receiver} for {100 * share:.3g} % of the time ({needed}): "
        "the delays are those of waiting for a CPU"
    )


Pair = PairRun[Any]
Cases = CasesRun[Any]


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
