"""What every experiment with a sender and a receiver can be asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

BUSY_POLL_US = 50  # where nothing else is asked for


@dataclass(frozen=True)
class PairRequest:
    """Options that `tunectl probe wake` and `tunectl probe feed` share; None leaves each at its default."""

    cpus: str | None = None
    among: str | None = None
    fifo: int | None = None
    busy_poll_us: int | None = None
    intrude: bool = False
    listen: str | None = None
    connect: str | None = None

    def pair_words(self) -> Iterator[str]:
        """The program's arguments of these."""
        for name, value in (("fifo", self.fifo), ("busy-poll-us", self.busy_poll_us)):
            if value is not None:
                yield from (f"--{name}", str(value))
        if self.intrude:
            yield "--intrude"
