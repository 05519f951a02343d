"""Which interruptions come at regular intervals: what returns every 4.000 ms is a tick. Pure.

`distances` guesses periods, `phase` judges each. The longest gaps are searched first, then those of half the length and
more, and so on: what is long is rare, and stands out among its like. What belongs to a period is taken out, and hides
from then on what else may have come at that moment.

Where the list of gaps was full of short ones, these are searched until then, and long ones in the whole run: they and
what hides them are all known.

Of each kind so many gaps are looked at, from the run's start, that they are less than some 700 for each of the 12
periods that a claim needs: what comes between more of its like shows in no window.

A CPU that others have most of the time shows when the scheduler hands it over, and a timer only where the CPU happens
to be ours: often each second or fifth of its moments alone. Of such a CPU no period is known. Elsewhere a period is
known where its halves, thirds, fifths and sevenths could be seen as well.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import floor
from statistics import fmean, median
from typing import NamedTuple

from tunectl.cpulist import named_cpus
from tunectl.probe.distances import SECOND, SHORTEST, guesses, second
from tunectl.probe.phase import (
    COVERAGE,
    LEAST_PERIODS,
    THIN,
    WINDOWS,
    Comb,
    Looked,
    Series,
    evidence,
    in_phase,
    is_regular,
    judged,
    nearest,
    refined,
    seen_slots,
)
from tunectl.shapes import Period

MOST = 8
LOOKED_AT = Period.searched  # gaps of a length and more, from the run's start
THROTTLED = "as long as RT throttling or the deadline fair server takes"
_HIDES = 50e3  # ns: what is so long hides what would have come meanwhile
_AWAY = 1e6  # ns: so long is no interruption of the probe, but somebody else's turn
_MOST_AWAY = 0.5  # of the run
_WHOLE = 0.95  # of the moments of a period: less may have shorter gaps, too
_BETWEEN_SEEN = 0.5  # of the moments between those of a period, against those of the period itself
_GRID = 20e6  # ns: ticks come more often; of a tick only the longer gaps may be looked at
_MEETS = 50e3  # ns: so much earlier or later than usual, two things that come at once may come
_SCHEDULER = (30e6, 80e6)  # ns; both mechanisms take 50 ms of each second by default
_OFTEN = "as often as a timer "
_TICKS = {SECOND / hz: f"{_OFTEN}tick at HZ={hz}" for hz in (1000, 300, 250, 100)}
_UPKEEP = "once a second, as vm.stat_interval and the kernel's own upkeep"
_TOLERANCE = 0.01
_PARTS, _LOCKED = 4, 1e-4  # 4 ms and 10 ms share a grid of 2 ms: two parts of the tick
_STEP = 2**0.5  # from one least length to the next
_MORE = 1.2  # times the gaps of the kind before
_ALIKE = 1.5  # times the length: still the same thing, not something that came with it
_DIVISORS = (2, 3, 5, 7)
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


class Claim(NamedTuple):
    """A period, and the gaps that make it."""

    series: Series
    gaps: list[Gap]
    length: float  # of the stretch that was looked at

    @property
    def usual(self) -> float:
        """How long one of its gaps is."""
        return median(gap.length for gap in self.gaps)


class Short(NamedTuple):
    """Gaps shorter than `below` are known until `until` alone; both in ticks."""

    below: float = 0.0
    until: float = 0.0


_NONE_SHORT = Short()


class Found(NamedTuple):
    """The periods of one CPU's gaps, and how far they were looked for."""

    periods: list[Period]
    searched_ns: int | None  # from the run's start; None where all gaps were searched, 0 on a CPU that others had


