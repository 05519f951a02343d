"""Simulated hosts whose truth is known, at the level of lists of gaps: what two runs of them look like."""

import random
from collections.abc import Callable

from tests.compare.runs import Gap, lognormal, sample_of
from tunectl.compare.chance import Interval
from tunectl.compare.estimate import Sample, arrival_percentile, interruptions_per_s, stolen_ppm
from tunectl.compare.judged import ARRIVAL, RATE, STOLEN, Measure, judge_runs
from tunectl.compare.tables import ratio_of

Host = Callable[[random.Random, float], list[Gap]]


def poisson(rng: random.Random, seconds: float, rate: float, scale: float = 1.0) -> list[Gap]:
    """Independent gaps at any moment."""
    gaps: list[Gap] = []
    now = rng.expovariate(rate)
    while now < seconds:
        gaps.append((int(now * 1e9), int(scale * lognormal(rng)) + 1))
        now += rng.expovariate(rate)
    return gaps


def iid(rate: float = 200.0, scale: float = 1.0) -> Host:
    """Nothing but such gaps."""
    return lambda rng, seconds: poisson(rng, seconds, rate, scale)


def tick_and_rare(hz: float = 250.0, scale: float = 1.0) -> Host:
    """A tick of 5 µs, and every other second something of 50 µs and more, with a long tail (Pareto)."""

    def gaps(rng: random.Random, seconds: float) -> list[Gap]:
        phase = rng.random() / hz
        tick = [
            (int((phase + at / hz) * 1e9), int(scale * rng.gauss(5000, 300))) for at in range(int(seconds * hz) - 1)
        ]
        rare = [(at, int(scale * 50_000 * rng.paretovariate(2))) for at, _ in poisson(rng, seconds, 0.5)]
        return sorted(tick + rare)

    return gaps


def storms(each_s: float = 0.04, per_second: float = 0.5, rate: float = 20.0, scale: float = 1.0) -> Host:
    """Some gaps, and storms in which one of 10 to 30 µs follows the other every 0.1 ms."""

    def gaps(rng: random.Random, seconds: float) -> list[Gap]:
        found = poisson(rng, seconds, rate, scale)
        now = rng.expovariate(per_second)
        while now < seconds:
            at = now
            while at < min(now + each_s, seconds - 0.001):
                found.append((int(at * 1e9), int(scale * rng.uniform(10_000, 30_000))))
                at += 1e-4 * rng.uniform(0.5, 1.5)
            now += rng.expovariate(per_second)
        return sorted(found)

    return gaps


def waves(share: float) -> Host:
    """A high rate and a low one in turn, each for that share of the run on average."""

    def gaps(rng: random.Random, seconds: float) -> list[Gap]:
        found: list[Gap] = []
        now, high = 0.0, rng.random() < 0.5
        while now < seconds:
            lasts = min(rng.expovariate(1 / (share * seconds)), seconds - now)
            found += [(int(now * 1e9) + at, ns) for at, ns in poisson(rng, lasts, 200 if high else 20)]
            now, high = now + lasts, not high
        return found

    return gaps


def drifting(rng: random.Random, seconds: float) -> list[Gap]:
    """From 50 to 150 a second in the course of a run."""
    return [gap for gap in poisson(rng, seconds, 150) if rng.random() < (1 + 2 * gap[0] / 1e9 / seconds) / 3]


def deciding_ratios(before: Sample, after: Sample) -> dict[Measure, Interval | None]:
    """Of the three rows that decide, as the tables have them."""
    sides = [
        {
            ARRIVAL: arrival_percentile(run, 0.001, 0.95),
            RATE: interruptions_per_s(run, 0.95),
            STOLEN: stolen_ppm(run, 0.95),
        }
        for run in (before, after)
    ]
    return {measure: ratio_of(sides[0][measure], sides[1][measure]) for measure in sides[0]}


def outcome(seed: int, before: Host, after: Host, seconds: float) -> tuple[str, dict[str, str]]:
    """The verdict on a run of each, and what the three rows came to."""
    rng = random.Random(seed)
    sides = [sample_of(host(rng, seconds), seconds) for host in (before, after)]
    judged = judge_runs(sides[0], sides[1], deciding_ratios(*sides), 0.95)
    return judged.outcome, {row.measure: row.change for row in judged.rows}


def share_of(wanted: str, pairs: int, before: Host, after: Host | None = None, seconds: float = 10.0) -> float:
    """In how many of the pairs this was the outcome."""
    return sum(outcome(seed, before, after or before, seconds)[0] == wanted for seed in range(pairs)) / pairs


def wrong_sign(pairs: int, before: Host, after: Host, wrong: str, seconds: float = 10.0) -> int:
    """How many pairs were called different in the wrong direction, in any of the rows."""
    return sum(wrong in outcome(seed, before, after, seconds)[1].values() for seed in range(pairs))
