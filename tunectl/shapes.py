"""Documents as types: what all have, and the probe's results, as far as anything relies on them. Pure.

A document is made as a type, and its published schema is made of that type (cli/manuals/documents.py): fields stand in
the document's order, and those that not every document has are UNSET there. One that is read becomes its type at the
door; fields that are not known are let through.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tunectl.errors import TunectlError
from tunectl.model import Finding, Match, NextBoot, Outcome, Proved, Scalar, Severity

Shape = TypeVar("Shape")
Kept = TypeVar("Kept", bound=msgspec.Struct)
FEWEST_P99_9 = 10_000  # messages of `feed`, requests of `hedge`; a percentile needs ten beyond it
# The way of a message in `feed`, in its order; the wire is a part of kernel where nothing stamps it.
PERCENTILES = ("50", "90", "95", "99", "99.9", "99.99")
FEED_STAGES = ("send", "wire", "kernel", "read", "batch", "frame", "parse", "book")
SMIS = "smis_per_s"


class Limit(NamedTuple):
    """What a budget limits, and hosts and runs are compared by."""

    short: str
    label: str
    what: str  # in a sentence, before the figure
    ceiling: float  # what no run reaches: a limit there would permit everything
    of_host: Callable[[Jitter], float | None] | None = None  # its figure, where somebody counts it; 0 permits none


# The longest run takes a day; an interruption takes a nanosecond or more, an SMI a microsecond; nobody can take more
# than the whole time.
LIMITS = {
    "max_ns": Limit("longest", "longest interruption", "the longest interruption is", 86_400e9),
    "p99_9_ns": Limit("arrival P99.9", "P99.9 of arrivals", "99.9 % of arrivals wait at most", 86_400e9),
    "interruptions_per_s": Limit("interruptions", "interruptions", "interruptions come at", 1e9),
    "stolen_ppm": Limit("stolen", "stolen time", "the time stolen is", 1e6),
    SMIS: Limit("SMIs", "SMIs", "SMIs come at", 1e6, lambda run: run.smis.per_s(run.duration_s) if run.smis else None),
}
OF_HOST = {name: limit.of_host for name, limit in LIMITS.items() if limit.of_host}
FIGURES = tuple(name for name in LIMITS if name not in OF_HOST)  # of each CPU

# Limits that no run reaches, so that no sum or square of what is within them overflows.
Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Amount = Annotated[float, Meta(ge=0, le=1e18)]
Figure = Annotated[float, Meta(ge=-1e18, le=1e18)]
Bucket = tuple[Count, Count, Count]  # from ns, to ns, how many
_ROUNDING = 1e-6  # 1,000 x 0.999 is 999, whatever a float makes of it
Event = tuple[Count, Count, Count]  # begin and end on the counter, place of the cause in the labels


NOT_ALWAYS = "x-not-always"  # of a field that has a default: also a document that is written now may lack it
Maybe = Meta(extra_json_schema={NOT_ALWAYS: True})
MEASURED = "measured"
Measured = Meta(extra_json_schema={NOT_ALWAYS: MEASURED})  # there where `reason` is empty


def about(description: str) -> Meta:
    """What a field is."""
    return Meta(description=description)


def words(*allowed: str | int | None) -> Meta:
    """Of a field that has one of these; one of a later version is let through where it is read."""
    return Meta(extra_json_schema={"enum": [*allowed]})


def having(*keys: str) -> Meta:
    """Of a dict that has these keys."""
    return Meta(extra_json_schema={"required": [*keys]})


def one_of(*fields: str) -> Meta:
    """Of a type whose document has exactly one of these fields."""
    return Meta(extra_json_schema={"oneOf": [{"required": [field]} for field in fields]})


TRANSPORTS, FORMATS = words("tcp", "udp", "multicast", "multicast-ab"), words("ws-json", "json", "binary")
TLS = words("off", "ktls")
RCVBUF = Meta(description="What the kernel gave each socket that receives datagrams; 0: a stream's, which grows.")
_TIME = {"format": "date-time", "pattern": r"(Z|\+00:00)$"}
Time = Annotated[str, Meta(description="UTC, RFC 3339.", extra_json_schema=_TIME)]
Cpulist = Annotated[str, Meta(description='A cpulist: "2-5,8"; "" for none.')]
HostFile = Annotated[str, Meta(description="The host file that was read."), Maybe]
Strict = Annotated[bool, Meta(description="Does what cannot be read fail, too?"), Maybe]
Notes = Annotated[list[str], Meta(description="What the reader should know beside the result."), Maybe]
Reboot = Annotated[bool, Meta(description="Does something take effect only with the next boot?")]
TrialKind = Literal["runtime", "boot"]


Came = Literal["to-come", "booted", "proved"]


class Unconfirmed(msgspec.Struct, frozen=True):
    """A change that is taken back unless it is confirmed."""

    id: Annotated[str, Meta(description="What `tunectl confirm` is given.")]
    kind: Annotated[TrialKind, Meta(description="Of this boot, or of a boot that is tried.")]
    back_at: Annotated[
        Time | Literal[""],
        Meta(description="When it is taken back, as the wall clock stands now; empty for a boot that is tried."),
        Maybe,
    ] = ""
    overdue: Annotated[bool, Meta(description="It should be gone by now."), Maybe] = False
    tried: Annotated[
        Came | Literal[""],
        Meta(description="How far a boot that is tried has come; proved: everything was in force. Empty for another."),
        Maybe,
    ] = ""


class Returned(msgspec.Struct, frozen=True):
    """A change that came back by itself: nobody confirmed it, and the host file still asks for it."""

    id: str
    kind: TrialKind
    at: Annotated[Time, Meta(description="When it was taken back.")]
    why: str
    journal: Annotated[str, Meta(description="The path of what stays journaled.")]


Waits = Annotated[Unconfirmed | UnsetType, Meta(description="A change that waits for its confirmation.")]
CameBack = Annotated[Returned | UnsetType, Meta(description="A change that was tried, and came back by itself.")]
NotRun = Annotated[list[str], Meta(description="Programs that a recorded host cannot run, one command line each.")]


class Host(msgspec.Struct, frozen=True):
    """Which host wrote it."""

    hostname: str = ""
    kernel: Annotated[str, Meta(description="The release, as uname -r.")] = ""
    boot_id: str = ""
    machine: Annotated[str, Meta(description="As uname -m.")] = ""
    microcode: Annotated[str, Meta(description="Of the first CPU; x86 only."), Maybe] | UnsetType = UNSET
    bios: Annotated[str, Meta(description="Version and date, as DMI has them."), Maybe] | UnsetType = UNSET


def host_of(identity: tuple[str, str, str, str, str, str]) -> Host:
    """A host as documents have it: what it does not show of its firmware is left out."""
    hostname, kernel, boot_id, machine, microcode, bios = identity
    return Host(hostname, kernel, boot_id, machine, microcode or UNSET, bios or UNSET)


class CardFirmware(msgspec.Struct, frozen=True):
    """What runs on a network card, as its driver words it."""

    nic: str
    driver: str
    version: str


class Firmware(msgspec.Struct, frozen=True):
    """What a kernel was built as, and what runs on network cards: peers of the same hardware need not agree in it."""

    kernel_build: Annotated[str, Meta(description="As uname -v.")] = ""
    kernel_config: Annotated[
        str, Meta(description="The first digits of its configuration's SHA-256; empty where no file shows it.")
    ] = ""
    cards: tuple[CardFirmware, ...] = ()


class Header(msgspec.Struct, frozen=True):
    """What every document begins with."""

    schema: Annotated[str, Meta(description="tunectl.<name>/1")]
    tunectl_version: str
    host: Host
    at: Annotated[Time, Meta(description="When the document was made: UTC, RFC 3339.")]


class JudgedTarget(msgspec.Struct, frozen=True):
    """One target judged. Words of a later version are let through."""

    knob: Annotated[str, Meta(description="facility.name")]
    target: Annotated[str, Meta(description="The knob, and its instance in brackets where there are several.")]
    outcome: Outcome
    observed: Scalar
    desired: Scalar
    reason: str
    fix: str
    severity: Annotated[
        str,
        Meta(
            description="What it costs while it is not as it should be, the worst first; only for the order.",
            extra_json_schema={"enum": [*Severity]},
        ),
        Maybe,
    ] = ""
    match: Annotated[
        str,
        Meta(
            description="How observed is compared with desired; without it they have to be equal.",
            extra_json_schema={"enum": [*Match]},
        ),
        Maybe,
    ] = ""
    harmful: Annotated[
        bool, Meta(description="Of a refused write: does the value that stands disturb an isolated CPU?"), Maybe
    ] = True
    points: Annotated[
        dict[str, Scalar] | None,
        Meta(description="Of a boot argument what each stage has: asked, next_boot, this_boot, kernel."),
        Maybe,
    ] = None
    next: Annotated[
        str,
        Meta(
            description="Will the next boot have what is asked for? outcome is about now.",
            extra_json_schema={"enum": [*NextBoot]},
        ),
        Maybe,
    ] = ""
    next_from: Annotated[str, Meta(description="The file or the owner that says so."), Maybe] = ""
    proved: Annotated[
        str,
        Meta(
            description="Was that boot tried (`apply --try-boot`, confirmed), or do files alone declare it?",
            extra_json_schema={"enum": [*Proved]},
        ),
        Maybe,
    ] = ""
    until: Annotated[str, Meta(description="Last day of its waiver: expired, where it is not waived."), Maybe] = ""


if TYPE_CHECKING:  # a document is made with its findings as they are, and report/json.py draws them as these
    Findings = Sequence[Finding]
else:
    Findings = list[JudgedTarget]


class Clock(msgspec.Struct, frozen=True, kw_only=True):
    """The counter the gaps were read from."""

    source: Annotated[str, Meta(extra_json_schema={"enum": ["tsc", "cntvct_el0"]})] = ""
    kernel_source: Annotated[str, Meta(description="The kernel's current clocksource; empty when unknown."), Maybe] = ""
    hz: Annotated[
        float,
        Meta(ge=1e3, le=1e12),
        Meta(description="The counter's rate against CLOCK_MONOTONIC_RAW over the whole run."),
    ]
    granule_ns: Annotated[
        Amount,
        Meta(description="Greatest common divisor of the steps the counter makes: the finest difference it can show."),
    ] = 0.0
    drift_ppm: Annotated[Figure, Meta(description="hz against the rate found in the 20 ms before the run.")] = 0.0
    error_ppm: Annotated[Figure, Meta(description="Bound on the error of hz."), Maybe] = 0.0
    initial_error_ppm: Annotated[Figure, Maybe] = 0.0
    stated_hz: Annotated[float | UnsetType | None, Meta(description="What the CPU or the hypervisor states.")] = UNSET


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """A CPU's run in equal intervals, the last one cut by its end."""

    tsc_start: Annotated[Count, Meta(description="Interval i begins i * interval_s after it, on every CPU.")] = 0
    interval_s: Annotated[float, Meta(gt=0, le=1e8)]
    intervals: Annotated[
        list[tuple[Count, Count, Count]],
        Meta(description="[gaps that began in it, stolen ns of any, the longest ns]; the last one ends with the run."),
    ]


