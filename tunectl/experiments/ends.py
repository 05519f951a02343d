"""The threads of an experiment, each on a CPU of its own: asked for, placed, and run case by case."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple

from tunectl.cpulist import CpuSet, named_cpus, parse_cpulist
from tunectl.errors import TunectlError, UsageError
from tunectl.experiments.frame import CaseError, RawCase, Takes, joined, require_online
from tunectl.host.cpusets import CpuFacts, read_scope_facts
from tunectl.host.sysroot import Sysroot
from tunectl.probe.runner import document_of, given, start
from tunectl.work import Tell, Work

_INTERRUPTED = "interrupted before it was measured"
_LONG_WARM_UP_S = 1.0  # it is named
_GRACE_S = 60.0  # beyond twice of what a case is to take
BUSY_POLL_US = 50  # where nothing else is asked for
_PROGRAMS = {"duration_s": "duration", "message_bytes": "bytes"}  # options that are called otherwise there


@dataclass(frozen=True)
class EndsRequest:
    """Options of all experiments; None leaves each at its default."""

    options: ClassVar[tuple[str, ...]]  # those that the program is asked with, the same for each case

    cpus: str | None = None
    among: str | None = None
    fifo: int | None = None
    intrude: bool = False

    def words(self) -> Iterator[str]:
        """The program's arguments of these."""
        for name in self.options:
            value = getattr(self, name)
            yield from given(**{_PROGRAMS.get(name, name): f"{value:.6f}" if name == "duration_s" else value})


@dataclass(frozen=True)
class PairRequest(EndsRequest):
    """Options that `tunectl probe wake` and `tunectl probe feed` share."""

    busy_poll_us: int | None = None
    listen: str | None = None
    connect: str | None = None


class Ends(NamedTuple):
    """The threads of an experiment, each on its CPU: what they are called, and what --cpus has to say for them."""

    names: tuple[str, ...]
    number: str
    letters: str
    expected: str
    item: str  # that one sends to another
    fewest: int  # CPUs; fewer threads than these share none
    too_few: str  # why fewer will not do; `{}` is how many there are
    way_out: str

    @property
    def threads(self) -> int:
        """How many threads there are."""
        return len(self.names)

    def named(self, cpus: Iterable[int]) -> str:
        """`CPUs 3 and 2` of two, `CPUs 2-4` of three."""
        distinct = list(dict.fromkeys(cpus))
        is_both = self.threads == len(distinct) == 2
        return f"CPUs {' and '.join(map(str, distinct))}" if is_both else named_cpus(distinct)


SENDER_AND_RECEIVER = Ends(
    names=("sender", "receiver"),
    number="two",
    letters="S,R",
    expected="the sender's CPU and the receiver's, like 2,3",
    item="message",
    fewest=1,
    too_few="none of the CPUs to choose from is online",
    way_out="",
)
CLIENT_AND_SERVERS = Ends(
    names=("client", "server A", "server B"),
    number="three",
    letters="C,A,B",
    expected="the client's CPU and those of both servers, like 2,3,4",
    item="request",
    fewest=3,
    too_few="a client and two servers spin, each on a CPU of its own: here {} can be chosen",
    way_out=", or say --simulate, which needs none",
)


class Placed(NamedTuple):
    """The CPU of each thread, and what has to be said of the choice; "" where nothing."""

    ends: tuple[int, ...]
    note: str = ""

    @property
    def text(self) -> str:
        """As the option --cpus has it."""
        return ",".join(map(str, self.ends))

    @property
    def cpus(self) -> CpuSet:
        """All of them; one where all share it."""
        return frozenset(self.ends)


