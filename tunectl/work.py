"""What a long command is at, for whoever waits for it: the work is told where it is done, and drawn by `cli`. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Work(NamedTuple):
    """What is done now, until another is told."""

    now: str  # `measuring CPUs 2-3`
    left_s: float | None = None  # of all that was asked for; None: no more is known than before
    longest: str = ""  # the longest gap so far

    def within(self, lead: str = "", after_s: float = 0.0) -> Work:
        """The same as a part of more work, of which so much follows."""
        left_s = None if self.left_s is None else self.left_s + after_s
        return self._replace(now=lead + self.now, left_s=left_s)


Tell = Callable[[Work], None]