class Cause(msgspec.Struct, frozen=True):
    """What gaps of one cause add up to."""

    cause: Annotated[
        str, Meta(description="What took the CPU, what held it longest first: thread kworker/1:1 + local timer.")
    ]
    kind: Annotated[
        str, Meta(description="Of the first part. outside: no event of the kernel; unknown: not traced, or not listed.")
    ]
    name: Annotated[str, Meta(description="The first part: what held the CPU longest.")]
    count: Count
    total_ns: Count
    max_ns: Count


class Period(msgspec.Struct, frozen=True):
    """Gaps that come at equal distances."""

    searched: ClassVar[int] = 8192  # a CPU's first gaps of a length and more: so many
    period_ns: Count
    count: Annotated[Count, Meta(description="Periods that were hit, one interruption each.")]
    coverage: Annotated[Amount, Meta(description="Of the periods in the time looked at, the share that was hit.")] = 0.0
    mean_ns: Annotated[Count, Meta(description="Their length on average.")] = 0
    name: Annotated[str, Meta(description="What is known to come so often; empty for nothing.")] = ""
    cause: Annotated[str, Meta(description="The most frequent cause among them, where the kernel was traced.")] = ""
    error_ns: Annotated[Amount, Meta(description="Of period_ns, one standard error; 0: not known."), Maybe] = 0.0

    @property
    def known_ms(self) -> str:
        """The period in ms, with the digits that two standard errors leave, three at least, a nanosecond at most."""
        known = -floor(log10(2 * self.error_ns / 1e6)) if self.error_ns else 3
        return f"{self.period_ns / 1e6:.{min(max(known, 3), 6)}f}"


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
    steal_ns: Annotated[Count, Meta(description="From /proc/stat, in steps of USER_HZ.")] = 0


class LoopNs(msgspec.Struct, frozen=True):
    """What an undisturbed turn of the loop costs; None where there was none."""

    mean: Annotated[
        Amount | None,
        Meta(description="(duration - stolen) / (loops - interruptions); as min where one gap took the whole run."),
    ] = None
    min: Annotated[Amount | None, Meta(description="The cheapest of 50 batches of turns just before the run.")] = None
    recording: Annotated[
        Amount | None, Meta(description="What recording one gap takes: part of the next turn."), Maybe
    ] = None


class CoreClock(msgspec.Struct, frozen=True):
    """The clock of a core just before the run and just after it, in kHz."""

    before: Count
    after: Count


class Trace(msgspec.Struct, frozen=True):
    """What was traced on a CPU."""

    events: Count = 0
    events_apart: Annotated[Count, Meta(description="In no recorded interruption: shorter, or before or after.")] = 0
    events_lost: Annotated[
        Count, Meta(description="Events that the buffer had no room for; interruptions meanwhile have no known cause.")
    ] = 0


class Cpu(msgspec.Struct, frozen=True, kw_only=True):
    """One CPU of a jitter result."""

    cpu: Count
    duration_ns: Annotated[
        Count, Meta(description="From the first stamp to the last; the run ends where its last gap ends."), Maybe
    ] = 0
    tsc_start: Annotated[Count, Maybe] = 0
    tsc_end: Annotated[Count, Maybe] = 0
    loops: Annotated[Count, Meta(description="Quiet turns and interruptions together.")] = 0
    loop_ns: LoopNs = LoopNs()
    interruptions: Count
    stolen_ns: Count
    stolen_ppm: Amount = 0.0
    max_ns: Count
    gap_ns: Annotated[
        dict[str, Amount],
        Meta(description="Nearest-rank percentiles of the gaps' lengths; 0 without a gap."),
        Meta(extra_json_schema={"required": ["50", "99", "99.9", "99.99"]}),
    ]
    arrival_ns: Annotated[
        dict[str, Amount],
        Meta(description="A message arrives at a random moment and waits so long until the CPU is back."),
        Meta(extra_json_schema={"required": ["50", "99", "99.9", "99.99", "99.999"]}),
    ]
    percentile_error_ppm: Annotated[
        Amount, Meta(description="0 while every gap is listed; else the width of the histogram's buckets."), Maybe
    ] = 0.0
    conservation_ppm: Annotated[
        float | None,
        Meta(description="Turns and gaps added up against the kernel's clock; null where that is the same counter."),
        Maybe,
    ] = None
    core_khz: CoreClock | None = None
    unfit: Annotated[
        list[str],
        Meta(description="Why the figures are not this CPU's, or not the host's: no budget is judged by them."),
        Maybe,
    ] = []
    shared: Annotated[
        str,
        Meta(description="Says so where other threads had this CPU for a tenth of the run or more, else empty."),
        Maybe,
    ] = ""
    counters: Counters | None = None
    histogram: Annotated[list[Bucket], Meta(description="[from_ns, to_ns, count], ascending; every gap is in one.")]
    events_lost: Annotated[
        Count, Meta(description="Interruptions not in `events`, which was full; histogram and totals hold them.")
    ]
    events_lost_max_ns: Annotated[Count, Meta(description="The longest that is not in `events`."), Maybe] = 0
    complete_until_ns: Annotated[
        Count | None,
        Meta(description="From the run's start: so far all are in `events`, then long ones alone; null: to its end."),
        Maybe,
    ] = None
    series: Annotated[Series | None, Maybe] = None
    events: Annotated[
        list[Event],
        Meta(description="[tsc_start, tsc_end, cause], in order of time; the cause is an index into `labels`."),
    ]
    causes: Annotated[
        list[Cause] | UnsetType,
        Meta(description="Every interruption by its cause, the longest total first. Only where the kernel was traced."),
    ] = UNSET
    trace: Trace | UnsetType | None = UNSET
    periods: Annotated[
        list[Period],
        Meta(description="What comes at regular intervals between 0.5 ms and 1.2 s, among the listed events."),
        Maybe,
    ] = []
    periods_searched_ns: Annotated[
        Count | None,
        Meta(description="So far, those of short gaps; null: the whole run. 0: others had the CPU for most of it."),
        Maybe,
    ] = None

    @property
    def counted(self) -> Counters:
        """Nothing where nothing was counted."""
        return self.counters or Counters()


