"""Gaps joined with the events of the kernel's trace: what each gap was for. Pure.

Gaps and events of a CPU are both in the order of time and carry stamps of the same counter, so one pass does it. An
event says who has the CPU from there on; a gap is named after what held it longest, then the rest. While another thread
has the CPU, what interrupts that thread is no cause: the probe would not run either way.

Stamps that were brought to the counter may be off by a known error. Then an event belongs to the one gap that it can
have been in. Where it can have been in several, it is the cause of none, and a gap without another is not known.

Where the probe's own thread left the CPU, the kernel says how: stopped by a signal, asleep, or ready to run. A thread
that is ready while its CPU is idle is throttled. One that runs on, as the end of its gap shows, and was not given this
CPU back, runs on another CPU.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, StrEnum
from math import inf
from typing import NamedTuple

from msgspec.structs import replace

from tunectl import shapes


class Kind(StrEnum):
    """What a cause is one of; the value is for documents and pages."""

    TIMER = "timer"
    IRQ = "irq"
    IPI = "ipi"
    SOFTIRQ = "softirq"
    NMI = "nmi"
    FAULT = "page fault"
    THREAD = "thread"
    WORK = "work"
    STOP = "stop"
    THROTTLE = "throttle"
    WAIT = "wait"
    MIGRATION = "migration"
    OUTSIDE = "outside"
    UNKNOWN = "unknown"


class Cause(NamedTuple):
    """One thing that a CPU was taken for: `softirq TIMER`."""

    kind: Kind
    name: str


class State(Enum):
    """How a thread left its CPU (prev_state of sched_switch)."""

    READY = "ready"
    STOPPED = "stopped"
    ASLEEP = "asleep"


class Interruption(NamedTuple):
    """Of whatever runs: an interrupt, a softirq, a page fault."""

    cause: Cause


class Work(NamedTuple):
    """The thread that has the CPU says what it does with it."""

    cause: Cause


class Switch(NamedTuple):
    """The CPU goes from one thread to another; thread 0 is the idle CPU."""

    left: int
    state: State
    next: int
    cause: Cause


class Lost(NamedTuple):
    """Since the event before, some were lost; `running` had the CPU when the next one came."""

    running: int


Happening = Interruption | Work | Switch | Lost
Event = tuple[int, Happening]  # the counter, what happened


class Blurred(NamedTuple):
    """An event that may have been in one gap as in the next: it changes who has the CPU, and is the cause of none."""

    what: Happening


Placed = tuple[int, Happening | Blurred]


class Named(NamedTuple):
    """A gap's cause: what held the CPU longest, and all of it in words."""

    first: Cause
    label: str


def _whole(kind: Kind, label: str) -> Named:
    return Named(Cause(kind, label), label)


STOPPED = Cause(Kind.STOP, "stopped by a signal")
ASLEEP = Cause(Kind.WAIT, "the probe's own thread slept")
THROTTLED = Cause(Kind.THROTTLE, "throttled: cpu.max of its control group")
THROTTLED_FIFO = Cause(Kind.THROTTLE, "throttled: kernel.sched_rt_runtime_us")
MOVED = Cause(Kind.MIGRATION, "moved to another CPU")
_ANOTHER = Cause(Kind.THREAD, "another thread")

OUTSIDE = _whole(Kind.OUTSIDE, "not the kernel: hypervisor, SMI or hardware")
NOT_TRACED = _whole(Kind.UNKNOWN, "not known: events of the trace were lost")
ELSEWHERE = _whole(Kind.UNKNOWN, "not known: the probe was on another CPU, which was not traced for it")
UNSEEN = _whole(Kind.UNKNOWN, "not known: the trace lacks the switch back to the probe")
BLURRED = _whole(Kind.UNKNOWN, "not known: the trace's clock is too coarse to tell the gap of an event")
NOT_LISTED = _whole(Kind.UNKNOWN, "not known: beyond the list of events")

# The longest way into the kernel to its first event. A hypervisor that kept the CPU for longer hands over a pending
# interrupt when it gives it back: that one was not what took the time.
_WAY_IN_NS = 5000
# An interrupt from another CPU makes a guest leave for its hypervisor, which hands it over: so long that may take. What
# was longer was something else, and the interrupt came while it lasted.
_EXIT_NS = 100_000
PARTS_MOST = 4  # of a label; behind them it says "more"
LABELS_MOST = 1024  # of a CPU; beyond them a label has its first part only


class Joined(NamedTuple):
    """The gaps of a CPU with their causes: `of_gap` has an index into `causes` for each gap."""

    causes: list[Named]
    of_gap: list[int]
    events: int
    apart: int  # of the events: in no gap


