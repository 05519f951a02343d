"""What `feed` is asked for, and the words of the native program's command line that are the same for each case."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tunectl.errors import UsageError

LONGEST_S = 86_400
MOST_MESSAGES = 4_000_000  # of a case: the program keeps what it found of each of them


@dataclass(frozen=True)
class FeedRequest:
    """The options of `tunectl probe feed`, lists as text."""

    cpus: str | None = None
    among: str | None = None
    transport: str = "tcp"
    format: str = "ws-json"
    symbols: str = "1"
    rate: int = 10_000
    burst: int = 1
    waiting: str = "poll0"
    tls: str = "off"
    alloc: str = "0"
    stamps: str = "auto"
    duration_s: float = 10.0
    fifo: int | None = None
    intrude: bool = False

    def check(self) -> None:
        """UsageError where rate, burst and duration do not go together."""
        if not 0 < self.duration_s <= LONGEST_S:  # nan is in no range
            raise UsageError(f"--duration {self.duration_s:g}: seconds, above 0 and at most a day")
        messages = math.floor(self.rate * self.duration_s)
        what = f"--rate {self.rate} for --duration {self.duration_s:g}"
        if messages > MOST_MESSAGES:
            most = f"at most {MOST_MESSAGES:,}: fewer a second, or for a shorter time"
            raise UsageError(f"{what}: that is {messages:,} messages", most)
        if messages < max(self.burst, 1):
            fewest = f"--burst {self.burst} needs at least so many: more a second, or for a longer time"
            raise UsageError(f"{what}: that is {messages:,} messages", fewest)

    def words(self, is_stamped: bool) -> Iterator[str]:
        """The program's arguments; without stamps, or with those that the kernel makes."""
        yield from ("--duration", f"{self.duration_s:.6f}", "--stamps", "sw" if is_stamped else "off")
        if self.fifo is not None:
            yield from ("--fifo", str(self.fifo))
        if self.intrude:
            yield "--intrude"
