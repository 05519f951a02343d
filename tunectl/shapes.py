"""The shapes of probe results, as far as anything relies on them; other fields are let through. Pure.

A document of `probe jitter` is the encoding of these types: fields stand in its order, and those that not every
document has are UNSET there. Others are a dict to those who make and write them; a reader has one of these.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from math import ceil
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tunectl.errors import TunectlError
from tunectl.model import Outcome

Shape = TypeVar("Shape")
Kept = TypeVar("Kept", bound=msgspec.Struct)
FEWEST_P99_9 = 10_000  # messages of `feed`, requests of `hedge`; a percentile needs ten beyond it
# The way of a message in `feed`, in its order; the wire is a part of kernel where nothing stamps it.
FEED_STAGES = ("send", "wire", "kernel", "read", "batch", "frame", "parse", "book")
# What a budget limits, and hosts and runs are compared by: of each CPU.
FIGURES = ("max_ns", "p99_9_ns", "interruptions_per_s", "stolen_ppm")

# Limits that no run reaches, so that no sum or square of what is within them overflows.
Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Amount = Annotated[float, Meta(ge=0, le=1e18)]
Figure = Annotated[float, Meta(ge=-1e18, le=1e18)]
Bucket = tuple[Count, Count, Count]  # from ns, to ns, how many
_ROUNDING = 1e-6  # 1,000 x 0.999 is 999, whatever a float makes of it
Event = tuple[Count, Count, Count]  # begin and end on the counter, place of the cause in the labels


class Host(msgspec.Struct, frozen=True):
    """Which host wrote it."""

    hostname: str = ""
    kernel: str = ""
    boot_id: str = ""
    machine: str = ""


class Clock(msgspec.Struct, frozen=True, kw_only=True):
    """The counter the gaps were read from."""

    source: str = ""
    kernel_source: str = ""
    hz: Annotated[float, Meta(ge=1e3, le=1e12)]
    granule_ns: Amount = 0.0
    drift_ppm: float = 0.0
    error_ppm: float = 0.0
    initial_error_ppm: float = 0.0
    stated_hz: float | UnsetType | None = UNSET  # by the processor or its hypervisor


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """A CPU's run in equal intervals, the last one cut by its end."""

    tsc_start: Count = 0
    interval_s: Annotated[float, Meta(gt=0, le=1e8)]
    intervals: list[tuple[Count, Count, Count]]  # gaps, stolen ns, longest ns


class Cause(msgspec.Struct, frozen=True):
    """What gaps of one cause add up to."""

    cause: str
    kind: str
    name: str
    count: Count
    total_ns: Count
    max_ns: Count


class Period(msgspec.Struct, frozen=True):
    """Gaps that come at equal distances."""

    searched: ClassVar[int] = 4096  # a CPU's first gaps, of a millisecond and more and of less: so many of each
    period_ns: Count
    count: Count
    coverage: Amount = 0.0
    mean_ns: Count = 0
    name: str = ""
    cause: str = ""


class Switches(msgspec.Struct, frozen=True):
    """How often the spinner left its CPU."""

    voluntary: Count = 0
    involuntary: Count = 0


class Counters(msgspec.Struct, frozen=True):
    """What the kernel counted meanwhile."""

    irq: dict[str, Count] = {}
    softirq: dict[str, Count] = {}
    context_switches: Switches = Switches()
    page_faults: Count = 0
    steal_ns: Count = 0


class LoopNs(msgspec.Struct, frozen=True):
    """What an undisturbed turn of the loop costs; None where there was none."""

    mean: Amount | None = None
    min: Amount | None = None
    recording: Amount | None = None


class CoreClock(msgspec.Struct, frozen=True):
    """The clock of a core just before the run and just after it, in kHz."""

    before: Count
    after: Count


class Trace(msgspec.Struct, frozen=True):
    """What was traced on a CPU."""

    events: Count = 0
    events_apart: Count = 0  # of these: in no gap
    events_lost: Count = 0