def join(
    gaps: Sequence[Sequence[int]],
    events: Iterable[Event],
    own: int,
    hz: float,
    *,
    is_fifo: bool = False,
    is_cut: bool = False,
    has_moved: bool = True,
    error_ticks: int = 0,
    is_guest: bool = False,
) -> Joined:
    """The cause of each gap, [start, end, ...] in ticks, of the thread `own`.

    Both are in the order of time. `hz` is the counter's rate; `is_cut` says that events were lost behind the last one,
    `has_moved` that the kernel counted a move of the thread: without one it was on this CPU all the time. An event may
    be `error_ticks` earlier or later than its stamp. `is_guest` says that a hypervisor hands over what other CPUs send.
    """
    throttled = THROTTLED_FIFO if is_fifo else THROTTLED
    longest_exit = hz * _EXIT_NS / 1e9 if is_guest else 0.0
    joiner = _Joiner(gaps, own, hz * _WAY_IN_NS / 1e9, throttled, has_moved, error_ticks, longest_exit)
    joiner.take(joiner.placed(events) if error_ticks else events)
    joiner.finish(is_cut)
    return Joined(list(joiner.known), joiner.of_gap, joiner.events, joiner.apart)


class _Joiner:
    """One pass over the events of a CPU. Of the gap at hand it has what was gathered so far."""

    def __init__(
        self,
        gaps: Sequence[Sequence[int]],
        own: int,
        way_in: float,
        throttled: Cause,
        has_moved: bool,
        error: int,
        longest_exit: float,
    ) -> None:
        self.known: dict[Named, int] = {}
        self.of_gap: list[int] = []
        self.events = self.apart = 0
        self._gaps, self._own, self._way_in, self._throttled = gaps, own, way_in + error, throttled
        self._has_moved, self._error, self._longest_exit = has_moved, error, longest_exit
        self._was_here = False  # it left this CPU where no gap is known for it
        self._blurred: set[int] = set()  # the gaps that an event may have been in, or a neighbour of theirs
        self._last = 0  # ticks of the latest event
        self._away: Cause | None = None  # what has the CPU while the probe's thread has not
        self._state = State.READY  # how that left
        self._labels: dict[tuple[Cause, ...], Named] = {}
        # Of the gap at hand:
        self._is_entered = self._is_lost = False
        self._held: dict[Cause, int] = {}
        self._sent: Cause | None = None  # what another CPU sent, and the guest left for
        self._holder: Cause | None = None
        self._since = 0  # of the holder
        self._left: tuple[int, dict[Cause, int]] | None = None  # when the thread left, and what was held until then

    def take(self, events: Iterable[Placed]) -> None:
        start, end = self._bounds()
        what: Happening
        for ticks, event in events:
            self.events += 1
            while end < ticks:
                self._close(type(event) is Lost and end + self._error > self._last)
                start, end = self._bounds()
            inside = start <= ticks
            if isinstance(event, Blurred):
                inside, what = False, event.what
                self._was_here |= type(what) is Switch and what.left == self._own
            else:
                what = event
                self.apart += not inside
            if inside and not self._is_entered:
                self._enter(start)
            # The most frequent kind first, and the rest out of the way.
            if type(what) is Interruption:
                if inside and self._away is None:
                    self._hold(what.cause, ticks)
            else:
                self._turn(what, ticks, inside)
            self._last = ticks

    def finish(self, is_cut: bool) -> None:
        while len(self.of_gap) < len(self._gaps):
            self._close(is_cut and self._gaps[len(self.of_gap)][1] + self._error > self._last)

    def placed(self, events: Iterable[Event]) -> Iterator[Placed]:
        """Each event in the one gap that it can have been in, and between those where it can have been in several."""
        gaps, error, first = self._gaps, self._error, 0
        for ticks, what in events:
            while first < len(gaps) and gaps[first][1] + error < ticks:
                first += 1
            beyond = first
            while beyond < len(gaps) and gaps[beyond][0] - error <= ticks:
                beyond += 1
            if beyond == first:
                yield ticks, what
            elif beyond == first + 1 or type(what) is Lost:
                yield min(max(ticks, gaps[beyond - 1][0]), gaps[beyond - 1][1]), what
            else:
                self._blurred.update(range(first, beyond))
                yield gaps[beyond - 1][0] - 1, Blurred(what)

    def _bounds(self) -> tuple[float, float]:
        """Of the gap at hand; behind the last one no event is inside, and nothing ends."""
        at = len(self.of_gap)
        return (self._gaps[at][0], self._gaps[at][1]) if at < len(self._gaps) else (inf, inf)

    def _enter(self, start: float) -> None:
        """The gap at hand begins. Whoever has the CPU while the probe's thread runs, that thread is elsewhere."""
        self._is_entered = True
        self._holder, self._since = self._away, int(start)

    def _hold(self, cause: Cause, ticks: int) -> None:
        """From here on this cause has the CPU. What is before a gap's first event is its way in, unless it was long."""
        held = self._held
        before = self._holder or (cause if ticks - self._since <= self._way_in else OUTSIDE.first)
        if before == OUTSIDE.first and cause.kind is Kind.IPI and ticks - self._since <= self._longest_exit:
            self._sent = cause
        held[before] = held.get(before, 0) + ticks - self._since
        if cause not in held:
            held[cause] = 0
        self._holder, self._since = cause, ticks

    def _turn(self, what: Happening, ticks: int, inside: bool) -> None:
        """An event that says who has the CPU."""
        if type(what) is Lost:
            self._is_lost = inside
            self._away, self._state = (None if what.running == self._own else _ANOTHER), State.READY
        elif type(what) is Work:
            if self._away is not None and self._state is State.READY:
                self._take(what.cause, ticks, inside)
        elif type(what) is Switch and what.next == self._own:
            self._come_back(ticks, inside)
        elif type(what) is Switch:
            if what.left == self._own:
                self._leave(what.state, ticks, inside)
            taker = what.cause if what.next else self._throttled
            self._take({State.STOPPED: STOPPED, State.ASLEEP: ASLEEP}.get(self._state, taker), ticks, inside)

    def _take(self, cause: Cause, ticks: int, inside: bool) -> None:
        self._away = cause
        if inside:
            self._hold(cause, ticks)

    def _leave(self, state: State, ticks: int, inside: bool) -> None:
        self._state = state
        self._away = None
        if inside:
            since = ticks if self._holder else self._since
            if self._holder:
                self._hold(self._holder, ticks)
            self._left = (since, dict(self._held))

    def _come_back(self, ticks: int, inside: bool) -> None:
        if inside and self._away is not None and self._left is None and self._has_moved and not self._was_here:
            self._held, self._holder = {}, MOVED  # it left another CPU in this gap
        if inside and self._holder:
            self._hold(self._holder, ticks)
        self._away = self._left = None
        self._was_here = False

    def _close(self, is_lost: bool) -> None:
        """Names the gap at hand and goes on to the next."""
        start, end = self._gaps[len(self.of_gap)][:2]
        if not self._is_entered:
            self._enter(start)
        is_blurred = len(self.of_gap) in self._blurred
        named = NOT_TRACED if is_lost or self._is_lost else self._named(end, is_blurred)
        self.of_gap.append(self.known.setdefault(named, len(self.known)))
        self._is_entered = self._is_lost = False
        self._held, self._holder, self._left, self._sent = {}, None, None, None

    def _named(self, end: int, is_blurred: bool) -> Named:
        if is_blurred and (self._away is not None or self._holder is None):
            return BLURRED
        if self._away is not None and not self._has_moved:
            # Some kernels leave a switch out of their trace. It is on this CPU again: whoever was given that, had it.
            self._away = None
            if self._left is None:
                return UNSEEN
        if self._away is not None:  # the gap is over, and this CPU was not given back: the thread runs on another one
            return ELSEWHERE if self._left is None else self._label({**self._left[1], MOVED: end - self._left[0]})
        if self._holder is None:
            return OUTSIDE
        self._hold(self._holder, end)
        return self._label(self._held)

    def _label(self, held: dict[Cause, int]) -> Named:
        parts = tuple(held) if len(held) == 1 else tuple(sorted(held, key=held.__getitem__, reverse=True))
        if self._sent and parts[0] == OUTSIDE.first:
            parts = (self._sent, *(part for part in parts if part != self._sent))
        if parts not in self._labels:
            if len(self._labels) >= LABELS_MOST and len(parts) > 1:
                return Named(parts[0], f"{parts[0].name} + more")
            words = [part.name for part in parts[:PARTS_MOST]] + ["more"] * (len(parts) > PARTS_MOST)
            self._labels[parts] = Named(parts[0], " + ".join(words))
        return self._labels[parts]


