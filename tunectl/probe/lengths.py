"""Lengths of gaps, stored so that each question about the long ones is one bisection. Pure.

Percentiles of gaps and of arrivals are computed here and nowhere else; compare/estimate has their bounds. A message
arrives at a uniformly random moment of the run; within a gap it waits for the rest of it, else not at all:
P(wait > x) = sum(max(0, length - x)) / run.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, groupby
from operator import itemgetter

from tunectl.shapes import nearest_rank


def buckets_ns(buckets: Iterable[tuple[int, int, int]], ns: Callable[[float], int]) -> Iterator[list[int]]:
    """[from, to, count] of buckets in ticks, ascending, by `ns`; those narrower than a nanosecond are one."""
    rows = ((ns(first), ns(end), count) for first, end, count in buckets)
    for from_ns, same in groupby(rows, key=itemgetter(0)):
        together = list(same)
        yield [from_ns, max(together[-1][1], from_ns + 1), sum(count for _, _, count in together)]


class Lengths:
    """Lengths in one unit of time, ascending, each with how often it came; and running sums from the longest down.

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

    def percentile(self, share: float) -> float:
        """The nearest-rank percentile of the lengths, `share` as a fraction: 0.999; 0 without any."""
        return self.nth_longest(self.count - nearest_rank(self.count, share) + 1) if self.count else 0.0

    def is_last(self, share: float) -> bool:
        """Is this percentile the longest of all?"""
        return nearest_rank(self.count, share) >= self.count

    def arrival_percentile(self, share: float, run: float) -> float:
        """The wait that this share of all arrivals during `run` does not exceed."""
        return self.wait_exceeded(run * (1 - share))

    def wait_exceeded(self, budget_ns: float) -> float:
        """The wait that `budget_ns` of the run's moments exceed: where waited() falls to it; 0 if never above it."""
        place = bisect_left(range(len(self.values)), -budget_ns, key=lambda i: -self.waited(self.values[i]))
        if place == len(self.values):
            return self.longest
        return max((self.sums[place] - budget_ns) / self.counts[place], 0.0)