class Looser(msgspec.Struct, frozen=True):
    """A limit of the budget that permits more than the profile's."""

    key: Annotated[str, Meta(description="Of [budget].")]
    limit: float = 0.0
    profile_limit: float = 0.0
    profile: str = ""


class Budget(msgspec.Struct, frozen=True):
    """How the run was judged."""

    limits: dict[str, float | None] = {}
    verdict: Annotated[str, Meta(extra_json_schema={"enum": ["within", "broken", "not-judged"]})] = "not-judged"
    broken: list[str] = []
    broken_limits: Annotated[
        list[str], Meta(description="For each of these sentences the key of the limit."), Maybe
    ] = []
    not_judged: Annotated[
        list[str],
        Meta(description="Each limit that the run was too short for, and how long it would have to be."),
        Maybe,
    ] = []
    reason: Annotated[str, Meta(description="Why the verdict is not-judged; else empty."), Maybe] = ""
    looser: Annotated[list[Looser], Meta(description="Of `probe jitter`; preflight has its own."), Maybe] = []


class Stressor(msgspec.Struct, frozen=True):
    """What one load did."""

    load: str
    stressor: Annotated[str, Meta(description="stress-ng's name of it.")]
    instances: Count = 0
    bogo_ops: Annotated[
        Count, Meta(description="stress-ng's own count: compared only with the same stressor of the same version.")
    ] = 0
    cpu_s: Annotated[Amount, Meta(description="User and system time of all instances.")] = 0.0
    max_rss_kib: Count = 0
    proves: str = ""


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What ran on the housekeeping CPUs beside the run."""

    names: list[str]
    cpus: Annotated[str, Meta(description="Where it ran, a cpulist.")] = ""
    program: Annotated[str, Meta(description="stress-ng with its version.")] = ""
    ran: Annotated[
        bool,
        Meta(description="It worked from before the run until after it, on its own CPUs; else no budget is judged."),
    ]
    reason: Annotated[str, Meta(description="Why it did not run, or not all the time; empty where it did.")] = ""
    stressors: list[Stressor] = []
    said: Annotated[list[str], Meta(description="The last lines of stress-ng, where the load did not run.")] = []


class LeftOut(msgspec.Struct, frozen=True):
    """A CPU that was not measured."""

    cpu: Count
    reason: Annotated[str, Maybe] = ""


class Attribution(msgspec.Struct, frozen=True):
    """How causes were found: by a trace, or else why not."""

    method: Annotated[
        str,
        Meta(description="trace: from the kernel's own trace. counters: that was not possible."),
        Meta(extra_json_schema={"enum": ["trace", "counters"]}),
    ]
    reason: Annotated[str, Meta(description="Why it was not possible; else empty.")] = ""
    clock: Annotated[
        str | UnsetType,
        Meta(description="The trace's: x86-tsc, which is the counter, or mono_raw, brought to it by readings of both."),
    ] = UNSET
    clock_error_ns: Annotated[
        Amount | UnsetType, Meta(description="How much earlier or later than its stamp an event can have been.")
    ] = UNSET
    buffer_kib: Annotated[Count | UnsetType, Meta(description="The trace buffer of each probed CPU.")] = UNSET
    event_cost_ns: Annotated[
        float | UnsetType | None,
        Meta(
            description="What tracing added to an event on this host, caches warm; part of the interruptions measured."
        ),
    ] = UNSET
    events: Annotated[list[str] | UnsetType, Meta(description="The events this kernel has, of those asked for.")] = (
        UNSET
    )


class Nic(msgspec.Struct, frozen=True):
    """A network interface with a device behind it."""

    name: str
    driver: str
    device: str  # 0000:b1:00.0, virtio3
    numa_node: Annotated[int | None, Meta(description="Null where the firmware does not say.")]
    local_cpus: Cpulist
    irqs: tuple[int, ...]
    state: str  # up | down | unknown
    speed_mbps: int | None
    mtu: int | None
    rx_queues: int
    tx_queues: int


class IdleState(msgspec.Struct, frozen=True):
    """An idle state of the first CPU that is online."""

    name: str
    latency_us: int


class Flaw(msgspec.Struct, frozen=True):
    """A flaw of the CPU, as /sys/devices/system/cpu/vulnerabilities tells it."""

    name: str
    state: str


class Drivers(msgspec.Struct, frozen=True, kw_only=True):
    """Names as the kernel gives them; "" where the host has none or does not say."""

    model: str = ""
    cpufreq: str = ""
    cpufreq_status: str = ""  # active | passive | guided | off, of intel_pstate and amd_pstate
    boost: Annotated[bool | None, Meta(description="Null: no such switch.")] = None
    cpuidle: str = ""
    cpuidle_governor: str = ""
    idle_states: tuple[IdleState, ...] = ()
    clocksource: str = ""
    clocksources: tuple[str, ...] = ()
    smt: str = ""  # smt/control
    hypervisor: str = ""  # "" on bare metal; "unknown" for one that does not name itself
    lockdown: str = ""
    os: str = ""
    vulnerabilities: tuple[Flaw, ...] = ()


class KernelClock(msgspec.Struct, frozen=True):
    """The clock as the kernel keeps it: adjtimex(2). What it says of errors is what the clock's owner told it."""

    synchronised: Annotated[bool, Meta(description="What it was told.")]
    offset_ns: Annotated[int, Meta(description="What is left of a correction by the kernel's own loop.")]
    frequency_ppm: Annotated[float, Meta(description="By how much it is made to run faster; below 0: slower.")]
    tai_s: Annotated[int, Meta(description="CLOCK_TAI less CLOCK_REALTIME; 0 where nobody said it.")]
    max_error_ns: int
    estimated_error_ns: int


class Smis(msgspec.Struct, frozen=True):
    """System management interrupts of the host meanwhile; None with a reason where they were not counted."""

    count: Annotated[Count | None, Meta(description="Null where nobody can tell.")] = None
    reason: Annotated[str, Meta(description="Why not; else empty.")] = ""
    seconds: Annotated[Amount, Meta(description="For how long they were counted."), Maybe] = 0.0

    def per_s(self, seconds: float) -> float | None:
        """How often they came; of a document that does not say for how long, in so many seconds."""
        length = self.seconds or seconds
        return None if self.count is None or not length else self.count / length


class Stops(msgspec.Struct, frozen=True):
    """How often all probed CPUs were away together, and nothing in the kernel was the cause; None: nobody can tell."""

    count: Annotated[Count | None, Meta(description="Null where nobody can tell.")] = None
    total_ns: Annotated[Count, Meta(description="For how long all were away together.")] = 0
    max_ns: Annotated[Count, Meta(description="The longest time that all were.")] = 0
    least_ns: Annotated[
        Count, Meta(description="Of interruptions of this length and more: shorter ones meet by chance too often.")
    ] = 0
    by_chance: Annotated[Amount, Meta(description="How many there would be by chance; at most a tenth of count.")] = 0.0
    explanation: Annotated[str, Meta(description="What can stop all CPUs of this host; empty without a stop.")] = ""
    reason: Annotated[str, Meta(description="Why nobody can tell; else empty.")] = ""


class Elsewhere(msgspec.Struct, frozen=True):
    """Another CPU's gaps about that time: from ns, ns, cause."""

    cpu: Count
    gaps: Annotated[
        list[tuple[int, Count, str]],
        Meta(description="[ns from the begin of the gap that ended the run, length in ns, cause]"),
    ] = []


