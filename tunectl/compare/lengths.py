"""Lengths of gaps, stored so that each question about the long ones is one bisection. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate


class Lengths:
    """Lengths in ns, ascending, each with how often it came; and running sums from the longest down.

    `counts[i]`, `sums[i]` and `squares[i]` are of all gaps from place i on, so index len(values) holds zeros.
    """

    __slots__ = ("counts", "groups", "squares", "sums", "values")

    def __init__(self, groups: Iterable[tuple[float, int]]) -> None:
        self.groups = sorted(groups)
        self.values = [length for length, _ in self.groups]
        down = self.groups[::-1]
        self.counts = [*accumulate((count for _, count in down), initial=0)][::-1]
        self.sums = [*accumulate((length * count for length, count in down), initial=0.0)][::-1]
        self.squares = [*accumulate((length * length * count for length, count in down), initial=0.0)][::-1]

    @property
    def count(self) -> int:
        """How many there are."""
        return self.counts[0]

    @property
    def longest(self) -> float:
        """The longest; 0 without any."""
        return self.values[-1] if self.values else 0.0

    def longer(self, ns: float) -> int:
        """How many are longer than `ns`."""
        return self.counts[bisect_right(self.values, ns)]

    def waited(self, ns: float) -> float:
        """sum(max(0, length - ns)): of all moments of the run, how many ns of them wait longer than `ns`."""
        place = bisect_right(self.values, ns)
        return self.sums[place] - self.counts[place] * ns

    def waited_squares(self, ns: float) -> float:
        """sum(max(0, length - ns) ** 2)."""
        place = bisect_right(self.values, ns)
        return max(self.squares[place] - 2 * ns * self.sums[place] + self.counts[place] * ns * ns, 0.0)

    def nth_longest(self, rank: int) -> float:
        """The length of that rank, 1 for the longest; the shortest there is beyond the last."""
        rank = min(rank, self.count)
        return self.values[bisect_right(self.counts, -rank, key=lambda count: -count) - 1]

    def wait_exceeded(self, budget_ns: float) -> float:
        """The wait that `budget_ns` of the run's moments exceed: where waited() falls to it; 0 if never above it."""
        place = bisect_left(range(len(self.values)), -budget_ns, key=lambda i: -self.waited(self.values[i]))
        if place == len(self.values):
            return self.longest
        return max((self.sums[place] - budget_ns) / self.counts[place], 0.0)