def find_periods(
    events: Sequence[tuple[float, float, str]],
    begin: float,
    end: float,
    hz: float,
    is_fifo: bool = False,
    short: Short = _NONE_SHORT,
) -> Found:
    """The periods of one CPU's gaps, at most eight, the shortest first.

    `events` are (start, end, cause) in order of time, on a counter of `hz` that stood at `begin` when the run began,
    and at `end` when it or its list of gaps ended; that of `short` ones may have ended before. `is_fifo` says that the
    probe itself ran under SCHED_FIFO.
    """
    tick = SECOND / hz
    search = _Search(
        [Gap((a - begin) * tick, (b - begin) * tick, label) for a, b, label in events],
        (end - begin) * tick,
        Short(short.below * tick, (short.until - begin) * tick),
    )
    search.take_scheduler_pauses(is_fifo)
    if search.is_away:
        return Found(list(_described(search.claims)), 0)
    for least in search.levels():
        search.look(least)
    claims = sorted(_originals(search.joined()), key=lambda claim: claim.series.period)
    return Found(list(_described(claims))[:MOST], search.searched_ns)


def pauses_warning(cpus: Iterable[int]) -> str:
    """The warning about CPUs where a SCHED_FIFO probe had a period named THROTTLED."""
    who = "that is RT throttling or the deadline fair server acting on the SCHED_FIFO probe, not the machine"
    return f"pauses of some 50 ms, a second apart, on {named_cpus(cpus)}: {who}"