class WaitedFor(msgspec.Struct, frozen=True, kw_only=True):
    """The gap that ended a run, with what was traced: (ns from its begin, what)."""

    cpu: Count
    tsc_start: Count = 0
    tsc_end: Count = 0
    at_ns: Annotated[Count, Meta(description="Its begin, from the start of the run on.")]
    length_ns: Count
    cause: Annotated[str, Meta(description="Empty where the kernel was not traced.")] = ""
    before: Annotated[
        list[tuple[int, str]], Meta(description="The last events of the trace on this CPU before the gap, at most 16.")
    ] = []
    events: Annotated[
        list[tuple[int, str]], Meta(description="Those in the gap: at most 240, the first ones and the last ones.")
    ] = []
    events_left_out: Annotated[Count, Meta(description="In their middle.")] = 0
    others: Annotated[
        list[Elsewhere], Meta(description="The other probed CPUs, with each of their gaps at that time.")
    ] = []
    unseen: Annotated[list[str], Meta(description="What could not be seen, and how it can be.")] = []


class Until(msgspec.Struct, frozen=True):
    """What --until waited for, and what came; None where nothing did."""

    least_ns: Count
    gap: WaitedFor | None = None


class Jitter(msgspec.Struct, frozen=True, kw_only=True):
    """tunectl.probe.jitter/1"""

    schema: str = "tunectl.probe.jitter/1"
    tunectl_version: Annotated[str, Maybe] = ""
    host: Annotated[Host, Maybe] = Host()
    at: Annotated[str, Maybe] = ""
    threshold_ns: Annotated[
        Count,
        Meta(description="The shortest gap that is an interruption; by default 16 turns of the loop."),
    ]
    default_threshold_ns: Annotated[
        Count,
        Meta(description="Above it, the number of interruptions and the stolen time are not judged by a budget."),
        Maybe,
    ] = 0
    duration_s: Annotated[float, Meta(ge=0, le=1e8), Meta(description="The longest of the CPUs' measured lengths.")]
    duration_requested_s: Annotated[float, Meta(ge=0, le=1e8), Maybe] = 0.0
    interrupted: Annotated[bool, Meta(description="A signal ended the run before its time.")] = False
    ended_by: Annotated[
        str,
        Meta(description="until: a gap of the length that --until named; that is no interruption of the run."),
        Maybe,
        Meta(extra_json_schema={"enum": ["duration", "until", "signal"]}),
    ] = "duration"
    fifo_priority: Annotated[Count, Meta(description="0: the scheduling class was left alone."), Maybe] = 0
    clock: Clock
    warnings: list[str] = []
    budget: Budget = Budget()
    irq_descriptions: Annotated[
        dict[str, str], Meta(description="Key of counters.irq to the kernel's own description."), Maybe
    ] = {}
    throttled_ns: Annotated[
        Count | None,
        Meta(description="For how long cpu.max throttled the probe; null: one may stand outside what is seen."),
        Maybe,
    ] = 0
    attribution: Annotated[Attribution | None, Maybe] = None
    labels: Annotated[
        list[str],
        Meta(description="The causes of single interruptions, all CPUs together; an empty one where none is known."),
        Maybe,
    ] = msgspec.field(default_factory=lambda: [""])
    cpus: list[Cpu]
    not_measured: Annotated[
        list[LeftOut],
        Meta(description="CPUs that were asked for and left to somebody else's threads: they are not in `cpus`."),
        Maybe,
    ] = []
    until: Annotated[Until | None, Maybe] = None
    simultaneous_stops: Annotated[Stops | None, Maybe] = None
    smis: Smis | UnsetType | None = UNSET
    load: Load | UnsetType | None = UNSET

    def seconds(self, cpu: Cpu) -> float:
        """How long this CPU was measured: its own length where stated, else the run's."""
        return cpu.duration_ns / 1e9 or self.duration_s

    def complete_ns(self, cpu: Cpu) -> float:
        """From this CPU's start: so long every one of its interruptions is listed."""
        if len(cpu.events) == cpu.interruptions:
            return self.seconds(cpu) * 1e9
        if cpu.complete_until_ns is None:  # an older document: nothing is listed behind the last one that had room
            return (cpu.events[-1][1] - cpu.tsc_start) * 1e9 / self.clock.hz if cpu.events and cpu.tsc_start else 0.0
        return float(cpu.complete_until_ns)

    @property
    def left_out(self) -> str:
        """Which CPUs were not measured, and why; "" where none was left out."""
        return "; ".join(f"CPU {left_out.cpu} was not measured: {left_out.reason}" for left_out in self.not_measured)

    @property
    def nothing_measured(self) -> str:
        """Why a run has no CPU at all, in a sentence; "" where it has one. Such a run is no result."""
        why = "; ".join(f"CPU {left_out.cpu}: {left_out.reason}" for left_out in self.not_measured)
        return "" if self.cpus else f"nothing was measured: {why or 'no CPU was left'}"

    @property
    def load_problem(self) -> str:
        """Why a run that was to be under load was not; "" where it was, and of a quiet run."""
        return f"the load did not run: {self.load.reason}" if self.load and not self.load.ran else ""

    def held(self, budget: Budget) -> Jitter:
        """The same, held to a budget."""
        return msgspec.structs.replace(self, budget=budget)

    def figure(self, cpu: Cpu, measure: str) -> float | None:
        """One CPU's figure of FIGURES, or `loop_ns`, or one OF_HOST; None if not measured."""
        if measure in OF_HOST:
            return OF_HOST[measure](self)
        if measure == "loop_ns":
            return cpu.loop_ns.mean
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
    tunectl_version: Annotated[str, Maybe] = ""
    host: Annotated[Host, Maybe] = Host()
    at: Annotated[str, Maybe] = ""
    pause_s: Annotated[float, Meta(description="Between the end of one run and the start of the next.")] = 0.0
    warnings: Annotated[list[str], Meta(description="Why there are fewer runs than were asked for.")] = []
    runs: Annotated[list[Jitter], Meta(min_length=1), Meta(description="In the order in which they were measured.")]


Deciding = words("arrival_ns", "interruptions_per_s", "stolen_ppm")
_STAGES = tuple(f"{stage}_ns" for stage in FEED_STAGES)
_OF_CASES = ("wake_ns", "receiver_cpu_percent", "due_to_book_ns", "answer_ns", "due_to_had_ns")
_OF_HEDGE = ("hedged_percent", "missed_percent", "utilisation_percent")
_OF_GAPS = ("arrival_ns", "gap_ns", "max_ns", "interruptions_per_s", "stolen_ppm")
_COMPARED = """arrival_ns: what a message at a random moment waits. gap_ns: of the gaps alone. due_to_book_ns and the \
stages from send_ns on: of feed, a message from when it was due. answer_ns and three percentages: of hedge, a request \
from when it was due, and what second copies cost. due_to_had_ns: of contention, a buffer from \
when it was due."""


class Bounds(msgspec.Struct, frozen=True):
    """An estimate and its bounds. Of the side of a set: the middle one of the runs, the least and the greatest."""

    value: Annotated[float | None, Meta(description="null: a ratio to 0 before.")]
    low: float | None
    high: Annotated[
        float | None, Meta(description="null: the run is too short to bound it, or the figure has no bounds.")
    ]


class Row(msgspec.Struct, frozen=True):
    """One measure of both sides; a side is null where there was nothing to measure, the ratio of 0 / 0, too."""

    measure: Annotated[str, Meta(description=_COMPARED), words(*_OF_GAPS, *_OF_CASES, *_OF_HEDGE, *_STAGES)]
    percentile: Annotated[str | None, Meta(description='"99.9"; null where the measure is none.')]
    before: Bounds | None
    after: Bounds | None
    ratio: Annotated[Bounds | None, Meta(description="after / before")]
    reason: Annotated[str, Meta(description="Why there is no ratio or no bound; of max_ns, what can be said.")]


class RowGroup(msgspec.Struct, frozen=True):
    """One table: all CPUs together, a CPU, or a case."""

    name: str
    cpu: Annotated[int, Meta(ge=0)] | None
    rows: list[Row]


