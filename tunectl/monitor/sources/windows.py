"""Latencies by window: P99.9 and the longest of each. A window is closed whole; windows are never averaged.

Messages are counted in log-linear buckets, 512 to each power of two. A percentile is given as its bucket's upper end:
it is never too low, and too high by less than 0.2 %. The longest is exact. The sentinel's gaps are weighed by their
length: a message that arrives at a random moment waits for the rest of the gap it falls into (docs/interface.md,
arrival_ns).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, Protocol, TypeVar

from tunectl.cpulist import CpuSet
from tunectl.monitor.model import Freshness, Sample
from tunectl.probe.lengths import Lengths

_SUB_BITS = 9
MOST_NS = (1 << 63) - 1  # a longer latency is a mistake
KEPT = 3  # windows whose worst is shown: bad ones with good ones between are one event


class Closed(NamedTuple):
    """A window that is over. None where nothing came in it."""

    p99_9_ns: float | None
    max_ns: float | None
    arrived: int


class Tally(Protocol):
    """What a window counts."""

    @property
    def max_ns(self) -> float | None: ...

    def close(self) -> Closed: ...


class Messages:
    """Latencies of single messages."""

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self._max = -1
        self._count = 0

    def add(self, values: Iterable[int]) -> None:
        """Each in ns, 0 to MOST_NS."""
        buckets = self._buckets
        for value in values:
            shift = value.bit_length() - _SUB_BITS - 1
            # Below 1,024 ns each value has its own bucket; above, the bucket is named by its largest value.
            key = value if shift <= 0 else value | ((1 << shift) - 1)
            buckets[key] = buckets.get(key, 0) + 1
            self._count += 1
            if value > self._max:
                self._max = value

    @property
    def max_ns(self) -> float | None:
        """The longest so far."""
        return self._max if self._count else None

    def close(self) -> Closed:
        """The nearest-rank P99.9."""
        if not self._count:
            return Closed(None, None, 0)
        rank, seen = -(-self._count * 999 // 1000), 0
        for key in sorted(self._buckets):
            seen += self._buckets[key]
            if seen >= rank:
                return Closed(min(key, self._max), self._max, self._count)
        raise AssertionError("no rank is beyond the last")


class Gaps:
    """A spinning thread's gaps, and how long it spun."""

    def __init__(self) -> None:
        self._groups: dict[float, int] = {}
        self._spun_ns = 0.0

    def add(self, groups: Iterable[tuple[float, int]], spun_ns: float) -> None:
        """Lengths in ns, each with how often it came."""
        self._spun_ns += spun_ns
        for length, count in groups:
            self._groups[length] = self._groups.get(length, 0) + count

    @property
    def max_ns(self) -> float | None:
        """The longest so far; 0 where it spun and was never away."""
        return max(self._groups, default=0.0) if self._spun_ns else None

    def close(self) -> Closed:
        """The wait that 999 of 1,000 moments of the spinning do not exceed."""
        if not self._spun_ns:
            return Closed(None, None, 0)
        lengths = Lengths(self._groups.items())
        waited = lengths.wait_exceeded(self._spun_ns / 1000) if self._groups else 0.0
        return Closed(waited, lengths.longest, lengths.count)


T = TypeVar("T", bound=Tally)


class Windows(Generic[T]):
    """The open window and the last few that are closed."""

    def __init__(self, window_s: float, make: Callable[[], T], now: float) -> None:
        self.open = make()
        self.closed: deque[Closed] = deque(maxlen=KEPT)
        self.has_heard = False  # anything, ever
        self._window_s, self._make = window_s, make
        self._end = now + window_s

    def turn(self, now: float) -> None:
        """Closes the open window when it is over; to be called after what came has been added."""
        self.has_heard |= self.open.max_ns is not None
        if now < self._end:
            return
        self.closed.append(self.open.close())
        self.open = self._make()
        # A host that was suspended slept through windows: there were none.
        self._end = max(self._end + self._window_s, now + self._window_s / 2)

    def samples(self, subject: str, source: str, cpus: CpuSet = frozenset(), note: str = "") -> Iterator[Sample]:
        """The last closed window, the worst of the last few, the open one so far."""

        def sample(quantity: str, value: float | None, why: str) -> Sample:
            if value is not None:
                return Sample(quantity, subject, value, source, reason=note, cpus=cpus)
            freshness = Freshness.NO_DATA if self.closed else Freshness.STALE
            return Sample(quantity, subject, None, source, freshness, why, cpus)

        last = self.closed[-1] if self.closed else None
        silent = "nothing came in the last window" if last else "the first window is not over"
        yield sample("latency_p99_9_ns", last.p99_9_ns if last else None, silent)
        yield sample("latency_max_ns", last.max_ns if last else None, silent)
        count = last.arrived if last and self.has_heard else None
        yield sample("latency_count", count, "nothing has come yet" if last else silent)
        worst = [closed for closed in self.closed if closed.max_ns is not None]
        yield sample("latency_worst_p99_9_ns", max((one.p99_9_ns or 0.0 for one in worst), default=None), silent)
        yield sample("latency_worst_max_ns", max((one.max_ns or 0.0 for one in worst), default=None), silent)
        if self.open.max_ns is not None:
            yield sample("latency_open_max_ns", self.open.max_ns, "")