class _Search:
    """The gaps of one CPU, and what was found of them so far."""

    def __init__(self, gaps: list[Gap], length: float, short: Short) -> None:
        self.claims: list[Claim] = []
        self._gaps, self._length, self._short = gaps, length, short
        self._searched = min(length, short.until) if short.below else length
        self._taken: set[Gap] = set()
        self._away = [(gap.start, gap.end) for gap in gaps if gap.length >= _AWAY]

    @property
    def searched_ns(self) -> int | None:
        """How far all gaps were searched; None for the whole length."""
        return max(floor(self._searched), 1) if self._searched < self._length else None

    @property
    def is_away(self) -> bool:
        """Had others the CPU for most of the run?"""
        return sum(end - start for start, end in self._away) > _MOST_AWAY * self._length

    def levels(self) -> Iterator[float]:
        """Least lengths, descending: first of the gaps that are known over the whole length, then of those beside."""
        below, until = self._short
        yield from _levels(gap.length for gap in self._gaps if gap.length >= below)
        yield from (level for level in _levels(gap.length for gap in self._gaps if gap.start < until) if level < below)

    def look(self, least: float) -> None:
        """For periods of gaps of this length and more."""
        length = self._short.until if least < self._short.below else self._length
        gaps = [gap for gap in self._gaps if gap.length >= least and gap.start < length]
        if len(gaps) > LOOKED_AT:
            length = gaps[LOOKED_AT].start
        self._searched = min(self._searched, length)
        if least < self._short.below:
            self.claims = [self._shortened(claim) for claim in self.claims]
        self._absorb(gaps[:LOOKED_AT])
        while len(self.claims) < 2 * MOST:
            fresh = [gap for gap in gaps[:LOOKED_AT] if gap not in self._taken]
            looked = Looked([gap.start for gap in fresh], length, self._hiding(length))
            series = _shortest(looked)
            if series is None:
                return
            claim = Claim(series, [fresh[index] for index in series.members], length)
            self.claims.append(claim)
            self._taken.update(claim.gaps)

    def joined(self) -> list[Claim]:
        """The settled claims. Of a tick's longest gaps each second moment may have most by chance: two alike that take
        turns are one.
        """
        settled = list(self.settled())
        pair = next((pair for pair in combinations(settled, 2) if _take_turns(*pair)), None)
        if pair is None:
            return settled
        claim, other = pair
        half = replace(claim.series, period=claim.series.period / 2)
        joined = Claim(half, sorted(claim.gaps + other.gaps), min(claim.length, other.length))
        self.claims = [joined, *(rest for rest in settled if rest not in pair)]
        return self.joined()

    def settled(self) -> Iterator[Claim]:
        """What holds of the periods, once each has all its gaps."""
        for claim in self.claims:
            starts = [gap.start for gap in claim.gaps]
            comb, window = refined(starts, claim.series), claim.series.window
            hit = {round((start - comb.phase) / comb.period) for start in starts}
            looked = Looked(starts, claim.length, self._hiding(claim.length, claim.gaps))
            slots = seen_slots(looked, comb.period, comb.phase, hit)
            whole = floor(claim.length / comb.period)
            hits = min(len(hit), whole)
            # The scheduler's own pauses are known by their length, whatever hides the moments between them.
            if hits >= COVERAGE * slots and (_is_the_schedulers(claim) or self._is_known(claim, comb, hit)):
                members = tuple(range(len(starts)))
                series = Series(
                    comb.period, hits, max(hits, min(slots, whole)), members, comb.phase, comb.error, window
                )
                yield claim._replace(series=series)

    def _is_known(self, claim: Claim, comb: Comb, hit: set[int]) -> bool:
        """Would a shorter period have shown, and a longer one have been told from it, or was the CPU away meanwhile?"""
        looked = Looked([], claim.length, self._away)
        own = seen_slots(looked, comb.period, comb.phase, hit)
        is_partly_seen = own < COVERAGE * floor(claim.length / comb.period)
        if is_partly_seen and any(is_regular(hit, divisor) for divisor in _DIVISORS):
            return False
        for divisor in _DIVISORS:
            moments = {slot * divisor for slot in hit}
            between = seen_slots(looked, comb.period / divisor, comb.phase, moments) - own
            if between < _BETWEEN_SEEN * (divisor - 1) * own:
                return False
        return True

    def _shortened(self, claim: Claim) -> Claim:
        """What has too few long gaps is judged with its short ones, as far as these are known."""
        until = self._short.until
        if claim.series.hits >= _WHOLE * claim.series.slots or until < LEAST_PERIODS * claim.series.period:
            return claim
        return claim._replace(gaps=[gap for gap in claim.gaps if gap.start < until], length=min(claim.length, until))

    def _absorb(self, gaps: Iterable[Gap]) -> None:
        """What comes at a moment of a period that was found of longer gaps, and that had none, is of that period."""
        for at, claim in enumerate(self.claims):
            series = claim.series
            slots = {round((gap.start - series.phase) / series.period) for gap in claim.gaps}
            more = []
            for gap in gaps:
                moment = (gap.start - series.phase) / series.period
                slot = round(moment)
                if abs(moment - slot) <= series.window and slot not in slots and gap not in self._taken:
                    slots.add(slot)
                    more.append(gap)
            self._taken.update(more)
            self.claims[at] = claim._replace(gaps=claim.gaps + more)

    def _hiding(self, length: float, own: Iterable[Gap] = ()) -> list[tuple[float, float]]:
        """What is long, and a little around what belongs to a period: two that come at once are one gap."""
        taken = self._taken.difference(own)
        hiding = [
            (gap.start - _MEETS, gap.end + _MEETS) if gap in taken else (gap.start, gap.end)
            for gap in self._gaps
            if gap.start < length and (gap.length >= _HIDES or gap in taken)
        ]
        return [(start, min(end, length)) for start, end in hiding]

    def take_scheduler_pauses(self, is_fifo: bool) -> None:
        """RT throttling or the fair server: some 50 ms each second, which a few seconds are enough to name."""
        like = [gap for gap in self._gaps if gap.length >= _SCHEDULER[0]]  # a pause that goes on is a longer one
        looked = Looked([gap.start for gap in like], self._length, self._hiding(self._length))
        if self._length >= LEAST_PERIODS * SECOND:
            series = in_phase(looked, SECOND, _SCHEDULER_SPREAD)
        else:
            few = [_few(looked, gap.start, is_fifo) for gap in like]
            series = max((series for series in few if series), key=lambda series: series.hits, default=None)
        if series and _is_the_schedulers(
            claim := Claim(series, [like[index] for index in series.members], self._length)
        ):
            self.claims.append(claim)
            self._taken.update(gap for gap in like if gap.length <= _SCHEDULER[1])


def _levels(lengths: Iterable[float]) -> Iterator[float]:
    """Least lengths, descending, each with gaps enough that were not in the one before; at last all."""
    ordered = sorted(lengths, reverse=True)
    before, level = 0, ordered[0] if ordered else 0.0
    for at, length in enumerate(ordered):
        if length < level / _STEP:
            if at > max(_MORE * before, before + 5):
                before = at
                yield ordered[at - 1]
            level = length
    if len(ordered) > before:
        yield ordered[-1]


