"""Which interruptions come at regular intervals: what returns every 4.000 ms is a tick. Pure.

`distances` guesses periods, `phase` judges each. What belongs to a period is taken out, and the search goes on with the
rest. Pauses of a millisecond and more are searched by themselves: they are few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import islice, takewhile
from math import floor
from statistics import fmean, median
from typing import NamedTuple

from msgspec.structs import replace

from tunectl.cpulist import named_cpus
from tunectl.probe.distances import SECOND, guesses, second
from tunectl.probe.phase import LEAST_PERIODS, WINDOWS, Looked, Series, evidence, in_phase, nearest, seen_slots
from tunectl.shapes import Period

MOST = 4
LOOKED_AT = Period.searched  # gaps of each kind, from the run's start: a tenth of a second for a CPU
THROTTLED = "as long as RT throttling or the deadline fair server takes"
_PAUSE = 1e6  # ns
_SCHEDULER = (30e6, 80e6)  # ns; both mechanisms take 50 ms of each second by default
_OFTEN = "as often as a timer "
_TICKS = {SECOND / hz: f"{_OFTEN}tick at HZ={hz}" for hz in (1000, 300, 250, 100)}
_UPKEEP = "once a second, as vm.stat_interval and the kernel's own upkeep"
_TOLERANCE = 0.01
_PARTS, _LOCKED = 4, 1e-4  # 4 ms and 10 ms share a grid of 2 ms: two parts of the tick
_SCHEDULER_SPREAD = 0.002  # of a second: the kernel's clock against the counter, and what the fit adds
# Evidence for a scheduler's pauses in a run that is too short for any other period: one false in a thousand.
_FEW_WANTED = 7.0
# Under SCHED_FIFO two pauses are enough, and the tick may let each begin late.
_FIFO_WINDOW = 0.02


class Gap(NamedTuple):
    """One interruption, in ns from the run's start, with the label of its cause."""

    start: float
    end: float
    label: str

    @property
    def length(self) -> float:
        """How long it took."""
        return self.end - self.start


class Kind(NamedTuple):
    """Gaps that are searched together, the stretch of the run that they are from, and its pauses."""

    gaps: list[Gap]
    length: float
    pauses: list[tuple[float, float]]

    def looked(self) -> Looked:
        """The same, as it is judged."""
        return Looked([gap.start for gap in self.gaps], self.length, self.pauses)

    def without(self, taken: Iterable[int]) -> Kind:
        """The gaps but those with these indexes."""
        indexes = frozenset(taken)
        return self._replace(gaps=[gap for index, gap in enumerate(self.gaps) if index not in indexes])


class Found(NamedTuple):
    """The periods of one CPU's gaps, and how far they were looked for."""

    periods: list[Period]
    searched_ns: int | None  # from the run's start; None where all gaps were searched


def find_periods(
    events: Sequence[tuple[float, float, str]], begin: float, end: float, hz: float, is_fifo: bool = False
) -> Found:
    """The periods of one CPU's gaps, at most four: of pauses, then of shorter gaps, each the shortest period first.

    `events` are (start, end, cause) in order of time, on a counter of `hz` that stood at `begin` when the run began,
    and at `end` when it or its list of gaps ended. `is_fifo` says that the probe itself ran under SCHED_FIFO.
    """
    tick = SECOND / hz
    pause = _PAUSE / tick
    pauses = [Gap((a - begin) * tick, (b - begin) * tick, label) for a, b, label in events if b - a >= pause]
    shorter = (Gap((a - begin) * tick, (b - begin) * tick, label) for a, b, label in events if b - a < pause)
    length = (end - begin) * tick
    if len(pauses) > LOOKED_AT:
        length = pauses[LOOKED_AT].start
        del pauses[LOOKED_AT:]
    hiding = [(gap.start, gap.end) for gap in pauses]
    short = _kind(shorter, hiding, length)
    is_whole = len(pauses) + len(short.gaps) == len(events)
    periods = _scheduler_pauses(_kind(filter(_holds_the_schedulers, pauses), hiding, length), is_fifo)
    if periods:
        pauses = [gap for gap in pauses if not _is_like_the_schedulers(gap)]
    periods += _search(_kind(pauses, hiding, length))
    periods += _search(short)
    return Found(periods[:MOST], None if is_whole else floor(short.length))


def pauses_warning(cpus: Iterable[int]) -> str:
    """The warning about CPUs where a SCHED_FIFO probe had a period named THROTTLED."""
    who = "that is RT throttling or the deadline fair server acting on the SCHED_FIFO probe, not the machine"
    return f"pauses of some 50 ms, a second apart, on {named_cpus(cpus)}: {who}"


