"""What the native program writes of every run of two or three threads, each on a CPU of its own, as types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from tunectl.cpulist import parse_shown
from tunectl.errors import TunectlError
from tunectl.probe.counter import shown_clock
from tunectl.probe.hostfiles import Machine, machine_of

Count = Annotated[int, Meta(ge=0)]
Values = list[int]  # value in ticks and how often it came, in turns; ascending


class Peer(NamedTuple):
    """The other host of a round trip: its address as it was given, the rate of its counter, the CPU of its thread."""

    address: str
    hz: int
    cpu: int


class CpuFact(msgspec.Struct, frozen=True, kw_only=True):
    """A CPU of the two; files of /sys as they stood, "" where they could not be read."""

    is_isolated: bool
    governor: str
    core_cpus: str  # the hardware threads of its core


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What decides how much the figures of a run mean."""

    shares_main: bool = False  # no CPU was left for the program's main thread
    is_locked: bool = True
    user_hz: Annotated[int, Meta(gt=0)] = 100  # what /proc/stat counts time in
    timer_slack_ns: Count = 1


class RunFacts(HostFacts, frozen=True, kw_only=True):
    """The same of two threads."""

    cpus: tuple[CpuFact, CpuFact]  # the sender's and the receiver's


class RawClock(msgspec.Struct, frozen=True, kw_only=True):
    """The counter."""

    hz: Annotated[float, Meta(gt=0)]
    drift_ppm: float = 0.0
    offset_ticks: tuple[int, int] | None = None  # the receiver's is ahead of the sender's by at least, by at most

    def shown(self, written: dict[str, Any]) -> dict[str, Any]:
        """What the program wrote of it, with the offset in ns."""
        clock = {name: value for name, value in shown_clock(written).items() if name != "offset_ticks"}
        if self.offset_ticks:
            ends = [round(ticks * 1e9 / self.hz, 1) for ticks in self.offset_ticks]
            clock |= {"offset_least_ns": ends[0], "offset_most_ns": ends[1]}
        return clock


RawCase = TypeVar("RawCase")


class CasesRun(msgspec.Struct, Generic[RawCase], frozen=True, kw_only=True):
    """A whole run, with its cases."""

    interrupted: bool
    fifo_priority: Count
    clock: RawClock
    cases: list[RawCase] = msgspec.field(name="cells")
    host: dict[str, str]
    at: str
    tunectl_version: str
    duration_s: float
    host_files: dict[str, str] = {}  # before the run, by path

    @property
    def machine(self) -> Machine:
        """What its files say of the host."""
        return machine_of(self.host_files)


class PairRun(CasesRun[RawCase], Generic[RawCase], frozen=True, kw_only=True):
    """The same of a sender and a receiver."""

    busy_poll_us: Count
    cpus: tuple[Count, Count]  # the sender's and the receiver's
    facts: RunFacts

    @property
    def is_one_core(self) -> bool:
        """Are the two CPUs hardware threads of one core?"""
        return self.cpus[0] != self.cpus[1] and self.cpus[0] in parse_shown(self.facts.cpus[1].core_cpus)


Run = TypeVar("Run", bound="CasesRun[Any]")


def read_run(document: dict[str, Any], shape: type[Run], schema: str, contradiction: Callable[[Any], str]) -> Run:
    """The document as types. TunectlError with the place of what is wrong; `contradiction` says it of a case."""
    if document.get("schema") != schema:
        raise TunectlError(f"tunectl-probe: expected a document of schema {schema}")
    try:
        run: Run = msgspec.convert(document, shape)
    except msgspec.ValidationError as error:
        raise TunectlError(f"tunectl-probe wrote what is no {schema}: {error}") from error
    for place, case in enumerate(run.cases):
        if problem := contradiction(case):
            raise TunectlError(f"{schema}: cells[{place}]: {problem}")
    return run


def uneven(spreads: dict[str, Values]) -> str:
    """Which of these lists is none of values and how often each came; "" where all are."""
    odd = [name for name, values in spreads.items() if len(values) % 2]
    return f"{odd[0]} is no list of values and how often each came" if odd else ""
