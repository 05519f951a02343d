"""What `tunectl-probe wake` writes (tunectl.probe.wake.raw/1), as types: counts and ticks, and nothing that judges."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from tunectl.experiments.pair_facts import Count, PairRun, Values, read_run, uneven

SCHEMA = "tunectl.probe.wake.raw/1"


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What the kernel said at one moment, as it stood."""

    ticks: Count
    tids: tuple[Count, Count, Count]  # the receiver, the sender, the probe's main thread
    files: dict[str, str]  # /proc/schedstat, else /proc/stat, and the schedstat of these threads, by path

    def line(self, path: str, cpu: int) -> str:
        """The line of a CPU in one of the first two; "" where there is none."""
        found = (line for line in self.files.get(path, "").splitlines() if line.startswith(f"cpu{cpu} "))
        return next(found, "")

    @property
    def threads(self) -> list[str]:
        """/proc/PID/task/TID/schedstat of each, "" where it could not be read."""
        return [self.files.get(f"/proc/self/task/{tid}/schedstat", "") for tid in self.tids]


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
    throttled_us: Count = 0  # the cgroups that hold the probe, by their cpu.max
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


class RawWake(PairRun[RawCase], frozen=True, kw_only=True):
    """A whole run."""

    messages: Count
    bytes: Count
    fds: Count
    dirty_kib: Count
    has_warm_sender: bool


def read_raw(document: dict[str, Any]) -> RawWake:
    """The document as types. TunectlError with the place of what is wrong."""
    return read_run(document, RawWake, SCHEMA, _contradiction)


def _contradiction(case: RawCase) -> str:
    """What no type says: a file that was edited, or cut and mended, does not add up."""
    spreads = {name: getattr(case, name) for name in ("delay", "after_send", "send_call", "late", "far", "away")}
    held = sum(case.delay[1::2]) + case.negative
    if held == case.arrived or case.reason:
        return uneven(spreads)
    return uneven(spreads) or f"delay holds {held} of {case.arrived} messages that arrived"
