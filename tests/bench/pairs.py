"""A ratio of two things that are measured in turns: what the machine does meanwhile, it does to both."""

import json
import os
import statistics
import subprocess
from collections.abc import Callable, Sequence
from math import comb
from typing import Any, NamedTuple


class Ratio(NamedTuple):
    """The median of the pairs' ratios, with the 95 % bounds that order statistics give of it."""

    value: float
    least: float
    most: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.least:.2f} to {self.most:.2f})"


def measure_in_turns(rounds: int, first: Callable[[], float], second: Callable[[], float]) -> list[tuple[float, float]]:
    """Each once a round; who begins changes, so that no one of the two always comes after the other."""
    pairs = []
    for number in range(rounds):
        if number % 2:
            after, before = second(), first()
        else:
            before, after = first(), second()
        pairs.append((before, after))
    return pairs


def ratio_of(pairs: Sequence[tuple[float, float]]) -> Ratio:
    """first / second. With fewer than six pairs the bounds are the smallest and the largest, and say less than 95 %."""
    ratios = sorted(first / second for first, second in pairs)
    count, rank = len(ratios), 0
    while 2 * sum(comb(count, below) for below in range(rank + 1)) <= 0.05 * 2**count:
        rank += 1
    rank = max(rank - 1, 0)
    return Ratio(statistics.median(ratios), ratios[rank], ratios[-1 - rank])


def run_json(argv: list[str], **more: str) -> dict[str, Any]:
    """What a program prints; `more` is added to its environment."""
    done = subprocess.run(argv, check=True, capture_output=True, env={**os.environ, **more})
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def median_of(counts: Sequence[int]) -> float:
    """Of values, each followed by how often it came."""
    pairs = sorted(zip(counts[::2], counts[1::2], strict=True))
    left = sum(count for _, count in pairs) / 2
    for value, count in pairs:
        left -= count
        if left <= 0:
            return float(value)
    raise SystemExit("nothing came")