class DecidingRow(msgspec.Struct, frozen=True):
    """One of the rows of the first group that decide."""

    measure: Annotated[str, Deciding]
    percentile: Annotated[str | None, words("99.9", None)]
    change: Annotated[
        str,
        Meta(description="none: no difference was found. unknown: cannot tell."),
        words("lower", "higher", "none", "unknown"),
    ]
    chance: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="Of such a difference were nothing different, corrected for three rows (Holm)."),
    ]


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict of a comparison, of all CPUs together."""

    outcome: Annotated[str, words("different", "no-difference", "cannot-tell")]
    of: Annotated[str, Meta(description="Two runs, or two set-ups with several runs each."), words("runs", "sets")]
    rows: Annotated[list[DecidingRow], Meta(min_length=3, max_length=3)]
    reason: Annotated[str, Meta(description="Why it cannot be told; empty otherwise.")] = ""
    would_help: Annotated[str, Meta(description="What to do then; empty otherwise.")] = ""


class ComparedSide(msgspec.Struct, frozen=True, kw_only=True):
    """Where one side of a comparison comes from; of several runs, the first."""

    file: str
    host: Host
    at: Annotated[str, Meta(description="As the file says; empty where it does not.")]
    runs: Annotated[int, Meta(ge=1, description="How many; of jitter only."), Maybe] | UnsetType = UNSET
    cpus: Annotated[str, Meta(description="A cpulist; of jitter only."), Maybe] | UnsetType = UNSET
    duration_s: Annotated[float, Meta(ge=0), Maybe] | UnsetType = UNSET
    threshold_ns: Annotated[int, Meta(ge=0), Maybe] | UnsetType = UNSET


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two results of a probe side by side, or two sets of runs; docs/compare.md says how they are judged."""

    kind: Annotated[str, words("jitter", "wake", "feed", "hedge", "contention")]
    confidence: Annotated[float, Meta(ge=0.5, le=0.9999)]
    judged: Annotated[Difference | None, Meta(description="null of a table of cases, where there is none.")]
    before: ComparedSide
    after: ComparedSide
    warnings: Annotated[list[str], Meta(description="What else differs between the runs, or limits what they say.")]
    groups: Annotated[list[RowGroup], Meta(min_length=1)]


class JitterLoaded(msgspec.Struct, frozen=True, kw_only=True):
    """tunectl.probe.jitter.loaded/1"""

    schema: str = "tunectl.probe.jitter.loaded/1"
    tunectl_version: Annotated[str, Maybe] = ""
    host: Annotated[Host, Maybe] = Host()
    at: Annotated[str, Maybe] = ""
    pause_s: Annotated[float, Meta(description="Between two runs of one kind.")] = 0.0
    warnings: Annotated[list[str], Meta(description="Why there are fewer runs than were asked for.")] = []
    quiet: Annotated[list[Jitter], Meta(min_length=1)]
    loaded: Annotated[list[Jitter], Meta(description="The same beside the load; empty where none could be started.")]
    comparison: Annotated[
        Comparison | None,
        Meta(description="As in tunectl.compare/1: `before` quiet, `after` loaded; null where no load ran."),
    ] = None


def by_result(figures: str) -> Meta:
    """Of a case: without a result it says why, and these figures are null."""
    without = {"reason": {"minLength": 1}, figures: {"type": "null"}, "histogram": {"maxItems": 0}}
    result = {"reason": {"maxLength": 0}, "is_void": {"const": False}, figures: {"type": "object"}}
    is_none = {"properties": {"n": {"const": 0}}}
    return Meta(extra_json_schema={"if": is_none, "then": {"properties": without}, "else": {"properties": result}})


class Counter(msgspec.Struct, frozen=True, kw_only=True):
    """The counter that times were read from."""

    source: Annotated[
        str,
        about("simulated: a tick is a nanosecond of simulated time."),
        words("tsc", "cntvct_el0", "simulated"),
    ] = ""
    kernel_source: Annotated[str, Maybe] = ""
    hz: Annotated[float, Meta(gt=0)] = 1e9
    granule_ns: Annotated[float, Meta(ge=0), Maybe] = 0.0
    drift_ppm: Annotated[float, Maybe] = 0.0
    error_ppm: Annotated[float, Meta(ge=0), Maybe] = 0.0
    initial_error_ppm: Annotated[float, Meta(ge=0), Maybe] = 0.0


class CasesClock(Counter, frozen=True, kw_only=True):
    """The same as a result has it; absent offsets: both threads were on one CPU."""

    stated_hz: Annotated[float | None, about("What the CPU or the hypervisor states."), Maybe] = None
    offset_least_ns: Annotated[
        Figure | None,
        about("The receiver's counter is ahead of the sender's by so much at least. Above most: no bound."),
        Maybe,
    ] = None
    offset_most_ns: Annotated[Figure | None, Maybe] = None


class CasesTable(msgspec.Struct, frozen=True, kw_only=True):
    """What every table of cases says of its run."""

    duration_s: Annotated[float, Meta(ge=0, le=1e8), about("Of the measured times of all cases together.")] = 0.0
    clock: CasesClock = CasesClock()
    warnings: list[str] = []
    no_result: Annotated[str, about("Why no measured case is a result, and what would help; else empty.")] = ""
    interrupted: Annotated[bool, about("A signal ended the run before its time.")] = False
    fifo_priority: Annotated[Count, about("0: the scheduling class was left alone.")] = 0
    host: Annotated[Host, Maybe] = Host()
    at: Annotated[str, Maybe] = ""
    tunectl_version: Annotated[str, Maybe] = ""


class Peer(msgspec.Struct, frozen=True):
    """The other host of a round trip."""

    address: str
    hz: Annotated[float, Meta(gt=0, description="The rate of its counter.")] = 1e9
    cpu: Count = 0


_RANKS = about("In ns; nearest ranks. What too few values or lost ones decide is null.")
Spread = Annotated[dict[str, Figure | None], having("min", "mean", *PERCENTILES, "max"), _RANKS]
Histogram = Annotated[list[Bucket], about("[from_ns, to_ns, count], ascending.")]


class CaseOfTable(msgspec.Struct, frozen=True, kw_only=True):
    """What every case of a table has."""

    main: ClassVar[str] = "percentiles_ns"  # the field with its figures

    reason: Annotated[str, about("Why there is no result; else empty.")] = ""
    is_void: Annotated[bool, about("Measured, and no result: all figures are null.")] = False
    cpus: Annotated[list[Count], about("The sender's and the receiver's.")] = []
    warnings: list[str] = []

    @property
    def name(self) -> str:
        """What tells it from others, without what all cases of a run share."""
        raise NotImplementedError

    @property
    def label(self) -> str:
        """Beside others of the same run."""
        return self.name

    @property
    def missed(self) -> int:
        """How many of its values are longer than all in the histogram."""
        return 0

    def at(self, percentile: str) -> float | None:
        """`at("99.9")`, in ns; None where there is no result, or what it was made of was too little for it."""
        figures: dict[str, float | None] | None = getattr(self, self.main)
        return figures.get(percentile) if figures else None


class Case(CaseOfTable, frozen=True):
    """One mechanism and wait method at one idle time."""

    mechanism: str
    waiting: Annotated[str, words("sleeping", "spinning", "busy-poll")]
    idle_ms: Annotated[Amount, about("Asked for; period_ns is the schedule's.")]
    n: Annotated[Count, about("Messages the delays are of.")]
    max_ns: Count | None
    histogram: Histogram
    wait_method: Annotated[str, about("block, poll, epoll, ...")] = msgspec.field(default="", name="way")
    percentiles_ns: Annotated[dict[str, Amount], having(*PERCENTILES)] | None = None
    min_ns: Annotated[
        Count | None,
        about("Like all delays from just before the send call, of a timer from when it was due."),
    ] = None
    mean_ns: Amount | None = None
    after_send_ns: Annotated[
        Spread | None, about("From just after the send call; negative where the receiver was faster.")
    ] = None
    send_call_ns: Annotated[Spread | None, about("What the send call took.")] = None
    late_ns: Annotated[Spread | None, about("How far behind its schedule the sender was.")] = None
    far_ns: Annotated[Spread | None, about("How long the peer had the message, by its own counter.")] = None
    one_way_estimate_ns: Annotated[
        Spread | None,
        about("Half of the delay without far_ns: nothing says that both directions take the same."),
    ] = None
    period_ns: Annotated[Count, about("From message to message.")] = 0
    sent: Count = 0
    lost: Annotated[Count, about("Sent, and not there a second after the last was sent.")] = 0
    duplicates: Count = 0
    reordered: Count = 0
    late_expirations: Annotated[
        Count | None, about("Of a timer: had passed before the thread came to wait for them.")
    ] = None
    napi_id: Annotated[Count, about("Of the receiving socket; 0: no device queue feeds it.")] = 0
    is_round_trip: Annotated[bool, about("To the peer and back: the delays hold the peer's own time.")] = False
    receiver_cpu_percent: Annotated[
        Amount | None, about("CPU time of the receiving thread over the measured phase.")
    ] = None

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


