"""What `wake` is asked for, and the words of the native program's command line that say it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tunectl.experiments.pair_request import PairRequest

MESSAGES = 99


@dataclass(frozen=True)
class WakeRequest(PairRequest):
    """The options of `tunectl probe wake`, lists as text; None leaves each at its default."""

    mechanisms: str | None = None
    waiting: str | None = None
    idle_ms: str | None = None
    messages: int | None = None
    message_bytes: int | None = None
    fds: int | None = None
    dirty_kib: int | None = None
    cold_sender: bool = False

    def words(self) -> Iterator[str]:
        """The program's arguments that are the same for each case."""
        for name, value in (
            ("messages", self.messages),
            ("bytes", self.message_bytes),
            ("fds", self.fds),
            ("dirty-kib", self.dirty_kib),
        ):
            if value is not None:
                yield from (f"--{name}", str(value))
        if self.cold_sender:
            yield "--cold-sender"
        yield from self.pair_words()
