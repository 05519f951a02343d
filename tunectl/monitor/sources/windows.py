"""Latencies by window: P99.9 and the longest of any stretch of that length, wherever it begins. None is averaged.

A window slides in slots of a tenth of its length. Whenever it begins, it lies within eleven slots in a row. These are
judged together, the last one while it is still open: all their misses, against what is allowed in the emptiest window
among them. So no window that breaks the promise is overlooked. What cannot be told apart is a miss in the first or the
last slot that is just outside: docs/alerts.md says which false alarms that makes.

Messages are counted in log-linear buckets, 512 to each power of two. A percentile is given as its bucket's upper end:
it is never too low, and too high by less than 0.2 %. The promised length ends a bucket, so that misses are counted
exactly. The longest is exact. The sentinel's gaps are weighed by their length: a message that arrives at a random
moment waits for the rest of the gap it falls into (docs/interface.md, arrival_ns).
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from math import floor
from typing import Generic, NamedTuple, Protocol, TypeVar

from tunectl.cpulist import CpuSet
from tunectl.monitor.model import Freshness, Sample
from tunectl.probe.lengths import Lengths

_SUB_BITS = 9
_MISSED = 1000  # one in so many may be longer than P99.9
SLOTS = 10  # of a window
_CELLS = 10  # of a slot: how much arrived is known by cell
_WHOLE = SLOTS * _CELLS  # cells of a window
KEPT = 3 * SLOTS  # slots whose worst is shown: bad windows with good ones between are one event
_DAY_S = 86_400.0
_SILENT = "nothing came in the last window"
_ROUNDING = 1e-6  # 0.3 / 0.1 is 3, whatever a float makes of it


class Judged(NamedTuple):
    """The worst window within some slots. None where nothing came in them."""

    p99_9_ns: float | None
    max_ns: float | None
    missed: int | None = None  # messages longer than promised; None where nothing is promised, and of gaps
    allowed: int = 0  # how many may be
    span_s: float = 0  # how long the slots lasted


class Tally(Protocol):
    """What a slot counts."""

    @property
    def size(self) -> float: ...  # messages, or ns that were spun: what a share of one in a thousand is of

    @property
    def max_ns(self) -> float | None: ...

    @property
    def arrived(self) -> int: ...


class Messages:
    """Latencies of single messages; those longer than `promised_ns` are misses."""

    def __init__(self, promised_ns: float | None = None) -> None:
        self.promised = -1 if promised_ns is None else floor(promised_ns)
        self.buckets: dict[int, int] = {}  # by the largest value of each
        self.size = 0
        self._max = -1

    def add(self, values: Iterable[int]) -> None:
        """Each in ns, 0 or more."""
        buckets, promised = self.buckets, self.promised
        for value in values:
            shift = value.bit_length() - _SUB_BITS - 1
            # Below 1,024 ns each value has its own bucket; above, the bucket is named by its largest value.
            key = value if shift <= 0 else value | ((1 << shift) - 1)
            if value <= promised < key:
                key = promised
            buckets[key] = buckets.get(key, 0) + 1
            self.size += 1
            if value > self._max:
                self._max = value

    @property
    def max_ns(self) -> float | None:
        """The longest so far."""
        return self._max if self.size else None

    @property
    def arrived(self) -> int:
        """How many came."""
        return self.size


def judge_messages(slots: Sequence[Messages], size: float) -> Judged:
    """P99.9 is what no more messages of all slots exceed than `size` messages are allowed (the nearest rank)."""
    longest = max((slot.max_ns for slot in slots if slot.max_ns is not None), default=None)
    if longest is None:
        return Judged(None, None)
    allowed, promised = int(size) // _MISSED, slots[0].promised
    p99_9, exceeding, missed = None, 0, 0
    for key in sorted({key for slot in slots for key in slot.buckets}, reverse=True):
        if p99_9 is not None and key <= promised:
            break
        count = sum(slot.buckets.get(key, 0) for slot in slots)
        exceeding += count
        missed += count if key > promised else 0
        if p99_9 is None and exceeding > allowed:
            p99_9 = min(float(key), longest)
            if promised < 0:
                break
    return Judged(longest if p99_9 is None else p99_9, longest, missed if promised >= 0 else None, allowed)


class Gaps:
    """A spinning thread's gaps, and how long it spun."""

    def __init__(self) -> None:
        self.groups: dict[float, int] = {}
        self.size = 0.0  # ns that were spun

    def add(self, groups: Iterable[tuple[float, int]], spun_ns: float) -> None:
        """Lengths in ns, each with how often it came."""
        self.size += spun_ns
        for length, count in groups:
            self.groups[length] = self.groups.get(length, 0) + count

    @property
    def max_ns(self) -> float | None:
        """The longest so far; 0 where it spun and was never away."""
        return max(self.groups, default=0.0) if self.size else None

    @property
    def arrived(self) -> int:
        """How many gaps there were."""
        return sum(self.groups.values())


def judge_gaps(slots: Sequence[Gaps], size: float) -> Judged:
    """P99.9 is the wait that no more moments of all slots exceed than are allowed of `size` ns of spinning."""
    if not any(slot.size for slot in slots):
        return Judged(None, None)
    lengths = Lengths(group for slot in slots for group in slot.groups.items())
    waited = lengths.wait_exceeded(size / _MISSED) if lengths.values else 0.0
    return Judged(waited, lengths.longest)