class Cpu(msgspec.Struct, frozen=True, kw_only=True):
    """One CPU of a jitter result."""

    cpu: Count
    duration_ns: Count = 0
    tsc_start: Count = 0
    tsc_end: Count = 0
    loops: Count = 0
    loop_ns: LoopNs = LoopNs()
    interruptions: Count
    stolen_ns: Count
    stolen_ppm: Amount = 0.0
    max_ns: Count
    gap_ns: dict[str, Amount]
    arrival_ns: dict[str, Amount]
    percentile_error_ppm: Amount = 0.0
    conservation_ppm: float | None = None
    core_khz: CoreClock | None = None
    unfit: list[str] = []  # why its figures are not its own, or not the host's
    shared: str = ""  # says so where other threads had it for long
    counters: Counters | None = None
    histogram: list[Bucket]
    events_lost: Count
    events_lost_max_ns: Count = 0
    series: Series | None = None
    events: list[Event]
    causes: list[Cause] | UnsetType = UNSET  # where they were traced
    trace: Trace | UnsetType | None = UNSET
    periods: list[Period] = []
    periods_searched_ns: Count | None = None  # from the run's start; None: all of it

    @property
    def counted(self) -> Counters:
        """Nothing where nothing was counted."""
        return self.counters or Counters()


class Budget(msgspec.Struct, frozen=True):
    """How the run was judged."""

    limits: dict[str, float | None] = {}
    verdict: str = "not-judged"
    broken: list[str] = []
    broken_limits: list[str] = []  # for each of these sentences the key of the limit
    not_judged: list[str] = []  # a sentence for each limit that the run was too short for
    reason: str = ""


class Stressor(msgspec.Struct, frozen=True):
    """What one load did."""

    load: str
    stressor: str
    instances: Count = 0
    bogo_ops: Count = 0
    cpu_s: Amount = 0.0
    max_rss_kib: Count = 0
    proves: str = ""


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What ran on the housekeeping CPUs beside the run."""

    names: list[str]
    cpus: str = ""
    program: str = ""
    ran: bool
    reason: str = ""  # why it did not run, or not all the time
    stressors: list[Stressor] = []
    said: list[str] = []  # by the program, where it did not run


class LeftOut(msgspec.Struct, frozen=True):
    """A CPU that was not measured."""

    cpu: Count
    reason: str = ""


class Attribution(msgspec.Struct, frozen=True):
    """How causes were found: by a trace, or else why not."""

    method: str
    reason: str = ""
    clock: str | UnsetType = UNSET
    clock_error_ns: Amount | UnsetType = UNSET
    buffer_kib: Count | UnsetType = UNSET
    event_cost_ns: float | UnsetType | None = UNSET
    events: list[str] | UnsetType = UNSET


class Smis(msgspec.Struct, frozen=True):
    """System management interrupts of the host meanwhile; None with a reason where they were not counted."""

    count: Count | None = None
    reason: str = ""


class Stops(msgspec.Struct, frozen=True):
    """How often all probed CPUs were away together, and nothing in the kernel was the cause; None: nobody can tell."""

    count: Count | None = None
    total_ns: Count = 0
    max_ns: Count = 0
    least_ns: Count = 0  # of gaps of this length and more
    by_chance: Amount = 0.0
    explanation: str = ""
    reason: str = ""


class Elsewhere(msgspec.Struct, frozen=True):
    """Another CPU's gaps about that time: from ns, ns, cause."""

    cpu: Count
    gaps: list[tuple[int, Count, str]] = []


class WaitedFor(msgspec.Struct, frozen=True, kw_only=True):
    """The gap that ended a run, with what was traced: (ns from its begin, what)."""

    cpu: Count
    tsc_start: Count = 0
    tsc_end: Count = 0
    at_ns: Count
    length_ns: Count
    cause: str = ""
    before: list[tuple[int, str]] = []
    events: list[tuple[int, str]] = []
    events_left_out: Count = 0
    others: list[Elsewhere] = []
    unseen: list[str] = []


class Until(msgspec.Struct, frozen=True):
    """What --until waited for, and what came; None where nothing did."""

    least_ns: Count
    gap: WaitedFor | None = None


