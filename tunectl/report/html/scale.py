"""Logarithmic axes: where a value stands, and which values are marked. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class LogScale:
    """From `low` at `start` to `high` at `end`, in the plot's units; whole decades."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def over(cls, least: float, most: float, start: float, end: float) -> LogScale:
        """The decades that hold both values; at least one."""
        low = 10.0 ** math.floor(math.log10(least) + 1e-9)
        high = 10.0 ** math.ceil(math.log10(max(most, least)) - 1e-9)
        return cls(low, max(high, low * 10), start, end)

    def at(self, value: float) -> float:
        """Where `value` stands; what lies beyond the axis stands at its end."""
        share = math.log10(max(value, self.low) / self.low) / math.log10(self.high / self.low)
        return round(self.start + min(share, 1.0) * (self.end - self.start), 1)

    def decades(self) -> list[float]:
        """The powers of ten on the axis."""
        first, last = round(math.log10(self.low)), round(math.log10(self.high))
        return [10.0**power for power in range(first, last + 1)]
