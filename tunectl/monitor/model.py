"""The monitor's vocabulary: what a source says, what a rule finds, what an alert carries. Pure data.

sources --Sample--> Snapshot --rules--> Condition --alerts--> Alert --receivers-->
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from tunectl.cpulist import CpuSet
from tunectl.fix import NOTHING, Fix
from tunectl.model import Finding, HostId, Scalar
from tunectl.shapes import Cpulist, Time
from tunectl.tuners.conflicts import Objection

Value = float | int | str | None
Verdict = Literal["ok", "warning", "critical", "unknown"]

# By knob the firmware's limit with which the kernel lowers it, a moment later (drivers/acpi/processor_perflib.c).
CLAMPED = {"cpufreq.max_khz": "bios_limit_khz"}
NO_BASE = "the base frequency is unknown: set thermal.base_frequency_khz in the host file"
CONTESTED = "contested"  # of a `manager` that runs: it writes what is asked for here, or may undo it


class Freshness(StrEnum):
    """May a sample be judged? No data and stale data are neither good nor bad."""

    FRESH = "fresh"
    STALE = "stale"  # there is a value, and it says nothing about now (a fallback, an old file)
    NO_DATA = "no-data"  # the host has it, and it could not be read now
    ABSENT = "absent"  # this host has no such thing


class Sample(NamedTuple):
    """One quantity of one subject at one moment, as one source read it."""

    quantity: str  # core_throttles, frequency_khz, interrupts, ...; the unit stands in the name
    subject: str  # cpu4, package0, thermal_zone3, irq42, irq.affinity[42], irqbalance
    value: Value
    source: str  # the source's name, SOURCES
    freshness: Freshness = Freshness.FRESH
    reason: str = ""  # why it is not fresh; of a fresh one what helps to understand the value
    cpus: CpuSet = frozenset()  # the CPUs the subject stands for
    seen: Finding | Objection | None = None  # of a `knob` how it was judged; of a `manager` that is contested, why
    # Of a thermal zone or cooling device its type; of an interrupt its device's name, as the kernel has it.
    kind: str = ""
    path: str = ""  # of a `device`: where it is in sysfs
    # Of a counter that a CPU keeps of something shared: core4, package0, irq42. Differences are of CPUs, then added.
    whole: str = ""


class Moment(msgspec.Struct, frozen=True):
    """A moment as the wall clock had it, and as a clock had it that nobody sets."""

    at: str  # UTC, RFC 3339
    up_s: float = 0.0  # CLOCK_BOOTTIME
    boot: str = ""  # which boot's; "": not known


class Snapshot(NamedTuple):
    """What one cycle saw."""

    monotonic_s: float  # CLOCK_BOOTTIME: clock steps do not move it, a suspended host does
    at: str  # UTC, RFC 3339
    samples: tuple[Sample, ...]
    boot: str = ""  # which boot's CLOCK_BOOTTIME

    @property
    def moment(self) -> Moment:
        """When it was taken."""
        return Moment(self.at, self.monotonic_s, self.boot)

    def of(self, *quantities: str) -> Iterable[Sample]:
        """The samples of these quantities."""
        return (sample for sample in self.samples if sample.quantity in quantities)


class Severity(StrEnum):
    """How soon somebody has to act."""

    CRITICAL = "critical"  # trading on this host is slower now
    WARNING = "warning"  # it will be, or nobody knows
    INFO = "info"


class Health(StrEnum):
    """How a rule judges one subject in one snapshot."""

    BAD = "bad"
    GOOD = "good"
    BETWEEN = "between"  # inside the hysteresis: neither fires nor resolves
    UNKNOWN = "unknown"  # no fresh data: neither fires nor resolves, and is never good


class Condition(NamedTuple):
    """One rule's judgement of one subject in one snapshot, with the evidence an alert would carry."""

    rule: str  # the rule's name, RULES; with `subject` it is the alert's identity
    subject: str
    health: Health
    observed: Value = None  # "to": what is seen now
    expected: Value = None  # "from": what it was or ought to be
    source: str = ""
    summary: str = ""  # one sentence: what happened to what
    fix: Fix = NOTHING
    cpus: CpuSet = frozenset()


class AlertState(StrEnum):
    """An alert is sent twice: once when it fires and once when it is over."""

    FIRING = "firing"
    RESOLVED = "resolved"


class AlertFields(msgspec.Struct, frozen=True, kw_only=True):
    """One cause, with its evidence, as every document has it."""

    rule: Annotated[str, Meta(description="FrequencyDrop, KnobDrift, ...")]
    subject: Annotated[str, Meta(description="What it is about: package0, cpu4, irq42, irq.affinity[42].")]
    status: AlertState
    severity: Severity
    since: Annotated[Time, Meta(description="The first bad sample.")]
    at: Annotated[Time, Meta(description="When it fired, or was resolved.")]
    observed: Annotated[Scalar, Meta(description="What is seen; the unit is the rule's, and stands in the summary.")]
    expected: Annotated[Scalar, Meta(description="What it was, or ought to be.")]
    source: Annotated[str, Meta(description="The source that says so.")]
    summary: Annotated[str, Meta(description="One sentence.")]
    fix: Annotated[str, Meta(description="What to do.")]
    cpus: Annotated[Cpulist, Meta(description="The CPUs it stands for; empty where it is about none.")]

    @property
    def identity(self) -> str:
        """FrequencyDrop[package0]: what makes two alerts the same cause."""
        return f"{self.rule}[{self.subject}]"


class Alert(AlertFields, frozen=True, kw_only=True):
    """The same with what tells its moments again after the wall clock was set; None: that is not known."""

    began: Moment | None = None
    came: Moment | None = None

    @property
    def event(self) -> str:
        """Two alerts of the same identity and event are the same one: since when, as it was first told."""
        return self.began.at if self.began else self.since

    def fields(self) -> dict[str, Any]:
        """As every document has it."""
        return {name: getattr(self, name) for name in AlertFields.__struct_fields__}


class Status(NamedTuple):
    """Everything there is to show after a cycle: for the exporters and the live view."""

    snapshot: Snapshot
    conditions: tuple[Condition, ...]
    firing: tuple[Alert, ...]
    recent: tuple[Alert, ...]  # the last transitions, newest first
    own: Mapping[str, float]  # about the monitor itself: cycle_seconds, cpu_seconds_total, cycles_total, ...
    isolated: CpuSet = frozenset()
    housekeeping: CpuSet = frozenset()
    host: HostId = HostId()