class Jitter(msgspec.Struct, frozen=True, kw_only=True):
    """tunectl.probe.jitter/1"""

    schema: str = "tunectl.probe.jitter/1"
    tunectl_version: str = ""
    host: Host = Host()
    at: str = ""
    threshold_ns: Count
    default_threshold_ns: Count = 0
    duration_s: Annotated[float, Meta(ge=0, le=1e8)]
    duration_requested_s: Annotated[float, Meta(ge=0, le=1e8)] = 0.0
    interrupted: bool = False
    ended_by: str = "duration"  # until, signal
    fifo_priority: Count = 0
    clock: Clock
    warnings: list[str] = []
    budget: Budget = Budget()
    irq_descriptions: dict[str, str] = {}
    throttled_ns: Count = 0
    attribution: Attribution | None = None
    labels: list[str] = msgspec.field(default_factory=lambda: [""])
    cpus: list[Cpu]
    not_measured: list[LeftOut] = []
    until: Until | None = None
    simultaneous_stops: Stops | None = None
    smis: Smis | UnsetType | None = UNSET
    load: Load | UnsetType | None = UNSET

    def seconds(self, cpu: Cpu) -> float:
        """How long this CPU was measured: its own length where stated, else the run's."""
        return cpu.duration_ns / 1e9 or self.duration_s

    @property
    def left_out(self) -> str:
        """Which CPUs were not measured, and why; "" where none was left out."""
        return "; ".join(f"CPU {one.cpu} was not measured: {one.reason}" for one in self.not_measured)

    @property
    def nothing_measured(self) -> str:
        """Why a run has no CPU at all, in a sentence; "" where it has one. Such a run is no result."""
        why = "; ".join(f"CPU {one.cpu}: {one.reason}" for one in self.not_measured)
        return "" if self.cpus else f"nothing was measured: {why or 'no CPU was left'}"

    @property
    def load_problem(self) -> str:
        """Why a run that was to be under load was not; "" where it was, and of a quiet run."""
        return f"the load did not run: {self.load.reason}" if self.load and not self.load.ran else ""

    def held(self, budget: Budget) -> Jitter:
        """The same, held to a budget."""
        return msgspec.structs.replace(self, budget=budget)

    def figure(self, cpu: Cpu, measure: str) -> float | None:
        """One CPU's `max_ns`, `stolen_ppm`, `p99_9_ns` (of arrivals) or `interruptions_per_s`; None if not measured."""
        if measure == "interruptions_per_s":
            return cpu.interruptions / seconds if (seconds := self.seconds(cpu)) else None
        if measure == "p99_9_ns":
            return cpu.arrival_ns.get("99.9")
        return float(cpu.max_ns if measure == "max_ns" else cpu.stolen_ppm)

    def worst(self, measure: str) -> float | None:
        """The largest of that figure over all CPUs; None if none was measured."""
        found = (self.figure(cpu, measure) for cpu in self.cpus)
        return max((value for value in found if value is not None), default=None)


class JitterRuns(msgspec.Struct, frozen=True, kw_only=True):
    """tunectl.probe.jitter.runs/1"""

    schema: str = "tunectl.probe.jitter.runs/1"
    tunectl_version: str = ""
    host: Host = Host()
    at: str = ""
    pause_s: float = 0.0
    warnings: list[str] = []
    runs: Annotated[list[Jitter], Meta(min_length=1)]


class JitterLoaded(msgspec.Struct, frozen=True, kw_only=True):
    """tunectl.probe.jitter.loaded/1"""

    schema: str = "tunectl.probe.jitter.loaded/1"
    tunectl_version: str = ""
    host: Host = Host()
    at: str = ""
    pause_s: float = 0.0
    warnings: list[str] = []
    quiet: Annotated[list[Jitter], Meta(min_length=1)]
    loaded: list[Jitter]
    comparison: dict[str, Any] | None = None  # a tunectl.compare/1 body


class Case(msgspec.Struct, frozen=True):
    """One mechanism and wait method at one idle time."""

    mechanism: str
    waiting: str
    idle_ms: Amount
    n: Count
    max_ns: Count | None
    histogram: list[Bucket]
    wait_method: str = msgspec.field(default="", name="way")  # block, poll, epoll, ...
    percentiles_ns: dict[str, Amount] | None = None  # None where there is no result
    reason: str = ""  # why there is no result
    is_void: bool = False  # measured, and no result
    is_round_trip: bool = False
    cpus: list[Count] = []
    receiver_cpu_percent: Amount | None = None
    warnings: list[str] = []

    @property
    def counted(self) -> int:
        """How many messages the histogram holds."""
        return self.n

    @property
    def key(self) -> tuple[object, ...]:
        """Cases with the same key are the same experiment."""
        return self.mechanism, self.waiting, self.wait_method, self.idle_ms, self.is_round_trip

    @property
    def name(self) -> str:
        """`tcp, sleeping (poll), after 10 ms`"""
        method = f" ({self.wait_method})" if self.wait_method else ""
        there_and_back = ", there and back" if self.is_round_trip else ""
        return f"{self.mechanism}, {self.waiting}{method}, after {self.idle_ms:g} ms{there_and_back}"

    @property
    def label(self) -> str:
        """`tcp poll 10 ms`: beside others of the same run."""
        return f"{self.mechanism} {self.wait_method} {self.idle_ms:g} ms"

    def at(self, percentile: str) -> float | None:
        """`at("99.9")`, in ns; None where there is no result, or the messages are too few for it."""
        return self.percentiles_ns.get(percentile) if self.percentiles_ns else None


