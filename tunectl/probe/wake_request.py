"""What `wake` is asked for, and the words of the native program's command line that say it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

MESSAGES = 99
SMALLEST = 32  # bytes of a message: struct message of native/src/lib/ring.h
BUSY_POLL_US = 50


@dataclass(frozen=True)
class WakeRequest:
    """The options of `tunectl probe wake`, lists as text; None leaves each at its default."""

    cpus: str | None = None
    among: str | None = None
    mechanisms: str | None = None
    waiting: str | None = None
    idle_ms: str | None = None
    messages: int | None = None
    message_bytes: int | None = None
    fds: int | None = None
    dirty_kib: int | None = None
    fifo: int | None = None
    busy_poll_us: int | None = None
    cold_sender: bool = False
    intrude: bool = False
    listen: str | None = None
    connect: str | None = None

    def words(self) -> Iterator[str]:
        """The program's arguments that are the same for each case."""
        for name, value in (
            ("messages", self.messages),
            ("bytes", self.message_bytes),
            ("fds", self.fds),
            ("dirty-kib", self.dirty_kib),
            ("fifo", self.fifo),
            ("busy-poll-us", self.busy_poll_us),
        ):
            if value is not None:
                yield from (f"--{name}", str(value))
        if self.cold_sender:
            yield "--cold-sender"
        if self.intrude:
            yield "--intrude"
