"""How often sets of runs of a host whose rate drifts are called different: `python -m tests.compare.drifts [PAIRS]`

Five runs a side, a minute apart, each of 200 gaps; the rate's logarithm wanders with a standard deviation of 0.5 and a
time constant. Then independent runs with a spread, and twice the rate after. Seeds are fixed. docs/compare.md has the
bars.
"""

import math
import random
import sys
from collections.abc import Sequence

from tests.compare.hosts import iid
from tests.compare.runs import sample_of
from tunectl.compare.drift import Course
from tunectl.compare.judged import judge_sets
from tunectl.compare.tables import set_rows

DRIFTS_MIN = (2.0, 10.0, 60.0)
SPREADS = (0.0, 0.05, 0.1)
RUNS = 5


def wandering(rng: random.Random, minutes: float, sd: float, runs: int) -> list[float]:
    """A factor of the rate a minute; with a time constant of 0 each is independent of the one before."""
    kept = math.exp(-1 / minutes) if minutes else 0.0
    level, factors = rng.gauss(0, sd), []
    for _ in range(runs):
        factors.append(math.exp(level))
        level = kept * level + math.sqrt(1 - kept * kept) * rng.gauss(0, sd)
    return factors


def outcome_of(
    rng: random.Random, before: Sequence[float], after: Sequence[float], course: Course | None = None
) -> str:
    """The verdict on sets whose runs have these factors of 200 gaps a second."""
    sides = [[sample_of(iid(200 * factor)(rng, 1.0), 1.0) for factor in side] for side in (before, after)]
    _, ratios, values = set_rows(sides[0], sides[1], 0.95)
    return str(judge_sets(values, ratios, 0.95, course=course).outcome)


def drifting_pair(seed: int, minutes: float) -> str:
    """Two sets of one host, one after the other."""
    rng = random.Random(seed)
    factors = wandering(rng, minutes, 0.5, 2 * RUNS)
    return outcome_of(rng, factors[:RUNS], factors[RUNS:])


def pair_in_turn(seed: int, minutes: float, factor: float) -> str:
    """The same where a run before and one after were measured in turn."""
    rng = random.Random(seed)
    factors = wandering(rng, minutes, 0.5, 2 * RUNS)
    order = [at // 2 + RUNS * (at % 2) for at in range(2 * RUNS)]
    course = Course(tuple(order), (1.0,) * (2 * RUNS - 1))
    return outcome_of(rng, factors[::2], [factor * at for at in factors[1::2]], course)


def doubled_pair(seed: int, spread: float) -> str:
    """Independent runs, and twice the rate after."""
    rng = random.Random(seed)
    factors = wandering(rng, 0, spread, 2 * RUNS)
    return outcome_of(rng, factors[:RUNS], [2 * factor for factor in factors[RUNS:]])


def different_percent(outcomes: Sequence[str]) -> float:
    """How many were called different."""
    return 100 * outcomes.count("different") / len(outcomes)


def main(pairs: int) -> None:
    """Prints the table."""
    for minutes in DRIFTS_MIN:
        percent = different_percent([drifting_pair(seed, minutes) for seed in range(pairs)])
        print(f"one host, time constant {minutes:g} min: {percent:.1f} % called different", flush=True)
    for spread in SPREADS:
        percent = different_percent([doubled_pair(seed, spread) for seed in range(pairs)])
        print(f"twice the rate, runs independent, spread {spread:g}: {percent:.1f} % found", flush=True)
    for factor in (1.0, 2.0):
        for minutes in DRIFTS_MIN:
            percent = different_percent([pair_in_turn(seed, minutes, factor) for seed in range(pairs)])
            print(f"in turn, {factor:g} times the rate, {minutes:g} min: {percent:.1f} % called different", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
