"""Figures of values that were counted in ticks: percentiles, means, histogram, all in ns. Pure."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tunectl.probe.lengths import Lengths, buckets_ns
from tunectl.shapes import FEWEST_P99_9, PERCENTILES

# Where there may be many values, and these are worth no less.
FEWEST = {"99.9": FEWEST_P99_9, "99.99": 10 * FEWEST_P99_9}
# As in native/src/lib/histogram.h: each power of two has 128 buckets; below 128 each value has its own.
_SUB_BITS = 7


class Figures:
    """Values in ticks, and how often each came; the counter makes `hz` of them a second.

    `beyond` more are larger than all of these, by nobody knows how much: what they decide has no figure.
    """

    def __init__(self, values: Sequence[int], hz: float, beyond: int = 0) -> None:
        self.groups = list(zip(values[::2], values[1::2], strict=True))
        self.lengths = Lengths([*self.groups, (math.inf, beyond)] if beyond else self.groups)
        self.hz = hz

    @property
    def n(self) -> int:
        """How many values there are."""
        return self.lengths.count

    def ns(self, ticks: float) -> int:
        """Whole ns, rounded down."""
        return math.floor(ticks * 1e9 / self.hz)

    @property
    def least(self) -> float:
        """In ticks."""
        return self.lengths.values[0]

    @property
    def most(self) -> float:
        """In ticks."""
        return self.lengths.values[-1]

    @property
    def mean(self) -> float:
        """In ticks."""
        return self.lengths.sums[0] / self.lengths.count

    def at(self, name: str) -> float:
        """The percentile of that name, in ticks."""
        return self.lengths.percentile(float(name) / 100)

    def spread_ns(self, fewest: Mapping[str, int] | None = None) -> dict[str, float | None] | None:
        """min, mean, the percentiles and max; None without a value.

        A percentile in `fewest` is None where there are fewer values; so is each figure that has no end.
        """
        if not self.n:
            return None
        missing = {name for name, least in (fewest or {}).items() if self.n < least}
        percentiles = {name: None if name in missing else self.known_ns(self.at(name)) for name in PERCENTILES}
        mean = round(self.mean * 1e9 / self.hz, 1) if math.isfinite(self.mean) else None
        return {"min": self.known_ns(self.least), "mean": mean, **percentiles, "max": self.known_ns(self.most)}

    def summary_ns(self, fewest: Mapping[str, int] | None = None) -> dict[str, Any]:
        """The same, as a cell has what is its main figure: null without a value."""
        spread = self.spread_ns(fewest) or {}
        percentiles = {name: spread[name] for name in PERCENTILES} if spread else None
        return {
            "min_ns": spread.get("min"),
            "mean_ns": spread.get("mean"),
            "percentiles_ns": percentiles,
            "max_ns": spread.get("max"),
        }

    def known_ns(self, ticks: float) -> int | None:
        """Whole ns; None for what has no end."""
        return self.ns(ticks) if math.isfinite(ticks) else None

    def histogram_ns(self) -> list[list[int]]:
        """[from, to, count], ascending."""
        buckets = []
        for value, count in sorted(self.groups):
            shift = max(value.bit_length() - _SUB_BITS - 1, 0)
            first = value >> shift << shift
            buckets.append((first, first + (1 << shift), count))
        return list(buckets_ns(buckets, self.ns))


def halved(values: Sequence[int]) -> list[int]:
    """The same with each value halved, rounded down."""
    return [number // 2 if place % 2 == 0 else number for place, number in enumerate(values)]


def ratio(one: Any, other: Any) -> float | None:
    """With three decimals; None where there is none."""
    return round(one / other, 3) if other > 0 else None