@dataclass
class CaseRun(Generic[RawCase]):
    """The cases of a request, one after the other, on their CPUs; without any where `placed` is None."""

    name: str
    request: EndsRequest
    placed: Placed | None
    cases: Sequence[RawCase]
    takes: Callable[[RawCase], Takes]
    tell: Tell
    notes: list[str] = field(default_factory=list)

    def measure(self, measure: Callable[[RawCase], dict[str, Any]], after_s: float = 0.0) -> dict[str, Any]:
        """What was counted, as if one run of the program had counted it.

        `measure` hands back the document of one case. `tell` is told of each, with what is left: what the cases take,
        and `after_s` behind the last. A case that cannot be measured has the reason instead. Ctrl-C ends a case early,
        and leaves out the rest. TunectlError with the program's own reason, or where none could be measured at all.
        """
        document: dict[str, Any] = {}
        cells = []
        for place, case in enumerate(self.cases):
            left = after_s + sum(sum(self.takes(case)) for case in self.cases[place:] if not case.reason)
            reason = case.reason or (_INTERRUPTED if document.get("interrupted") else "")
            if not reason:
                try:
                    warm_up = self.takes(case).warm_up
                    first = f", the first {warm_up:.0f} s to warm up" if warm_up >= _LONG_WARM_UP_S else ""
                    self.tell(Work(f"{case.title}: case {place + 1} of {len(self.cases)}{first}", left))
                    measured = measure(case)
                    document = joined(document, measured)
                    cells += measured["cells"]
                    continue
                except CaseError as error:
                    reason = str(error)
                except KeyboardInterrupt:
                    if not document:
                        raise TunectlError("interrupted before anything was measured") from None
                    document["interrupted"] = True
                    reason = _INTERRUPTED
            cells.append(case.cell | {"reason": reason})
        if all(cell["reason"] for cell in cells):
            reasons = dict.fromkeys(cell["reason"] for cell in cells)
            raise TunectlError(f"nothing was measured: {'; '.join(reasons)}")
        return document | {"cells": cells}

    def counted(self, case: RawCase, words: Iterable[str] = (), keep: int | None = None) -> dict[str, Any]:
        """What the program wrote of one case; `words` are arguments for it alone.

        CaseError where a CPU was not there before it and after.
        """
        where, cpus = (["--cpus", self.placed.text], self.placed.cpus) if self.placed else ([], frozenset[int]())
        require_online(Sysroot(), cpus, "not online any more")
        asked = [self.name, *where, *self.request.words(), *case.words(), *words]
        done = start(asked, cpus, timeout_s=2 * sum(self.takes(case)) + _GRACE_S, keep=keep)
        require_online(Sysroot(), cpus, "went offline during the case, which moved the thread there to another CPU")
        measured: dict[str, Any] = document_of(done)
        return measured

    def noted(self, result: dict[str, Any]) -> dict[str, Any]:
        """The result, with what has to be said of the run before its warnings."""
        note = [self.placed.note] if self.placed and self.placed.note else []
        return result | {"warnings": [*note, *self.notes, *result["warnings"]]}


def require_two(request: EndsRequest, placed: Placed) -> None:
    """UsageError where a sender that spins would share the receiver's CPU."""
    if len(placed.cpus) > 1:
        return
    cpu = placed.ends[0]
    if request.cpus is None:
        said = f"the sender spins, so two CPUs are needed: only CPU {cpu} can be chosen here"
        raise UsageError(said, "name two with --cpus S,R")
    said = f"the sender spins, so the receiver needs another CPU than {cpu}"
    raise UsageError(f"--cpus {placed.text}: {said}", "name two, like 2,3")


def asked_cpus(cpus: str | None, among: str | None) -> CpuSet:
    """The CPUs that place() may choose, as far as they are named. A list that is none is refused there."""
    with suppress(UsageError):
        return parse_cpulist(cpus or among or "")
    return frozenset()


def place_request(ends: Ends, request: EndsRequest) -> Placed:
    """The CPUs of a request on this machine, as place() chooses them."""
    return place(ends, request.cpus, request.among, read_scope_facts(Sysroot()), frozenset(os.sched_getaffinity(0)))


def place(ends: Ends, cpus: str | None, among: str | None, facts: CpuFacts, allowed: CpuSet) -> Placed:
    """Those that `cpus` names; else the last ones, on different cores, of `among`, of the isolated CPUs, of `allowed`.

    UsageError where none can be taken.
    """
    if cpus is not None:
        return Placed(_parse_named(ends, cpus, facts.online))
    isolated = facts.kernel_isolated | facts.partitioned
    is_asked = among is not None or len(isolated & facts.online) >= ends.threads  # by a list, or by isolating them
    candidates = parse_cpulist(among) if among is not None else isolated if is_asked else allowed
    online = candidates & facts.online
    if len(online) < ends.fewest:
        hint = f"name {ends.number} with --cpus {ends.letters}{ends.way_out}"
        raise UsageError(ends.too_few.format(len(online)), hint)
    chosen = _last(ends.threads, online, facts)
    if is_asked:
        return Placed(chosen)
    taken = f"{named_cpus(chosen)} {'were' if len(set(chosen)) > 1 else 'was'} chosen among the allowed ones"
    said = f"no {ends.number} CPUs are isolated on this host: {taken}"
    return Placed(chosen, f"{said} (--cpus {ends.letters} names others)")


def _parse_named(ends: Ends, text: str, online: CpuSet) -> tuple[int, ...]:
    if not re.fullmatch(r"\d{1,5}" + r",\d{1,5}" * (ends.threads - 1), text, re.ASCII):
        raise UsageError(f"--cpus {text}: expected {ends.expected}")
    named = tuple(map(int, text.split(",")))
    for cpu in named:
        if cpu not in online:
            raise UsageError(f"CPU {cpu} is not online on this host")
    if len(set(named)) < ends.fewest:
        raise UsageError(f"--cpus {text}: all {ends.number} threads spin, so each needs a CPU of its own")
    return named


def _last(count: int, online: CpuSet, facts: CpuFacts) -> tuple[int, ...]:
    """The last thread on the very last CPU, each other on the nearest below, if possible on a core of its own.

    Where CPUs are too few the rest share one.
    """
    chosen: list[int] = []
    while len(chosen) < count:
        left = sorted(online.difference(chosen))
        near = frozenset[int]().union(*(facts.siblings.get(cpu, frozenset()) for cpu in chosen))
        chosen.append(([cpu for cpu in left if cpu not in near] or left or chosen)[-1])
    return tuple(reversed(chosen))