Spread = dict[str, Figure | None]  # min, mean, percentiles by their names, max; in ns


class FeedSeries(msgspec.Struct, frozen=True):
    """A run in equal intervals, by when messages were due."""

    interval_s: Annotated[float, Meta(gt=0, le=1e8)]
    intervals: list[tuple[Count, Count, Count]]  # messages, the sum of their times and the longest, in ns


class FeedStamps(msgspec.Struct, frozen=True):
    """Receive stamps."""

    kind: str  # sw, the kernel's; hw, the network card's; off


class FeedCase(msgspec.Struct, frozen=True):
    """One transport and format, with the rest of what was asked for."""

    transport: str
    format: str
    symbols: Count
    rate: Count
    burst: Count
    waiting: str
    tls: str
    alloc: Count
    n: Count  # messages that were due
    histogram: list[Bucket]  # of those that arrived, and of those that were never sent
    due: Count | None = None
    sent: Count | None = None
    lost: Count = 0
    unsent: Count = 0
    due_to_book_ns: Spread | None = None  # None where there is no result
    lower_bounds_from_ns: Count | None = None  # figures of this and more are lower bounds
    late_ns: Spread | None = None
    stages_ns: dict[str, Spread | None] = {}
    bars_ns: dict[str, dict[str, Figure | None] | None] = {}
    series: FeedSeries | None = None
    stamped: bool = False
    stamps: FeedStamps | None = None
    is_round_trip: bool = False
    reason: str = ""  # why there is no result
    is_void: bool = False  # measured, and no result
    failed: str = ""  # why it ended before its last message
    cpus: list[Count] = []
    receiver_cpu_percent: Amount | None = None
    warnings: list[str] = []

    @property
    def counted(self) -> int:
        """How many messages the histogram holds: of lost ones nobody knows when they came."""
        return self.n - self.lost if self.n else 0

    @property
    def key(self) -> tuple[object, ...]:
        """Cases with the same key are the same experiment."""
        asked = self.transport, self.format, self.symbols, self.rate, self.burst, self.waiting, self.tls, self.alloc
        return *asked, self.is_round_trip

    @property
    def name(self) -> str:
        """`tcp ws-json, 4 symbols, poll0, ktls, 2 allocations`, without the rate, which all cases of a run share."""
        parts = [f"{self.transport} {self.format}", f"{self.symbols} symbol{'s' * (self.symbols != 1)}", self.waiting]
        parts += [self.tls] * (self.tls != "off")
        parts += [f"{self.alloc} allocation{'s' * (self.alloc != 1)}"] * (self.alloc > 0)
        parts += ["there and back"] * self.is_round_trip
        return ", ".join(parts)

    def at(self, percentile: str) -> float | None:
        """`at("99.9")`, in ns; None where there is no result, or no such percentile."""
        return self.due_to_book_ns.get(percentile) if self.due_to_book_ns else None

    @property
    def max_ns(self) -> float | None:
        """The longest; None where it is unknown."""
        return self.at("max")

    def is_bound(self, ns: float | None) -> bool:
        """Is this figure a lower bound? Messages that were never sent decide it."""
        return ns is not None and self.lower_bounds_from_ns is not None and ns >= self.lower_bounds_from_ns

    @property
    def stamped_by(self) -> str:
        """`the kernel`, `the network card`; `nobody` where messages have no receive stamps."""
        if not self.stamped:
            return "nobody"
        return "the network card" if self.stamps and self.stamps.kind == "hw" else "the kernel"

    def stage(self, name: str, figure: str) -> float | None:
        """`stage("read", "50")`, in ns; None where the stage is not known apart."""
        return (self.stages_ns.get(name) or {}).get(figure)


class Peer(msgspec.Struct, frozen=True):
    """The other host of a round trip."""

    address: str


class FeedReplay(msgspec.Struct, frozen=True):
    """The capture that decided when each message was due, and how long it was."""

    file: str
    speed: Annotated[float, Meta(gt=0, le=1e12)]  # its times are divided by this
    messages: Count
    others: Count = 0  # packets that were left out
    grown: Count = 0  # messages that were shorter there than any of ours is
    shortened: Count = 0  # messages that were longer there than any of ours is
    backwards: Count = 0  # messages whose time was before that of the one they follow there