class Beyond(NamedTuple):
    """The gaps that were not listed: how many, and the longest of them."""

    gaps: int
    max_ns: int


def table(
    gaps: Sequence[Sequence[int]], joined: Joined, hz: float, stolen_ns: int, beyond: Beyond
) -> list[shapes.Cause]:
    """Each gap in exactly one row, most time first: counts add up to all gaps, totals to `stolen_ns`."""
    counts, totals, longest = ([0] * len(joined.causes) for _ in range(3))
    for gap, cause in zip(gaps, joined.of_gap, strict=True):
        length = gap[1] - gap[0]
        counts[cause] += 1
        totals[cause] += length
        if length > longest[cause]:
            longest[cause] = length
    rows = [
        _row(named, counts[at], int(totals[at] * 1e9 / hz), int(longest[at] * 1e9 / hz))
        for at, named in enumerate(joined.causes)
    ]
    rows.sort(key=lambda row: -row.total_ns)
    rest_ns = stolen_ns - sum(row.total_ns for row in rows)  # a rounding, where all gaps are listed
    if beyond.gaps:
        rows.append(_row(NOT_LISTED, beyond.gaps, max(rest_ns, 0), beyond.max_ns))
        rows.sort(key=lambda row: -row.total_ns)
    elif rows:
        rows[0] = replace(rows[0], total_ns=max(rows[0].total_ns + rest_ns, 0))
    return rows


def _row(named: Named, count: int, total_ns: int, max_ns: int) -> shapes.Cause:
    return shapes.Cause(named.label, named.first.kind.value, named.first.name, count, total_ns, max_ns)