class FeedSeries(msgspec.Struct, frozen=True):
    """A run in equal intervals, by when messages were due."""

    interval_s: Annotated[float, Meta(gt=0, le=1e8)]
    intervals: Annotated[
        list[tuple[Count, Count, Count]],
        about("[messages, the sum of their times in ns, the longest in ns]"),
    ]


class FeedStamps(msgspec.Struct, frozen=True):
    """Receive stamps."""

    kind: Annotated[str, words("sw", "hw", "off"), about("sw: the kernel's own; hw: the network card's.")]
    asked: Annotated[str, words("sw", "hw", "off")] = "off"
    reason: Annotated[str, about("Why there are none though they were asked for.")] = ""
    were_on: Annotated[bool | None, about("Somebody else had switched them on already. Null: unknown.")] = None
    uncertainty_ns: Annotated[Amount | None, about("Of a stamp against the counter; null without stamps.")] = None
    stepped: Annotated[bool, about("Their clock was set meanwhile: they are not comparable.")] = False


class Drops(msgspec.Struct, frozen=True, kw_only=True):
    """What the kernel dropped meanwhile; None where nobody counted."""

    socket: Annotated[Count | None, about("By the receiving socket (SO_MEMINFO).")] = None
    softnet: Annotated[Count | None, about("Before a socket (/proc/net/softnet_stat)."), Maybe] = None
    nic: Annotated[
        Count | None, about("By the interface to the peer, of all its packets; null on loopback."), Maybe
    ] = None


BARS = ("50", "90", "99", "99.9", "max")
Bar = Annotated[dict[str, Figure | None], having(*FEED_STAGES), about("In ns; wire is null without time stamps.")]


class FeedCase(CaseOfTable, frozen=True):
    """One transport and format, with the rest of what was asked for."""

    main = "due_to_book_ns"

    transport: Annotated[str, TRANSPORTS]
    format: Annotated[str, FORMATS]
    symbols: Count
    rate: Annotated[Count, about("Messages a second, of all symbols together.")]
    burst: Annotated[Count, about("Messages that are due at the same time.")]
    waiting: Annotated[str, words("poll", "poll0", "busy-poll"), about("How the receiver waits; poll0 spins.")]
    tls: Annotated[str, TLS]
    alloc: Annotated[Count, about("How often the receiver copies each message, on purpose.")]
    n: Annotated[Count, about("Messages that due_to_book_ns is of: all that were due.")]
    histogram: Annotated[
        Histogram, about("[from_ns, to_ns, count], ascending: of due_to_book_ns without the lost messages.")
    ]
    warm_ups: Annotated[Count, about("Messages before the measured time; they are in no other field.")] = 0
    due: Annotated[Count | None, about("Messages whose due time came in the measured time.")] = None
    sent: Count | None = None
    lost: Annotated[Count, about("Sent, and never there.")] = 0
    unsent: Annotated[Count, about("Due, and not sent before the end.")] = 0
    doubled: Annotated[Count, about("Second copies.")] = 0
    reordered: Annotated[Count, about("Came after a later one of their symbol: the book ignores them.")] = 0
    strangers: Annotated[Count, about("Packets that are no messages of this run.")] = 0
    rcvbuf_bytes: Annotated[Count, RCVBUF, Maybe] = 0
    reads: Annotated[Count, about("That brought at least one whole message.")] = 0
    stamp_shared: Annotated[
        Count, about("Messages of reads with several: their stamp is that of the read's last byte.")
    ] = 0
    drops: Drops = Drops()
    allocations: Annotated[Count, about("Made by the receiver on purpose (--alloc).")] = 0
    minor_faults: Annotated[Count, about("Of the receiver; so are major_faults and the switches.")] = 0
    major_faults: Count = 0
    involuntary_switches: Annotated[Count, about("How often another task took the receiver's CPU.")] = 0
    voluntary_switches: Count = 0
    sender_involuntary_switches: Count = 0
    close_code: Annotated[Count, about("With what the WebSocket reader failed; 0: it did not.")] = 0
    napi_id: Annotated[Count, about("Of the receiving socket; 0: no device queue feeds it.")] = 0
    batch_sizes: Annotated[list[tuple[Count, Count]], about("[messages of a read, how many reads], ascending.")] = []
    due_to_book_ns: Annotated[
        Spread | None, about("Of every message that was due: one that was lost is longer than all others.")
    ] = None
    lower_bounds_from_ns: Annotated[
        Count | None, about("Figures of this length and more are lower bounds: unsent messages decide them.")
    ] = None
    late_ns: Annotated[Spread | None, about("How far behind its schedule the sender was.")] = None
    stages_ns: Annotated[
        dict[str, Spread | None],
        having(*FEED_STAGES),
        about("Of the messages that arrived. wire is null without time stamps, and in kernel."),
    ] = {}
    negative_stages: Annotated[
        dict[str, Count],
        having(*FEED_STAGES),
        about("Messages whose stage was negative by more than the uncertainty of the stamps."),
    ] = {}
    bars_ns: Annotated[
        dict[str, Bar | None],
        having(*BARS),
        about("Of what the time at a percentile is made: each stage's mean, of messages about as long."),
    ] = {}
    series: Annotated[FeedSeries | None, about("The messages that arrived, by when they were due.")] = None
    stamped: Annotated[bool, about("The messages have a receive stamp: wire and kernel are known apart.")] = False
    stamps: FeedStamps | None = None
    is_round_trip: Annotated[
        bool, about("To the peer and back: the times hold the peer's own, which wire has, else kernel.")
    ] = False
    failed: Annotated[str, Maybe, about("Why it ended before its last message; it is then within no limit.")] = ""
    receiver_cpu_percent: Annotated[
        Amount | None, about("CPU time of the receiving thread over the measured time.")
    ] = None

    @property
    def missed(self) -> int:
        """Of lost messages nobody knows when they came."""
        return self.lost if self.n else 0

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


class FeedReplay(msgspec.Struct, frozen=True):
    """The capture that decided when each message was due, and how long it was."""

    file: str
    speed: Annotated[float, Meta(gt=0, le=1e12), about("Its times are divided by this.")]
    messages: Count
    others: Annotated[
        Count, about("Packets that are no UDP, or later fragments of a datagram; they were left out.")
    ] = 0
    grown: Annotated[Count, about("Messages that were shorter there than any of ours is.")] = 0
    shortened: Annotated[Count, about("Messages that were longer there than any of ours is.")] = 0
    backwards: Annotated[Count, about("Messages whose time was before that of the one they follow there.")] = 0
    unfollowed: Annotated[
        dict[str, Count], Maybe, about("Packets that may be messages or not, by why nobody can tell.")
    ] = {}
    cut_bytes: Annotated[
        Count, Maybe, about("What the file ends with, of a packet that is not whole in it; left out.")
    ] = 0


class Feed(CasesTable, frozen=True):
    """What a message of market data takes from when it is due to the book, stage by stage; docs/probe-feed.md."""

    kind: ClassVar[str] = "feed"
    cases: list[Annotated[FeedCase, by_result("due_to_book_ns")]] = msgspec.field(name="cells")
    peer: Annotated[Peer | None, about("The other host of --connect.")] = None
    interface: Annotated[str | None, about("Of this host, that leads to the peer.")] = None
    replay: Annotated[FeedReplay | None, about("Null: messages were due by rate and burst.")] = None
    stamp_cost_ns: Annotated[
        Figure | None, about("By how much the median is longer with time stamps, of the first stamped case.")
    ] = None
    busy_poll_us: Annotated[Count, about("What SO_BUSY_POLL was set to in the busy-poll cells.")] = 0
    budget: Budget = Budget()

    def held(self, budget: Budget) -> Feed:
        """The same, held to a budget."""
        return msgspec.structs.replace(self, budget=budget)


