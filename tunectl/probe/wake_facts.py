"""What `tunectl-probe wake` writes (tunectl.probe.wake.raw/1), as types: counts and ticks, and nothing that judges."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from tunectl.cpulist import parse_shown
from tunectl.errors import TunectlError
from tunectl.probe.hostfiles import Machine, machine_of

SCHEMA = "tunectl.probe.wake.raw/1"
Count = Annotated[int, Meta(ge=0)]
Values = list[int]  # value in ticks and how often it came, in turns; ascending


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What the kernel said at one moment, as it stood."""

    ticks: Count
    schedstat: str = ""  # the line of the receiver's CPU in /proc/schedstat;
    stat: str = ""  # where that has none, in /proc/stat
    threads: tuple[str, str, str] = ("", "", "")  # schedstat of the receiver, the sender, the probe's main thread


class RawCase(msgspec.Struct, frozen=True, kw_only=True):
    """One mechanism and wait method at one idle time."""

    mechanism: str
    waiting: Literal["sleeping", "spinning", "busy-poll"]
    way: str
    idle_ms: Annotated[float, Meta(ge=0)]
    reason: str = ""  # why it was not measured
    sent: Count = 0
    arrived: Count = 0
    duplicates: Count = 0
    reordered: Count = 0
    negative: Count = 0  # received before sent; not in the values
    unready: Count = 0  # sent while the receiver still made its caches cold (--dirty-kib)
    late_expirations: Count = 0  # of a timer: had passed before the receiver came to wait for them
    period_ticks: Count = 0
    page_faults: Count = 0
    preemptions: Count = 0
    receiver_ns: Count = 0  # CPU time of the receiver, from the last warm-up to the end,
    receiver_ticks: Count = 0  # and how long that was
    napi_id: Count = 0
    has_no_napi: bool = False
    failed: Literal["", "sending", "receiving"] = ""
    errno: Count = 0
    before: Account | None = None  # around all of it
    after: Account | None = None
    delay: Values = []  # of a timer: from when it was due
    after_send: Values = []
    send_call: Values = []
    late: Values = []
    far: Values = []
    away: Values = []


class CpuFact(msgspec.Struct, frozen=True, kw_only=True):
    """A CPU of the two; files of /sys as they stood, "" where they could not be read."""

    is_isolated: bool
    governor: str
    core_cpus: str  # the hardware threads of its core


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What decides how much the figures of a run mean."""

    cpus: tuple[CpuFact, CpuFact]  # the sender's and the receiver's
    shares_main: bool = False  # no CPU was left for the program's main thread
    is_locked: bool = True
    user_hz: Annotated[int, Meta(gt=0)] = 100  # what /proc/stat counts time in
    timer_slack_ns: Count = 1


class RawClock(msgspec.Struct, frozen=True, kw_only=True):
    """The counter."""

    hz: Annotated[float, Meta(gt=0)]
    drift_ppm: float = 0.0
    offset_ticks: tuple[int, int] | None = None  # the receiver's is ahead of the sender's by at least, by at most


class RawWake(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run."""

    interrupted: bool
    messages: Count
    bytes: Count
    fds: Count
    dirty_kib: Count
    fifo_priority: Count
    has_warm_sender: bool
    cpus: tuple[Count, Count]  # the sender's and the receiver's
    clock: RawClock
    facts: RunFacts
    cases: list[RawCase] = msgspec.field(name="cells")
    host: dict[str, str]
    at: str
    tunectl_version: str
    duration_s: float
    busy_poll_us: Count
    host_files: dict[str, str] = {}  # before the run, by path

    @property
    def machine(self) -> Machine:
        """What its files say of the host."""
        return machine_of(self.host_files)

    @property
    def is_one_core(self) -> bool:
        """Are the two CPUs hardware threads of one core?"""
        return self.cpus[0] != self.cpus[1] and self.cpus[0] in parse_shown(self.facts.cpus[1].core_cpus)


class Peer(NamedTuple):
    """The other host: its address as it was given, the rate of its counter, the CPU of its thread."""

    address: str
    hz: int
    cpu: int


def read_raw(document: dict[str, Any]) -> RawWake:
    """The document as types. TunectlError with the place of what is wrong."""
    if document.get("schema") != SCHEMA:
        raise TunectlError(f"tunectl-probe: expected a document of schema {SCHEMA}")
    try:
        run = msgspec.convert(document, RawWake)
    except msgspec.ValidationError as error:
        raise TunectlError(f"tunectl-probe wrote what is no {SCHEMA}: {error}") from error
    for place, case in enumerate(run.cases):
        if problem := _contradiction(case):
            raise TunectlError(f"{SCHEMA}: cells[{place}]: {problem}")
    return run


def _contradiction(case: RawCase) -> str:
    """What no type says: a file that was edited, or cut and mended, does not add up."""
    spreads = {name: getattr(case, name) for name in ("delay", "after_send", "send_call", "late", "far", "away")}
    if odd := [name for name, values in spreads.items() if len(values) % 2]:
        return f"{odd[0]} is no list of values and how often each came"
    held = sum(case.delay[1::2]) + case.negative
    return "" if held == case.arrived or case.reason else f"delay holds {held} of {case.arrived} messages that arrived"
