"""Which periods are found beside a tick and storms, by made-up runs: `python -m tests.bench.bench_periods [RUNS]`.

Each run of 30 s has a timer of one period and one length, a tick of 250 Hz, and storms of short gaps at random. Every
second timer stands on the tick's grid, as one of the same clock does. The bar: 95 % of the timers are found, and right,
none of them is told as a multiple of itself, and none of 100 aperiodic runs has a period.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from random import Random
from typing import NamedTuple

from tests.probe.gaps import MS, SECOND, Moments, drifting, heavy, pareto, poisson, short, storms, taken
from tunectl.probe.periods import Gap, find_periods
from tunectl.shapes import Period

SECONDS = 30.0
TICK_MS = 4
PERIODS_MS = (4, 7, 10, 13, 100, 1000)
LENGTHS_US = (5, 50, 500)
BAR = 0.95
_RIGHT = 1e-4  # of the period
_LATE_NS = 10_000  # a timer's delay on average

# (storm in ms, storms a second, gaps a second in one)
STORMS = ((40, 2, 500), (40, 2, 3000), (400, 0.5, 300), (400, 0.2, 3000))

Aperiodic = Callable[[Random, float], Moments]


def _storms(random: Random, length: float, storm_ms: float, storms_per_s: float, per_s: float) -> Moments:
    return storms(random, length, storm_ms * MS, storms_per_s, per_s)


APERIODIC: dict[str, Aperiodic] = {
    **{f"poisson {rate}/s": partial(poisson, per_s=rate) for rate in (3, 30, 300, 2000)},
    **{f"pareto {rate}/s": partial(pareto, per_s=rate) for rate in (3, 30, 300, 2000)},
    **{
        f"{often}/s storms of {storm_ms} ms, {rate}/s": partial(
            _storms, storm_ms=storm_ms, storms_per_s=often, per_s=rate
        )
        for storm_ms, often, rate in STORMS
    },
    **{f"drifting {waves}": partial(drifting, per_s=300, waves=waves) for waves in (0, 1, 7, 50)},
}


class Made(NamedTuple):
    """One run, and what it has."""

    gaps: list[Gap]
    timer: Moments


def made(period_ms: float, length_us: float, seed: int, seconds: float = SECONDS) -> Made:
    """A timer beside a tick and storms."""
    random, length = Random(f"{period_ms} {length_us} {seed}"), seconds * SECOND
    storm_ms, storms_per_s, per_s = STORMS[seed % len(STORMS)]
    first = random.random() * TICK_MS * MS
    begin = first + random.randrange(1000) * MS if seed % 2 else random.random() * period_ms * MS
    timer = _on_time(random, length, period_ms * MS, begin % (period_ms * MS))
    gaps = taken(
        length,
        (_on_time(random, length, TICK_MS * MS, first), lambda: random.uniform(1500, 4000), "tick"),
        (storms(random, length, storm_ms * MS, storms_per_s, per_s), short(random), "storm"),
        (timer, lambda: length_us * 1e3 * random.uniform(0.9, 1.1), "timer"),
    )
    return Made(gaps, timer)


def _on_time(random: Random, length: float, period: float, first: float) -> Moments:
    return [first + k * period + random.expovariate(1 / _LATE_NS) for k in range(int((length - first) / period) + 1)]


def found(gaps: list[Gap], seconds: float = SECONDS) -> list[Period]:
    return find_periods(gaps, 0, seconds * SECOND, 1e9).periods


def is_about(period: Period, period_ms: float) -> bool:
    return abs(period.period_ns / (period_ms * MS) - 1) < _RIGHT


def is_right(periods: list[Period], period_ms: float) -> bool:
    return any(is_about(period, period_ms) for period in periods)


def wrong(periods: list[Period], *there_ms: float) -> list[float]:
    """The periods, in ms, that are none of those that are there."""
    return [one.period_ns / MS for one in periods if not any(is_about(one, there) for there in there_ms)]


def aperiodic(name: str, seed: int, seconds: float = SECONDS) -> list[Gap]:
    random, length = Random(f"{name} {seed}"), seconds * SECOND
    return taken(length, (APERIODIC[name](random, length), (heavy if seed % 2 else short)(random), ""))


def timers(runs: int) -> tuple[int, int]:
    """How many were found of all these, and how many runs had a period that nothing in them has; prints each kind."""
    right = others = 0
    for length_us, period_ms in product(LENGTHS_US, PERIODS_MS):
        begun = time.process_time()
        each = [found(made(period_ms, length_us, seed).gaps) for seed in range(runs)]
        took = (time.process_time() - begun) / runs
        here = sum(is_right(periods, period_ms) for periods in each)
        more = [told for periods in each if (told := wrong(periods, period_ms, TICK_MS))]
        print(f"{period_ms:5} ms x {length_us:3} us: {here} of {runs}, wrong {more}, {took:.2f} s each", flush=True)
        right, others = right + here, others + len(more)
    return right, others


def invented() -> int:
    """Of 100 aperiodic runs, those with a period."""
    names = sorted(APERIODIC)
    return sum(bool(found(aperiodic(names[seed % len(names)], seed))) for seed in range(100))


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    (right, others), many, chance = timers(runs), runs * len(LENGTHS_US) * len(PERIODS_MS), invented()
    print(f"{right} of {many} found (bar {BAR}); {others} with another period; {chance} of 100 aperiodic ones with any")
    return 0 if right >= BAR * many and not others and not chance else 1


if __name__ == "__main__":
    sys.exit(main())
