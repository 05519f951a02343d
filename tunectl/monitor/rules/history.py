"""What the rules judge: the last snapshots, indexed, and the limits of the host file. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from math import isfinite
from typing import NamedTuple, TypeVar, cast

from tunectl.cpulist import CpuSet
from tunectl.host.counters import INTERRUPTS, THROTTLES, rise
from tunectl.hostfile.config import HostConfig
from tunectl.hostfile.shape import Clock
from tunectl.monitor.model import Condition, Freshness, Health, Sample, Snapshot

T = TypeVar("T")

# What is read of many: one of them that could be read and cannot any more is a loss, however many others still can.
_PARTS = frozenset(
    {"temperature_mc", "cooling_state", "bios_limit_khz", "max_khz", "core_throttles", "package_throttles"}
    | {"clock_error_ns"}
)
# Enough for a counter that could not be read for a while; what lasts longer is the alerts' business.
DEPTH = 16


class Limits(NamedTuple):
    """What the host file promises. A limit that is None is not judged."""

    min_ratio: float = 0.9  # of the base frequency: the least that is no drop
    base_khz: int | None = None  # the host file's own base frequency, over what the host says
    p99_9_ns: float | None = None
    max_ns: float | None = None
    isolated: CpuSet = frozenset()
    clock_ns: float = Clock().limit_ns  # how far the clock may be from UTC

    @classmethod
    def of(cls, config: HostConfig) -> Limits:
        """[thermal] and [monitor.sla] of a host file, made concrete."""
        thermal, sla = config.thermal, config.monitor.sla
        isolated, clock_ns = frozenset(config.scope.isolated), config.clock.limit_ns
        return cls(thermal.min_ratio, thermal.base_frequency_khz, sla.p99_9_ns, sla.max_ns, isolated, clock_ns)


class Seen(NamedTuple):
    """A snapshot, and its samples by quantity and subject."""

    snapshot: Snapshot
    samples: Mapping[str, Mapping[str, Sample]]

    def get(self, quantity: str) -> Mapping[str, Sample]:
        """The samples of one quantity by their subject."""
        return self.samples.get(quantity, {})


class History:
    """The last snapshots, newest last; never more than `DEPTH` of them."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._seen: deque[Seen] = deque(maxlen=DEPTH)
        self._found: dict[object, object] = {}
        self._kept: dict[object, tuple[list[object], object]] = {}
        self.lost: dict[tuple[str, str], Sample] = {}  # by quantity and subject: what was fresh, and has no data since

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, snapshot: Snapshot) -> None:
        """The newest snapshot. Of two samples of one quantity and subject the last counts."""
        samples: dict[str, dict[str, Sample]] = {}
        lost: dict[tuple[str, str], Sample] = {}
        for sample in snapshot.samples:
            if sample.freshness is Freshness.NO_DATA and sample.quantity in _PARTS and self._could_be_read(sample):
                lost[sample.quantity, sample.subject] = sample
            of_quantity = samples.get(sample[0])
            if of_quantity is None:
                of_quantity = samples[sample[0]] = {}
            of_quantity[sample[1]] = sample
        self._seen.append(Seen(snapshot, samples))
        self.lost = lost
        self._found.clear()

    def _could_be_read(self, sample: Sample) -> bool:
        before = self._seen[-1].get(sample.quantity).get(sample.subject) if self._seen else None
        is_fresh = before is not None and before.freshness is Freshness.FRESH
        return is_fresh or (sample.quantity, sample.subject) in self.lost

    def once(self, find: Callable[[History], T]) -> T:
        """find(self), computed once for each snapshot: several rules need the same."""
        if find not in self._found:
            self._found[find] = find(self)
        return cast("T", self._found[find])

    def while_same(self, quantities: tuple[str, ...], find: Callable[[History], T], *also: object) -> T:
        """find(self), computed again only when a sample of these quantities, or `also`, has changed."""
        given = [*(self.get(quantity) for quantity in quantities), *also]
        kept = self._kept.get(find)
        # Sources hand in the same object while nothing changed, and that is what a comparison looks at first.
        if kept is None or kept[0] != given:
            kept = self._kept[find] = (given, find(self))
        return cast("T", kept[1])

    def without_newest(self) -> History:
        """As it was one snapshot ago."""
        earlier = History(self.limits)
        earlier._seen.extend(list(self._seen)[:-1])
        return earlier

    @property
    def now(self) -> Snapshot:
        """The newest snapshot; IndexError where there is none yet."""
        return self._seen[-1].snapshot

    def get(self, quantity: str) -> Mapping[str, Sample]:
        """The newest snapshot's samples of one quantity by their subject."""
        return self._seen[-1].get(quantity)

    def earlier(self, quantity: str, subject: str) -> Sample | None:
        """The last fresh sample before now: a rise is counted from it."""
        return next(
            (sample for sample in self.all_earlier(quantity, subject) if sample.freshness is Freshness.FRESH), None
        )

    def is_same(self, sample: Sample) -> bool:
        """Is it the same object as in the snapshot before? Most are, on a quiet host."""
        return len(self._seen) > 1 and self._seen[-2].get(sample.quantity).get(sample.subject) is sample

    def previous(self, quantity: str) -> Mapping[str, Sample]:
        """The samples of the snapshot before; empty where there is none."""
        return self._seen[-2].get(quantity) if len(self._seen) > 1 else {}

    def all_earlier(self, quantity: str, subject: str) -> Iterator[Sample]:
        """The samples of one subject before now, newest first."""
        for seen in self._backwards():
            sample = seen.get(quantity).get(subject)
            if sample is not None:
                yield sample

    def rise(self, sample: Sample) -> int | None:
        """How far a counter rose since it was last read; None where it is unknown: at first, stale, or begun anew."""
        now = number(sample)
        if now is None or self.is_same(sample):
            return None if now is None else 0
        then = number(self._last(sample))
        bits = THROTTLES if sample.quantity.endswith("_throttles") else INTERRUPTS  # as wide as the kernel keeps it
        return None if then is None else rise(int(then), int(now), bits)

    def _last(self, sample: Sample) -> Sample | None:
        """The last fresh one of a counter that was not away meanwhile; one that could not be read is still the same."""
        for seen in self._backwards():
            of_quantity = seen.get(sample.quantity)
            earlier = of_quantity.get(sample.subject)
            if earlier is not None and earlier.freshness is Freshness.FRESH:
                return earlier
            dark = earlier or of_quantity.get("host") or seen.get("source").get(sample.source)
            if dark is None or dark.freshness is not Freshness.NO_DATA:
                return None
        return None

    def _backwards(self) -> Iterator[Seen]:
        return islice(reversed(self._seen), 1, None)


