"""The shapes of probe results, as far as comparisons and plots rely on them; other fields are let through. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

# Limits that no run reaches, so that no sum or square of what is within them overflows.
Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Amount = Annotated[float, Meta(ge=0, le=1e18)]
Bucket = tuple[Count, Count, Count]  # from ns, to ns, how many
Event = tuple[Count, Count, str]  # begin and end on the counter, cause


class Host(msgspec.Struct, frozen=True):
    """Which host wrote it."""

    hostname: str = ""
    kernel: str = ""
    boot_id: str = ""
    machine: str = ""


class Clock(msgspec.Struct, frozen=True):
    """The counter the gaps were read from."""

    hz: Annotated[float, Meta(ge=1e3, le=1e12)]
    source: str = ""
    granule_ns: Amount = 0.0


class Series(msgspec.Struct, frozen=True):
    """A CPU's run in equal intervals, the last one cut by its end."""

    interval_s: Annotated[float, Meta(gt=0, le=1e8)]
    intervals: list[tuple[Count, Count, Count]]  # gaps, stolen ns, longest ns


class Cause(msgspec.Struct, frozen=True):
    """What gaps of one cause add up to."""

    cause: str
    count: Count
    total_ns: Count
    max_ns: Count


class Period(msgspec.Struct, frozen=True):
    """Gaps that come at equal distances."""

    period_ns: Count
    count: Count
    coverage: Amount = 0.0
    mean_ns: Count = 0
    name: str = ""
    cause: str = ""


class Counters(msgspec.Struct, frozen=True):
    """What the kernel counted meanwhile."""

    irq: dict[str, Count] = {}
    softirq: dict[str, Count] = {}


class LoopNs(msgspec.Struct, frozen=True):
    """What an undisturbed turn of the loop costs; None where there was none."""

    mean: Amount | None = None


class Cpu(msgspec.Struct, frozen=True):
    """One CPU of a jitter result: what comparisons and plots need of it."""

    cpu: Count
    interruptions: Count
    stolen_ns: Count
    max_ns: Count
    gap_ns: dict[str, Amount]
    arrival_ns: dict[str, Amount]
    histogram: list[Bucket]
    events_lost: Count
    events: list[Event]
    percentile_error_ppm: Amount = 0.0
    conservation_ppm: float | None = None
    stolen_ppm: Amount = 0.0
    loop_ns: LoopNs = LoopNs()
    duration_ns: Count = 0
    tsc_start: Count = 0
    series: Series | None = None
    causes: list[Cause] = []
    periods: list[Period] = []
    counters: Counters | None = None


class Budget(msgspec.Struct, frozen=True):
    """How the run was judged."""

    verdict: str = "not-judged"
    limits: dict[str, float | None] = {}
    broken: list[str] = []
    not_judged: list[str] = []  # a sentence for each limit that the run was too short for
    reason: str = ""


class LeftOut(msgspec.Struct, frozen=True):
    """A CPU that was not measured."""

    cpu: Count


class Jitter(msgspec.Struct, frozen=True):
    """tunectl.probe.jitter/1"""

    threshold_ns: Count
    duration_s: Annotated[float, Meta(gt=0, le=1e8)]
    clock: Clock
    cpus: list[Cpu]
    not_measured: list[LeftOut] = []
    warnings: list[str] = []
    budget: Budget = Budget()
    interrupted: bool = False
    fifo_priority: Count = 0
    irq_descriptions: dict[str, str] = {}
    host: Host = Host()
    at: str = ""
    tunectl_version: str = ""


class Case(msgspec.Struct, frozen=True):
    """One mechanism and wait method at one idle time."""

    mechanism: str
    waiting: str
    idle_ms: Amount
    n: Count
    max_ns: Count | None
    histogram: list[Bucket]
    wait_method: str = msgspec.field(default="", name="way")  # block, poll, epoll, ...
    percentiles_ns: dict[str, Amount] | None = None
    reason: str = ""  # why nothing was measured
    is_round_trip: bool = False
    cpus: list[Count] = []
    receiver_cpu_percent: Amount | None = None
    warnings: list[str] = []

    @property
    def name(self) -> str:
        """`tcp, sleeping (poll), after 10 ms`"""
        method = f" ({self.wait_method})" if self.wait_method else ""
        there_and_back = ", there and back" if self.is_round_trip else ""
        return f"{self.mechanism}, {self.waiting}{method}, after {self.idle_ms:g} ms{there_and_back}"


class Wake(msgspec.Struct, frozen=True):
    """tunectl.probe.wake/1"""

    cases: list[Case] = msgspec.field(name="cells")
    warnings: list[str] = []
    interrupted: bool = False
    fifo_priority: Count = 0
    host: Host = Host()
    at: str = ""
    tunectl_version: str = ""


class Hardware(msgspec.Struct, frozen=True):
    """What a host is built of; hosts that agree in all of it are peers."""

    vendor: str = ""
    product: str = ""
    cpu_model: str = ""
    sockets: Count = 0
    cores: Count = 0
    cpus: Count = 0
    numa_nodes: Count = 0
    hypervisor: str = ""


class CpuSets(msgspec.Struct, frozen=True):
    """Which CPUs were judged, as cpulists."""

    online: str = ""
    isolated: str = ""


class Looser(msgspec.Struct, frozen=True):
    """A limit of the budget that permits more than the profile's."""

    key: str


class Waivers(msgspec.Struct, frozen=True):
    """Of the host file."""

    standing: Count = 0


class JudgedTarget(msgspec.Struct, frozen=True):
    """A finding of tunectl.verify/1 and others."""

    knob: str
    target: str
    outcome: str
    observed: str | int | float | bool | None = None
    desired: str | int | float | bool | None = None
    reason: str = ""
    fix: str = ""
    severity: str = ""
    match: str = ""
    harmful: bool = True
    points: dict[str, str | int | float | bool | None] | None = None


class Section(msgspec.Struct, frozen=True):
    """A part of a preflight with findings of its own."""

    verdict: str = ""
    findings: list[JudgedTarget] = []


class Action(msgspec.Struct, frozen=True):
    """What to do about a host: a command that is typed as it stands, or what is to be decided."""

    command: str = ""
    decide: str = ""
    mends: list[str] = []
    reboot: bool = False


class Preflight(msgspec.Struct, frozen=True):
    """tunectl.preflight/1"""

    verdict: str
    probe: Jitter | None
    reasons: list[str] = []
    actions: list[Action] = []
    hardware: Hardware | None = None  # tunectl 0.1.0 did not say
    cpu_sets: CpuSets = CpuSets()
    headline: str = ""
    looser: list[Looser] = []
    beside: list[LeftOut] = []
    waivers: Waivers = Waivers()
    verify: Section | None = None
    check: Section | None = None
    thermal: Section | None = None
    host: Host = Host()
    at: str = ""
    tunectl_version: str = ""
