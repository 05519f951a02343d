"""What `tunectl-probe feed` writes (tunectl.probe.feed.raw/1), as types: counts and ticks, and nothing that judges."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from tunectl.experiments.pair_facts import Count, PairRun, Values, read_run, uneven
from tunectl.shapes import FEED_STAGES

SCHEMA = "tunectl.probe.feed.raw/1"
_OF_PROFILE = 3 + len(FEED_STAGES)
# From tick, to tick, how many messages, and of these the sum of each stage in ticks.
Profile = Annotated[list[int], Meta(min_length=_OF_PROFILE, max_length=_OF_PROFILE)]


class Stamps(msgspec.Struct, frozen=True, kw_only=True):
    """The kernel's receive stamps."""

    asked: Literal["sw", "hw", "off"]
    kind: Literal["sw", "hw", "off"]
    reason: str = ""  # why they are off though they were asked for
    were_on: bool | None = None  # somebody else had switched them on already; None: unknown
    uncertainty_ticks: Count | None = None
    stepped: bool = False  # CLOCK_REALTIME was set meanwhile


class Drops(msgspec.Struct, frozen=True, kw_only=True):
    """What the kernel dropped meanwhile; None where nobody counted."""

    socket: Count | None = None
    softnet: Count | None = None
    nic: Count | None = None


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """The run in equal intervals: messages by when they were due, the sum of their times and the longest, in ticks."""

    start: Count
    interval_ticks: Annotated[int, Meta(gt=0)]
    intervals: list[tuple[Count, int, int]]


class RawCase(msgspec.Struct, frozen=True, kw_only=True):
    """One combination of transport, format and the rest."""

    transport: str
    format: str
    symbols: Count
    rate: Count  # messages a second
    burst: Count
    waiting: Literal["poll", "poll0", "busy-poll"]
    tls: str
    alloc: Count
    reason: str = ""  # why it was not measured
    warm_ups: Count = 0
    due: Count = 0
    sent: Count = 0
    arrived: Count = 0  # first copies that reached the book
    doubled: Count = 0
    reordered: Count = 0
    grown: Count = 0  # shorter in the capture that is replayed than any of ours is
    strangers: Count = 0  # packets that are no messages of this run
    unsent: Count = 0
    unsent_ticks: Values = []  # from when each was due to the end
    reads: Count = 0  # that brought a whole message
    batch_sizes: Values = []  # messages of a read, and how many reads
    stamped: bool = False
    stamps: Stamps | None = None
    stamp_shared: Count = 0
    negative: dict[str, Count] = {}
    drops: Drops = Drops()
    allocations: Count = 0
    minor_faults: Count = 0
    major_faults: Count = 0
    involuntary_switches: Count = 0
    voluntary_switches: Count = 0
    sender_involuntary_switches: Count = 0
    sender_voluntary_switches: Count = 0  # it spins, so only a stop makes it leave its CPU by itself
    throttled_us: Count = 0  # the cgroups that hold the probe, by their cpu.max
    receiver_ns: Count = 0  # CPU time of the receiver in the measured time,
    receiver_ticks: Count = 0  # and how long that was
    close_code: Count = 0
    napi_id: Count = 0
    failed: Literal["", "sending", "receiving"] = ""
    errno: Count = 0
    total: Values = []
    late: Values = []
    stages: dict[str, Values] = {}
    profile: list[Profile] = []
    series: Series | None = None

    @property
    def lost(self) -> int:
        """Sent, and never there."""
        return self.sent - self.arrived


class RawFeed(PairRun[RawCase], frozen=True, kw_only=True):
    """A whole run."""


def read_raw(document: dict[str, Any]) -> RawFeed:
    """The document as types. TunectlError with the place of what is wrong."""
    return read_run(document, RawFeed, SCHEMA, _contradiction)


def _contradiction(case: RawCase) -> str:
    """What no type says: a file that was edited, or cut and mended, does not add up."""
    if case.reason:
        return ""
    lists = {"unsent_ticks": case.unsent_ticks, "batch_sizes": case.batch_sizes, "total": case.total, "late": case.late}
    spreads = {f"stages.{name}": values for name, values in case.stages.items()}
    return uneven({**lists, **spreads}) or _counts(case) or _stages(case) or _profile(case)


def _counts(case: RawCase) -> str:
    if case.sent + case.unsent != case.due:
        return f"{case.sent} sent and {case.unsent} unsent are not the {case.due} messages that were due"
    if case.lost < 0:
        return f"{case.arrived} messages arrived, and {case.sent} were sent"
    for name, values, expected in (
        ("total", case.total, case.arrived),
        ("unsent_ticks", case.unsent_ticks, case.unsent),
        ("batch_sizes", case.batch_sizes, case.reads),
    ):
        if (held := sum(values[1::2])) != expected:
            return f"{name} holds {held} of {expected}"
    if case.total and case.total[0] < 0:
        return "a message reached the book before it was due: the counters of the two CPUs have no common time"
    return ""


def _stages(case: RawCase) -> str:
    if missing := [name for name in FEED_STAGES if name not in case.stages or name not in case.negative]:
        return f"stages and negative: {missing[0]} is missing"
    for name in FEED_STAGES:
        expected = 0 if name == "wire" and not case.stamped else case.arrived
        if (held := sum(case.stages[name][1::2])) != expected:
            return f"stages.{name} holds {held} of {expected}"
    return ""


def _profile(case: RawCase) -> str:
    if (held := sum(row[2] for row in case.profile)) != case.arrived:
        return f"profile holds {held} of {case.arrived}"
    for place, (first, end, count, *stages) in enumerate(case.profile):
        if not first * count <= sum(stages) <= end * count:
            return f"profile[{place}]: its stages do not add up to its messages' times"
    if case.series and (held := sum(count for count, _, _ in case.series.intervals)) != case.arrived:
        return f"series holds {held} of {case.arrived}"
    return ""