def _shortest(looked: Looked) -> Series | None:
    """The series with the shortest period, where there is any."""
    for guess in guesses(looked, tuple(_TICKS)):
        if series := in_phase(looked, guess, least=THIN if guess < _GRID else COVERAGE):
            return series if series.is_thin else _finest(looked, series)
    about = second(looked)
    return in_phase(looked, about) if about else None


def _finest(looked: Looked, series: Series) -> Series:
    """What comes each 10 ms comes each 20 ms, too: the shortest period whose moments were hit."""
    for divisor in _DIVISORS:
        comb = Comb(series.period / divisor, series.phase, series.error / divisor)
        if comb.period < SHORTEST:
            break
        for window in WINDOWS:
            if finer := judged(looked, comb, window):
                return _finest(looked, finer)
    return series


def _few(looked: Looked, first: float, is_fifo: bool) -> Series | None:
    """The pauses in phase with the one at `first`, one in each second but one; None where that proves nothing."""
    window = _FIFO_WINDOW if is_fifo else WINDOWS[1]
    near = nearest(looked, SECOND, first, window)
    slots = seen_slots(looked, SECOND, first, set(near))
    hits = len(near)
    proven = evidence(hits - 1, slots - 1, looked.chance(2 * window * SECOND)) > _FEW_WANTED
    if hits < 2 or hits < slots - 1 or not (is_fifo or (hits >= 3 and proven)):
        return None
    return Series(SECOND, hits, slots, tuple(index for _, index in near.values()), first)


def _originals(claims: Sequence[Claim]) -> Iterator[Claim]:
    """Without those that are some of the moments of shorter ones: each fifth tick is longer where a timer meets it."""
    for claim in claims:
        within = [other for other in claims if _is_part(claim.series, other.series)]
        if not within or claim.usual > _ALIKE * sum(other.usual for other in within):
            yield claim


def _take_turns(claim: Claim, other: Claim) -> bool:
    """Have they one period and one length, and comes each in the middle between two of the other's moments?"""
    series = claim.series
    turn = (other.series.phase - series.phase) / series.period % 1
    return (
        abs(other.series.period / series.period - 1) <= _LOCKED
        and abs(turn - 0.5) <= WINDOWS[0]
        and max(claim.usual, other.usual) <= _ALIKE * min(claim.usual, other.usual)
    )


def _is_part(series: Series, of: Series) -> bool:
    """Does it come with every n-th moment of a shorter one?"""
    times = round(series.period / of.period)
    if times < 2 or abs(series.period / of.period / times - 1) > _LOCKED:
        return False
    off = (series.phase - of.phase) / of.period
    return abs(off - round(off)) <= 2 * WINDOWS[0]


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


def _described(claims: Iterable[Claim]) -> Iterator[Period]:
    """The shortest first: of two ticks in step the first has the name."""
    ticks: dict[str, Series] = {}
    for claim in claims:
        series, name = claim.series, _named(claim)
        of = next((tick for tick, other in ticks.items() if _in_step(series, other)), "")
        if of and name in _TICKS.values():
            name = f"in step with the {of.removeprefix(_OFTEN)}"
        elif name in _TICKS.values():
            ticks[name] = series
        yield Period(
            period_ns=round(series.period),
            count=series.hits,
            coverage=round(series.hits / series.slots, 3),
            mean_ns=round(fmean(gap.length for gap in claim.gaps)),
            name=name,
            cause=Counter(gap.label for gap in claim.gaps).most_common(1)[0][0],
            error_ns=round(series.error, 3),
        )


def _named(claim: Claim) -> str:
    """What is known to come so often; "" for nothing."""
    if _is_the_schedulers(claim):
        return THROTTLED
    if claim.usual >= 1e6:
        return ""
    if _is_about(claim.series.period, SECOND):
        return _UPKEEP
    return next((name for known, name in _TICKS.items() if _is_about(claim.series.period, known)), "")


def _is_the_schedulers(claim: Claim) -> bool:
    return _is_about(claim.series.period, SECOND) and _SCHEDULER[0] <= claim.usual <= _SCHEDULER[1]


def _is_about(value: float, expected: float) -> bool:
    return abs(value - expected) <= _TOLERANCE * expected