def _holds_the_schedulers(gap: Gap) -> bool:
    """A pause that goes on is a longer one."""
    return gap.length >= _SCHEDULER[0]


def _is_like_the_schedulers(gap: Gap) -> bool:
    return _SCHEDULER[0] <= gap.length <= _SCHEDULER[1]


def _kind(gaps: Iterable[Gap], hiding: Iterable[tuple[float, float]], length: float) -> Kind:
    """The first of these gaps, and the stretch up to the first one that is left out."""
    first = list(islice(takewhile(lambda gap: gap.start < length, gaps), LOOKED_AT + 1))
    if len(first) > LOOKED_AT:
        length = first.pop().start
    return Kind(first, length, [(start, min(end, length)) for start, end in hiding if start < length])


def _search(kind: Kind) -> Iterator[Period]:
    ticks: dict[str, Series] = {}
    for _ in range(MOST):
        series = _shortest(kind.looked())
        if series is None:
            return
        period = _described(kind, series)
        of = [name for name, tick in ticks.items() if _in_step(series, tick)]
        if of and period.name in _TICKS.values():
            period = replace(period, name=f"in step with the {of[0].removeprefix(_OFTEN)}")
        elif period.name in _TICKS.values():
            ticks[period.name] = series
        yield period
        kind = kind.without(series.members)


def _in_step(series: Series, tick: Series) -> bool:
    """Is that the same tick once more? What comes every n-th time is, and what comes in moments of the grid of both."""
    ratio = Fraction(series.period / tick.period).limit_denominator(_PARTS)
    if not ratio:
        return False  # it comes more often than the finest grid has moments
    drift = WINDOWS[0] / min(series.slots, tick.slots)  # two that part by more do so within the run
    if abs(series.period / tick.period / float(ratio) - 1) > max(drift, _LOCKED):
        return False
    step = tick.period / ratio.denominator
    off = (series.phase - tick.phase) / step
    return ratio.denominator == 1 or abs(off - round(off)) * step <= WINDOWS[0] * tick.period


def _shortest(looked: Looked) -> Series | None:
    """The series with the shortest period, where there is any."""
    for guess in guesses(looked, tuple(_TICKS)):
        if series := in_phase(looked, guess):
            return series
    about = second(looked)
    return in_phase(looked, about) if about else None


def _scheduler_pauses(like: Kind, is_fifo: bool) -> list[Period]:
    """RT throttling or the fair server: pauses of some 50 ms each second, which a few seconds are enough to name."""
    looked = like.looked()
    if like.length >= LEAST_PERIODS * SECOND:
        series = in_phase(looked, SECOND, _SCHEDULER_SPREAD)
    else:
        few = [_few(looked, gap.start, is_fifo) for gap in like.gaps]
        series = max((series for series in few if series), key=lambda one: one.hits, default=None)
    period = _described(like, series) if series else None
    return [period] if period and period.name == THROTTLED else []


def _few(looked: Looked, first: float, is_fifo: bool) -> Series | None:
    """The pauses in phase with the one at `first`, one in each second but one; None where that proves nothing."""
    window = _FIFO_WINDOW if is_fifo else WINDOWS[1]
    near = nearest(looked, SECOND, first, window)
    slots = seen_slots(looked, SECOND, first, set(near), window)
    hits = len(near)
    proven = evidence(hits - 1, slots - 1, looked.chance(2 * window * SECOND)) > _FEW_WANTED
    if hits < 2 or hits < slots - 1 or not (is_fifo or (hits >= 3 and proven)):
        return None
    return Series(SECOND, hits, slots, tuple(index for _, index in near.values()), first)


def _described(kind: Kind, series: Series) -> Period:
    members = [kind.gaps[index] for index in series.members]
    labels = Counter(gap.label for gap in members)
    usual = median(gap.length for gap in members)
    return Period(
        period_ns=floor(series.period),
        count=series.hits,
        coverage=round(series.hits / series.slots, 3),
        mean_ns=round(fmean(gap.length for gap in members)),
        name=_named(series.period, usual),
        cause=labels.most_common(1)[0][0],
    )


def _named(period: float, length: float) -> str:
    """What is known to come so often; "" for nothing."""
    if length >= _PAUSE:
        fits = _is_about(period, SECOND) and _SCHEDULER[0] <= length <= _SCHEDULER[1]
        return THROTTLED if fits else ""
    if _is_about(period, SECOND):
        return _UPKEEP
    return next((name for known, name in _TICKS.items() if _is_about(period, known)), "")


def _is_about(value: float, expected: float) -> bool:
    return abs(value - expected) <= _TOLERANCE * expected