def number(sample: Sample | None) -> float | None:
    """A fresh sample's value as a number; None where there is none, or it must not be judged."""
    if sample is None or sample.freshness is not Freshness.FRESH or isinstance(sample.value, str | None):
        return None
    return sample.value if isfinite(sample.value) else None


_WRONG = {
    Freshness.FRESH: "there is nothing yet to compare it with",
    Freshness.STALE: "it says nothing about now",
    Freshness.NO_DATA: "it could not be read",
    Freshness.ABSENT: "this host has none",
}


def why_unknown(sample: Sample) -> str:
    """Why a sample cannot be judged; never empty. The reason of a fresh one explains its value, not what it lacks."""
    reason = sample.reason if sample.freshness is not Freshness.FRESH else ""
    return reason or f"{sample.quantity} of {sample.subject}: {_WRONG[sample.freshness]}"


def unknown(rule: str, sample: Sample, why: str = "") -> Condition:
    """What a rule says of a sample that cannot be judged."""
    summary = why or why_unknown(sample)
    return Condition(rule, sample.subject, Health.UNKNOWN, source=sample.source, summary=summary)


# What is read once and kept: it is no sign that its source can still be read.
_KEPT = frozenset({"base_khz", "highest_khz", "trip_mc"})


def silent_sources(snapshot: Snapshot) -> dict[str, tuple[Freshness, str]]:
    """The sources that were read and gave nothing fresh, or raised: the worse of their states, and why."""
    fresh = Freshness.FRESH
    heard = {sample.source for sample in snapshot.samples if sample.freshness is fresh and sample.quantity not in _KEPT}
    silent: dict[str, tuple[Freshness, str]] = {}
    for sample in [sample for sample in snapshot.samples if sample.freshness is not fresh]:
        source, freshness = sample.source, sample.freshness
        if sample.quantity == "source":  # it raised: what it gave before says nothing about the rest
            silent[source] = (Freshness.NO_DATA, sample.reason)
        elif source not in heard and (
            freshness is Freshness.NO_DATA or (freshness is Freshness.STALE and source not in silent)
        ):
            silent[source] = (freshness, sample.reason)
    return silent