class FeedClock(msgspec.Struct, frozen=True):
    """By how much the receiver's counter is ahead of the sender's, at least and at most; None where nobody says."""

    offset_least_ns: Figure | None = None
    offset_most_ns: Figure | None = None


class Feed(msgspec.Struct, frozen=True):
    """tunectl.probe.feed/1"""

    kind: ClassVar[str] = "feed"
    cases: list[FeedCase] = msgspec.field(name="cells")
    duration_s: Annotated[float, Meta(ge=0, le=1e8)] = 0.0
    clock: FeedClock = FeedClock()
    peer: Peer | None = None
    replay: FeedReplay | None = None
    stamp_cost_ns: Figure | None = None
    warnings: list[str] = []
    interrupted: bool = False
    fifo_priority: Count = 0
    budget: Budget = Budget()
    host: Host = Host()
    at: str = ""
    tunectl_version: str = ""

    def held(self, budget: Budget) -> Feed:
        """The same, held to a budget."""
        return msgspec.structs.replace(self, budget=budget)


class Speedup(msgspec.Struct, frozen=True):
    """How many times shorter a case that does not sleep is than one that does."""

    mechanism: str
    idle_ms: Amount
    over: str  # the wait method of the other
    percentiles: dict[str, Amount | None]
    wait_method: str = msgspec.field(default="", name="way")


class Wake(msgspec.Struct, frozen=True):
    """tunectl.probe.wake/1"""

    kind: ClassVar[str] = "wake"
    cases: list[Case] = msgspec.field(name="cells")
    messages: Count = 0  # in each case
    duration_s: Annotated[float, Meta(ge=0, le=1e8)] = 0.0
    peer: Peer | None = None
    speedups: list[Speedup] = []
    timer_slack_ns: Count | None = None
    warnings: list[str] = []
    interrupted: bool = False
    fifo_priority: Count = 0
    bytes: Count = 32
    fds: Count = 1
    dirty_kib: Count = 0
    has_warm_sender: bool = True
    host: Host = Host()
    at: str = ""
    tunectl_version: str = ""


class HedgeCase(msgspec.Struct, frozen=True):
    """One load, delay and stall, and what became of the requests."""

    load: Amount
    delay: str  # none, ns from due, or p95
    stall: str
    service_ns: Count
    cancel: bool
    n: Count  # requests that came; 0: no result
    histogram: list[Bucket]  # of those that were answered
    budget: Amount | None = None  # second copies for each request; None: no limit
    shed_at: Count | None = None  # a queue that long refuses; None: none does
    answered: Count = 0
    shed: Count = 0
    unanswered: Count = 0
    hedged: Count = 0
    won: Count = 0
    denied: Count = 0
    over_budget: Count = 0
    lost: Count | None = None  # hedges whose first copy was answered sooner
    hedge_cancelled: Count | None = None
    hedge_unfinished: Count | None = None
    wasted: Count | None = None  # copies whose request had its answer already
    cancelled_unstarted: Count | None = None
    unfinished: Count | None = None
    floor_ns: Amount | None = None  # no hedge answers sooner
    delay_ns: Amount | None = None  # in force, the median of all hedges
    percentiles_ns: dict[str, Amount | None] | None = None  # None where there is no result
    max_ns: Amount | None = None
    single_ns: dict[str, Spread | None] = {}
    wasted_ns: Count | None = None
    utilisation: Amount | None = None
    joint_ratio: Amount | None = None
    collapsed: bool | None = None
    queue_max: Count = 0
    reason: str = ""  # why there is no result
    is_void: bool = False  # measured, and no result
    cpus: list[Count] = []
    warnings: list[str] = []

    @property
    def counted(self) -> int:
        """How many requests the histogram holds."""
        return self.answered if self.n else 0

    @property
    def missed(self) -> int:
        """Requests that were refused or had no answer."""
        return self.n - self.counted

    @property
    def is_hedged(self) -> bool:
        """Were second copies asked for?"""
        return self.delay != "none"

    @property
    def key(self) -> tuple[object, ...]:
        """Cases with the same key are the same experiment; those of a simulation have no CPUs."""
        policy = self.cancel, self.budget, self.shed_at, self.stall
        return not self.cpus, self.service_ns, self.load, self.delay, *policy

    @property
    def place(self) -> tuple[str, float]:
        """Cases of one place differ in what is hedged."""
        return self.stall, self.load

    @property
    def second(self) -> str:
        """When the second copy goes out: `none`, `at once`, `at P95`, `after 10 µs`."""
        if not self.is_hedged:
            return "none"
        if self.delay == "0":
            return "at once"
        is_ns = self.delay.isascii() and self.delay.isdigit() and len(self.delay) < 12
        return f"after {int(self.delay) / 1e3:,g} µs" if is_ns else f"at {self.delay.upper()}"

    @property
    def name(self) -> str:
        """`load 0.1, second copy at P95, stall a`, without what all cases of a run share."""
        second = f"second copy {self.second}" if self.is_hedged else "no second copy"
        parts = [f"load {self.load:g}", second]
        return ", ".join([*parts, f"stall {self.stall}"] if self.stall != "none" else parts)

    def at(self, percentile: str) -> float | None:
        """`at("99.9")`, in ns; None where there is no result, or too many requests missed for it."""
        return self.percentiles_ns.get(percentile) if self.percentiles_ns else None