T = TypeVar("T", bound=Tally)


class Windows(Generic[T]):
    """The open slot, the ten before it, and how the last few closed slots were judged."""

    def __init__(
        self, window_s: float, make: Callable[[], T], judge: Callable[[Sequence[T], float], Judged], now: float
    ):
        self.has_heard = False  # anything, ever
        self.last: Judged | None = None  # the worst since the turn before; None while the first window is not over
        self.closed: deque[Judged] = deque(maxlen=KEPT)
        self._make, self._judge, self._start = make, judge, now
        self._cell_s = window_s / _WHOLE
        self._slots: deque[T] = deque([make()], maxlen=SLOTS + 1)
        self._cells: list[float] = [0]  # how much came in each of the slots' cells; the last one is open
        self._cell = 0  # the open one's number, from the start
        self._size_before = 0.0  # of the open slot, when the open cell began
        self._worst: list[Judged] = []  # since the turn before

    def at(self, moment: float) -> T:
        """The slot to count in what came at this moment; closes those that are over. A clock that went back stands."""
        target = floor((moment - self._start) / self._cell_s + _ROUNDING)
        # A host that was suspended slept through windows: there were none. After eleven empty slots all are alike.
        steps = target - self._cell
        most = (SLOTS + 2) * _CELLS
        for _ in range(steps if steps <= most else most + steps % _CELLS):
            self._step()
        self._cell = max(self._cell, target)
        return self._slots[-1]

    def _step(self) -> None:
        self._count()
        self._cell += 1
        if self._cell % _CELLS == 0:
            if (judged := self._judged()) is not None:
                self.closed.append(judged)
                self._worst.append(judged)
            if len(self._slots) > SLOTS:
                del self._cells[:_CELLS]
            self._slots.append(self._make())
        self._cells.append(0)
        self._size_before = self._slots[-1].size

    def _count(self) -> None:
        self._cells[-1] = self._slots[-1].size - self._size_before

    def _judged(self) -> Judged | None:
        """The slots as they are now; None while no whole window is in them."""
        self._count()
        if len(self._cells) <= _WHOLE:
            return None
        first, last = self._slots[0].size, self._slots[-1].size
        if first and last:
            # A window that begins within a cell has all of the next 99, whatever it has of the first and the last.
            sums = [0, *accumulate(self._cells)]
            size = min(sums[i + _WHOLE] - sums[i + 1] for i in range(len(self._cells) - _WHOLE))
        else:
            size = sum(slot.size for slot in self._slots)  # all that came is in ten slots: one window, known exactly
        return self._judge(list(self._slots), size)._replace(span_s=len(self._cells) * self._cell_s)

    def turn(self, now: float) -> None:
        """A look, to be taken after what came has been added: judges every window that ended since the last one."""
        self.at(now)
        self.has_heard |= any(slot.max_ns is not None for slot in self._slots)
        judged = self._judged()
        self._worst += [judged] if judged is not None else []
        self.last = max(self._worst, key=_badness, default=None)
        if self.last is not None:
            self.last = self.last._replace(max_ns=_most(one.max_ns for one in self._worst))
        self._worst = []

    @property
    def open_max_ns(self) -> float | None:
        """The longest so far of the slots, the open one among them."""
        return _most(slot.max_ns for slot in self._slots)

    @property
    def silence(self) -> str:
        """Why nothing can be said: in no window that ended since the look before did anything come. "" otherwise."""
        return _SILENT if self.last and self.last.max_ns is None else ""

    def samples(self, subject: str, source: str, cpus: CpuSet = frozenset(), note: str = "") -> Iterator[Sample]:
        """The worst window since the look before, the worst of the last few, what came so far."""

        def sample(quantity: str, value: float | None, why: str) -> Sample:
            if value is not None:
                return Sample(quantity, subject, value, source, reason=note, cpus=cpus)
            freshness = Freshness.NO_DATA if self.last else Freshness.STALE
            return Sample(quantity, subject, None, source, freshness, "; ".join(filter(None, (why, note))), cpus)

        last = self.last
        silent = _SILENT if last else "the first window is not over"
        yield sample("latency_p99_9_ns", last.p99_9_ns if last else None, silent)
        yield sample("latency_max_ns", last.max_ns if last else None, silent)
        count = sum(slot.arrived for slot in list(self._slots)[:-1]) if last and self.has_heard else None
        yield sample("latency_count", count, "nothing has come yet" if last else silent)
        worst = [*self.closed, last] if last else []
        yield sample("latency_worst_p99_9_ns", _most(one.p99_9_ns for one in worst), silent)
        yield sample("latency_worst_max_ns", _most(one.max_ns for one in worst), silent)
        if self.open_max_ns is not None:
            yield sample("latency_open_max_ns", self.open_max_ns, "")
        if last and last.missed is not None:
            yield sample("latency_missed", last.missed, "")
            yield sample("latency_allowed", last.allowed, "")
            yield sample("latency_missed_per_day", round(last.missed * _DAY_S / last.span_s), "")


def _badness(judged: Judged) -> tuple[float, int]:
    return -1.0 if judged.p99_9_ns is None else judged.p99_9_ns, judged.missed or 0


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