class Speedup(msgspec.Struct, frozen=True):
    """How many times shorter a case that does not sleep is than one that does; null where the one took no time."""

    mechanism: str
    idle_ms: Amount
    over: Annotated[str, about("The wait method of the other.")]
    percentiles: dict[str, Amount | None]
    wait_method: str = msgspec.field(default="", name="way")
    waiting: str = ""
    mean: Amount | None = None
    max: Amount | None = None


class Wake(CasesTable, frozen=True):
    """How long a message takes to a waiting thread, by mechanism, wait method and idle time; docs/probe-wake.md."""

    kind: ClassVar[str] = "wake"
    cases: list[Annotated[Case, by_result("percentiles_ns")]] = msgspec.field(name="cells")
    messages: Annotated[Count, about("Asked for in each case.")] = 0
    peer: Annotated[Peer | None, about("The other host of --connect.")] = None
    speedups: list[Speedup] = []
    timer_slack_ns: Annotated[Count | None, about("Of the receiver: the probe sets it to 1.")] = None
    busy_poll_us: Annotated[Count, about("What SO_BUSY_POLL was set to in the busy-poll cells.")] = 0
    bytes: Annotated[Count, about("Of each message.")] = 32
    fds: Annotated[Count, about("In each poll and epoll set; all but the receiver's own are idle.")] = 1
    dirty_kib: Annotated[Count, about("The receiver wrote to so much memory after each message; 0: to none.")] = 0
    has_warm_sender: Annotated[
        bool, about("The sender kept itself warm between messages; false with --cold-sender.")
    ] = True


class HedgeCase(CaseOfTable, frozen=True, kw_only=True):
    """One load, delay and stall, and what became of the requests."""

    load: Annotated[Amount, about("Arrivals x service / 2: of each server, without second copies and stalls.")]
    delay: Annotated[str, about("When a request without an answer gets a second copy: none, ns from due, or pNN.")]
    stall: Annotated[
        str,
        words("none", "a", "both", "common"),
        about("Which servers stall for 300 us, 1 % of the time; common: at the same instants."),
    ]
    service_ns: Annotated[Count, about("Work of a request.")]
    cancel: Annotated[bool, about("The other copy is cancelled once the answer is there, where it has not begun.")]
    n: Annotated[Count, about("offered; 0 where there is no result.")]
    histogram: Annotated[Histogram, about("[from_ns, to_ns, count], ascending: of the requests that were answered.")]
    budget: Annotated[Amount | None, about("Second copies for each request, on average; null: no limit.")] = None
    shed_at: Annotated[Count | None, about("A queue that long refuses what comes; null: none does.")] = None
    seed: Annotated[Count, about("Of arrivals, stalls and, simulated, service times.")] = 0
    warm_ups: Annotated[Count, about("Requests before the measured time; they are in no other count.")] = 0
    offered: Annotated[
        Count, about("Requests whose due time came in the measured time: answered + shed + unanswered.")
    ] = 0
    answered: Count = 0
    shed: Annotated[Count, about("Refused by a full queue: they count as missed.")] = 0
    unanswered: Annotated[Count, about("Taken, and without an answer when the run ended.")] = 0
    hedged: Annotated[
        Count, about("Second copies that were sent: won + lost + hedge_cancelled + hedge_unfinished.")
    ] = 0
    won: Annotated[Count, about("The second copy's answer came first.")] = 0
    denied: Annotated[Count, about("Second copies that were due, and met a full queue.")] = 0
    over_budget: Annotated[Count, about("Second copies that were due, and the budget had no token left.")] = 0
    lost: Annotated[Count | None, about("The second copy was done with, and the first had answered.")] = None
    hedge_cancelled: Annotated[Count | None, about("Second copies that were cancelled before they were begun.")] = None
    hedge_unfinished: Annotated[Count | None, about("Second copies that were neither by the end.")] = None
    wasted: Annotated[Count | None, about("Copies that were done with when their request had its answer.")] = None
    cancelled_unstarted: Annotated[
        Count | None, about("Copies, first or second, that were cancelled before they were begun.")
    ] = None
    unfinished: Annotated[Count | None, about("Copies, first or second, that were not done with by the end.")] = None
    floor_ns: Annotated[Amount | None, about("No second copy answers sooner. Null without any.")] = None
    delay_ns: Annotated[
        Amount | None, about("The delay in force, the median of all second copies. Null without any.")
    ] = None
    min_ns: Annotated[
        Amount | None, about("From due to the first answer. What requests that missed decide is null.")
    ] = None
    mean_ns: Amount | None = None
    percentiles_ns: Annotated[dict[str, Amount | None], having(*PERCENTILES)] | None = None
    max_ns: Amount | None = None
    single_ns: Annotated[
        dict[str, Spread | None],
        having("a", "b"),
        about("Each server's service times: from when it was last seen ready until it was done."),
    ] = {}
    late_ns: Annotated[Spread | None, about("From due until the client sent the first copy.")] = None
    wasted_ns: Annotated[Count | None, about("Work on the wasted copies, of both servers together.")] = None
    utilisation: Annotated[
        Amount | None,
        about("The share of the time that the servers worked, copies included and stalls left out."),
    ] = None
    joint_ratio: Annotated[
        Amount | None, about("P(both slow) / (P(A slow) x P(B slow)). 1: they are slow independently.")
    ] = None
    collapsed: Annotated[bool | None, about("Requests came faster than they were done with.")] = None
    queue_max: Annotated[Count, about("The most copies that one server had, the one in work among them.")] = 0
    throttled: Annotated[
        Count | None, about("How often the servers' cores and packages were; null where nobody counts.")
    ] = None
    cpus: Annotated[list[Count], about("The client's, server A's and server B's; empty where it was simulated.")] = []

    @property
    def missed(self) -> int:
        """Requests that were refused or had no answer."""
        return self.n and self.n - self.answered

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


class Hedge(CasesTable, frozen=True):
    """What a second copy of each late request gains and costs: one client, two servers; docs/probe-hedge.md."""

    kind: ClassVar[str] = "hedge"
    cases: list[Annotated[HedgeCase, by_result("percentiles_ns")]] = msgspec.field(name="cells")
    simulated: Annotated[bool, about("On simulated time: no measurement of this host.")] = False


CONTENTION_STEPS = ("taking", "handing", "giving")
_Ends = Annotated[list[Count], about("Of the sender and of the receiver.")]


class ContentionCase(CaseOfTable, frozen=True):
    """One kind of buffers and of hand-over."""

    buffers: Annotated[str, words("malloc", "pool"), about("Whence the sender has them; pool: one of its own.")]
    hand_over: Annotated[
        str,
        words("mutex", "futex", "ring"),
        about("mutex: the receiver looks under a lock. futex: it sleeps. ring: it looks without a lock."),
    ]
    threads: Annotated[Count, about("That take buffers; those beyond two on other CPUs.")]
    bytes: Annotated[Count, about("Of the largest buffer.")]
    rate: Annotated[Count, about("Buffers a second.")]
    n: Annotated[Count, about("Buffers the times are of.")]
    histogram: Histogram
    sent: Count = 0
    allocations: Annotated[Count, about("Calls of malloc for these buffers.")] = 0
    sleeps: Annotated[_Ends, about("They left their CPUs by themselves: for a lock, or to wait.")] = []
    preemptions: _Ends = []
    page_faults: _Ends = []
    taking_ns: Annotated[Spread | None, about("Until a buffer was there, each of its pages written to.")] = None
    handing_ns: Annotated[Spread | None, about("From then until the receiver had it.")] = None
    giving_ns: Annotated[Spread | None, about("Giving back an earlier one, by the receiver.")] = None
    percentiles_ns: (
        Annotated[
            dict[str, Amount | None],
            having(*PERCENTILES),
            about("From when a buffer was due until the receiver had it."),
        ]
        | None
    ) = None
    max_ns: Amount | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """Cases with the same key are the same experiment."""
        return self.buffers, self.hand_over, self.threads, self.bytes, self.rate

    @property
    def name(self) -> str:
        """`malloc, futex`, without what all cases of a run share."""
        return f"{self.buffers}, {self.hand_over}"