class Hedge(msgspec.Struct, frozen=True):
    """tunectl.probe.hedge/1"""

    kind: ClassVar[str] = "hedge"
    cases: list[HedgeCase] = msgspec.field(name="cells")
    simulated: bool = False
    duration_s: Annotated[float, Meta(ge=0, le=1e8)] = 0.0
    warnings: list[str] = []
    interrupted: bool = False
    fifo_priority: Count = 0
    host: Host = Host()
    at: str = ""
    tunectl_version: str = ""


CaseTable = Wake | Feed | Hedge  # results that are tables of cases
AnyCase = Case | FeedCase | HedgeCase


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
    outcome: Outcome
    observed: str | int | float | bool | None
    desired: str | int | float | bool | None
    reason: str
    fix: str
    severity: str = ""
    match: str = ""
    harmful: bool = True
    points: dict[str, str | int | float | bool | None] | None = None


class Section(msgspec.Struct, frozen=True):
    """A part of a preflight with findings of its own."""

    verdict: str = ""
    findings: list[JudgedTarget] = []


class Action(msgspec.Struct, frozen=True):
    """What to do about a host, in that host's words; of `kind` and `arguments` a reader makes the same in its own."""

    mends: Annotated[list[str], Meta(min_length=1)]
    command: str = ""
    decide: str = ""
    kind: str = ""
    arguments: dict[str, Any] = {}
    note: str = ""
    reboot: bool = False


class Preflight(msgspec.Struct, frozen=True):
    """tunectl.preflight/1"""

    verdict: str
    probe: Jitter | None
    strict: bool = False
    load: list[str] = []  # what was asked for
    loaded: Jitter | None = None  # the same under load, where one was asked for
    is_feed_asked: bool = False
    feed: Feed | None = None
    reasons: list[str] = []
    # For each of them the knob that it is about, or what was measured where a limit broke, or nothing.
    reasons_about: list[str] = []
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


def typed(document: Any, shape: type[Shape], where: str = "") -> Shape:
    """A document as one of these. TunectlError in one line: `where` it comes from, the key, what would be right."""
    try:
        return msgspec.convert(document, shape)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        named = [where] if where else []
        raise TunectlError(": ".join([*named, place.strip("`.") or "the document", what])) from error


def replaced(shape: Kept, **changes: Any) -> Kept:
    """The same with other values in these fields."""
    return msgspec.structs.replace(shape, **changes)


def plain(shape: object) -> Any:
    """The same as a document."""
    return msgspec.json.decode(msgspec.json.encode(shape))


def nearest_rank(count: float, share: float) -> int:
    """Of so many values in order the one that is the percentile, from 1 on; `share` as a fraction."""
    return ceil(count * share - _ROUNDING)


def bucket_at(buckets: Iterable[Bucket], share: float, beyond: int = 0) -> Bucket | None:
    """The bucket that holds the nearest-rank percentile, `share` as a fraction: 0 the shortest, 1 the longest.

    `beyond` more are longer than all buckets, by nobody knows how much: None where one of them is the percentile.
    """
    rows = sorted(buckets)
    rank = max(nearest_rank(sum(count for _, _, count in rows) + beyond, share), 1)
    reached = accumulate(count for _, _, count in rows)
    return next((row for row, so_far in zip(rows, reached, strict=True) if so_far >= rank), None)
