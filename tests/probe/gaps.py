"""Made-up runs for the search for periods: what comes at random, and what comes on time. Times in ns."""

from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from math import sin
from random import Random

from tunectl.probe.periods import Gap

SECOND = 1e9
MS = 1e6
Moments = list[float]


def poisson(random: Random, length: float, per_s: float, begin: float = 0.0) -> Moments:
    """Moments that know nothing of each other."""
    return list(takewhile(lambda at: at < begin + length, _walk(begin, lambda: random.expovariate(per_s) * SECOND)))


def _walk(at: float, step: Callable[[], float]) -> Iterator[float]:
    while True:
        at += step()
        yield at


def pareto(random: Random, length: float, per_s: float, alpha: float = 1.3) -> Moments:
    """Moments with Pareto distances: some very long ones, and many short ones."""
    least = SECOND / per_s * (alpha - 1) / alpha
    return list(takewhile(lambda at: at < length, _walk(0.0, lambda: least * random.paretovariate(alpha))))


def storms(random: Random, length: float, storm: float, storms_per_s: float, per_s: float) -> Moments:
    """Storms of this length at random moments, `per_s` gaps a second in each; they may overlap. Few gaps in between."""
    begins = poisson(random, length, storms_per_s)
    return poisson(random, length, 5) + [at for begin in begins for at in poisson(random, storm, per_s, begin)]


def drifting(random: Random, length: float, per_s: float, waves: float) -> Moments:
    """A rate that rises from almost none to `per_s`, or goes up and down."""
    begin = random.random() * 6

    def share(at: float) -> float:
        return at / length if waves == 0 else 0.5 + 0.5 * sin(begin + 6.283 * waves * at / length)

    return [at for at in poisson(random, length, per_s) if random.random() < share(at)]


def regular(random: Random, length: float, period: float, late: float = 0.002, missed: float = 0.0) -> Moments:
    """One each period: `late` of it late on average, one in a hundred up to a tenth of it, and some `missed`."""
    first, times = random.random() * period, range(int(length / period) + 1)
    moments = [first + k * period + random.expovariate(1 / (late * period)) for k in times if random.random() >= missed]
    return [at + 0.1 * period * random.random() * (random.random() < 0.01) for at in moments]


def taken(length: float, *kinds: tuple[Iterable[float], Callable[[], float], str]) -> list[Gap]:
    """The gaps of these moments, each kind with its lengths and label; those that touch are one, as in the probe."""
    wanted = sorted((at, at + long(), label) for moments, long, label in kinds for at in moments if 0 <= at < length)
    gaps: list[Gap] = []
    for start, end, label in wanted:
        end = min(end, length)
        if gaps and start <= gaps[-1].end:
            gaps[-1] = Gap(gaps[-1].start, max(end, gaps[-1].end), gaps[-1].label)
        else:
            gaps.append(Gap(start, end, label))
    return gaps


def short(random: Random) -> Callable[[], float]:
    """Lengths of 1 to 5 us."""
    return lambda: random.uniform(1e3, 5e3)


def heavy(random: Random) -> Callable[[], float]:
    """Pareto lengths from 1 us on, at most 0.2 s: pauses of 30 to 80 ms among them."""
    return lambda: min(1e3 * random.paretovariate(0.5), 200 * MS)