class Contention(CasesTable, frozen=True):
    """What a lock and an allocator cost two threads that share them, step by step; docs/probe.md."""

    kind: ClassVar[str] = "contention"
    cases: list[Annotated[ContentionCase, by_result("percentiles_ns")]] = msgspec.field(name="cells")


CaseTable = Wake | Feed | Hedge | Contention  # results that are tables of cases
AnyCase = Case | FeedCase | HedgeCase | ContentionCase


class Hardware(msgspec.Struct, frozen=True):
    """What a host is built of; hosts that agree in all of it are peers."""

    vendor: Annotated[str, Meta(description="Of the server, as DMI has it.")] = ""
    product: str = ""
    cpu_model: str = ""
    sockets: Count = 0
    cores: Count = 0
    cpus: Count = 0
    numa_nodes: Count = 0
    hypervisor: Annotated[str, Meta(description="Empty on bare metal.")] = ""


class CpuSets(msgspec.Struct, frozen=True):
    """Which CPUs were judged, as cpulists."""

    online: Annotated[Cpulist, Maybe] = ""
    isolated: Annotated[Cpulist, Maybe] = ""
    housekeeping: Annotated[Cpulist, Maybe] = ""
    source: Annotated[str, Meta(description="Who says which CPUs are isolated.")] = msgspec.field(
        default="", name="from"
    )
    cores: Annotated[
        list[Cpulist], Meta(description="CPUs that share a core; none where each has its own."), Maybe
    ] = []
    nodes: Annotated[list[Cpulist], Meta(description="The CPUs of each NUMA node, in the nodes' order."), Maybe] = []


class NextWaiver(msgspec.Struct, frozen=True):
    """Of the waivers that stand, the one that expires next."""

    target: str
    until: Annotated[str, Meta(description="The last day on which it holds.", extra_json_schema={"format": "date"})]
    reason: str


class Waivers(msgspec.Struct, frozen=True):
    """Of the host file."""

    standing: Count = 0
    expired: Count = 0
    next: NextWaiver | None = None
    expired_targets: Annotated[list[str], Meta(description="What those that have expired were for."), Maybe] = []


class Section(msgspec.Struct, frozen=True):
    """A part of a preflight with findings of its own."""

    verdict: Annotated[
        str, Meta(extra_json_schema={"enum": ["compliant", "drifted", "pending-reboot", "unreadable"]})
    ] = ""
    findings: list[JudgedTarget] = []
    notes: Notes = []
    unconfirmed: Waits = UNSET
    returned: CameBack = UNSET


class Thermal(msgspec.Struct, frozen=True):
    """What two samples say of clocks and heat."""

    verdict: Annotated[str, Meta(extra_json_schema={"enum": ["ok", "throttled", "unknown"]})] = ""
    findings: list[JudgedTarget] = []
    evidence: dict[str, Any] = {}


class Beside(LeftOut, frozen=True, kw_only=True):
    """An isolated CPU where somebody else's threads ran: judged by what the kernel counts there, not probed."""

    threads: Annotated[list[str], Meta(description="Who ran there.")] = []
    duration_s: Amount = 0.0
    spins: Annotated[bool, Meta(description="Did one of them keep the CPU busy?")] = False
    interrupts: Count = 0
    lost_turns: Annotated[Count, Meta(description="How often they lost the CPU against their will.")] = 0
    waited_ns: Annotated[Count, Meta(description="How long they were runnable and did not run.")] = 0
    steal_ns: Annotated[Count, Meta(description="Taken by the hypervisor.")] = 0
    percentiles: Annotated[str, Meta(extra_json_schema={"enum": ["not measured"]})] = "not measured"


class Action(msgspec.Struct, frozen=True):
    """What to do about a host, in that host's words; of `kind` and `arguments` a reader makes the same in its own."""

    mends: Annotated[
        list[str],
        Meta(description="Targets, the worst severity first; probe.budget for the budget; none of what `apply` needs."),
    ]
    command: Annotated[str, Meta(description="Typed as it stands."), Maybe] = ""
    decide: Annotated[str, Meta(description="What only the operator can decide, or do by hand."), Maybe] = ""
    kind: Annotated[str, Meta(description="A name of tunectl/kinds.py, or boot-words."), Maybe] = ""
    arguments: Annotated[dict[str, Any], Meta(description="Of this kind: tid, irq, cpus, unit, words, ..."), Maybe] = {}
    note: Annotated[str, Meta(description="What else is to be known of it."), Maybe] = ""
    reboot: Annotated[bool, Meta(description="Some of it is in force only after a reboot.")] = False


class Preflight(msgspec.Struct, frozen=True):
    """What `tunectl preflight` says: may this host trade?"""

    verdict: Annotated[str, Meta(extra_json_schema={"enum": ["go", "no-go", "pending-reboot", "unknown"]})]
    probe: Jitter | None
    strict: Annotated[bool, Meta(description="Was what could not be found out asked to fail?"), Maybe] = False
    load: Annotated[list[str], Meta(description="The loads that were asked for; empty without."), Maybe] = []
    loaded: Annotated[Jitter | None, Meta(description="The same under load, where one was started."), Maybe] = None
    is_feed_asked: Annotated[bool, Meta(description="Whether `probe feed` was asked for."), Maybe] = False
    feed: Annotated[Feed | None, Meta(description="Its result, where it could be measured."), Maybe] = None
    reasons: Annotated[list[str], Meta(description="Why the verdict is not GO.")] = []
    reasons_about: Annotated[
        list[str],
        Meta(description="For each reason the knob, or what was measured where a limit broke, or nothing."),
        Maybe,
    ] = []
    actions: Annotated[
        list[Annotated[Action, one_of("command", "decide")]],
        Meta(description="In the order to do them, each thing once."),
        Maybe,
    ] = []
    hardware: Annotated[Hardware | None, Maybe] = None  # tunectl 0.1.0 did not say
    firmware: Annotated[Firmware, Maybe] = Firmware()
    smis: Annotated[Smis | UnsetType, Meta(description="While it ran, all parts together.")] = UNSET
    cpu_sets: Annotated[CpuSets, Meta(description="Which CPUs were judged."), Maybe] = CpuSets()
    headline: Annotated[str, Meta(description="The verdict in words, with its terms."), Maybe] = ""
    looser: Annotated[list[Looser], Maybe] = []
    beside: Annotated[list[Beside], Maybe] = []
    waivers: Annotated[Waivers, Maybe] = Waivers()
    verify: Section | None = None
    check: Section | None = None
    thermal: Thermal | None = None
    notes: Annotated[list[str], Meta(description="What the reader should know beside the result.")] = []
    unconfirmed: Waits = UNSET
    intrude: Annotated[bool, Meta(description="Was it asked to measure beside others' threads?"), Maybe] = False
    host: Annotated[Host, Maybe] = Host()
    at: Annotated[str, Maybe] = ""
    tunectl_version: Annotated[str, Maybe] = ""


def typed(document: Any, shape: type[Shape], where: str = "") -> Shape:
    """A document as one of these. TunectlError in one line: `where` it comes from, the key, what would be right."""
    try:
        return msgspec.convert(document, shape)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        named = [where] if where else []
        raise TunectlError(": ".join([*named, place.strip("`.") or "the document", what])) from error


def now_utc(later_s: float = 0.0) -> str:
    """The wall clock in so many seconds, as documents have it: UTC, RFC 3339."""
    at = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=later_s)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def replaced(shape: Kept, **changes: Any) -> Kept:
    """The same with other values in these fields."""
    return msgspec.structs.replace(shape, **changes)


def plain(shape: object) -> Any:
    """The same as a document."""
    return msgspec.json.decode(msgspec.json.encode(shape))


_SIMPLE = frozenset({str, int, bool, type(None)})  # of thousands of rows nearly all


def fields_of(value: Any) -> Any:
    """The same of a document that is made here: what is UNSET is left out; findings, fixes and commands stay typed."""
    if isinstance(value, msgspec.Struct):
        named = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        fields = ((name, getattr(value, field)) for name, field in named)
        return {
            name: field if type(field) in _SIMPLE else fields_of(field) for name, field in fields if field is not UNSET
        }
    if type(value) is dict:
        return {key: fields_of(item) for key, item in value.items()}
    is_typed = type(value) in (list, tuple) and value and isinstance(value[0], msgspec.Struct)
    return [*map(fields_of, value)] if is_typed else value


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
