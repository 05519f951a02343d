"""What goes wrong again and again is said once, and once more when it is over."""

from __future__ import annotations

from collections.abc import Callable


class Complaints:
    """One line when a part begins to fail, one when it fails otherwise, one when it works again."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._open: dict[str, str] = {}

    def about(self, part: str, text: str) -> None:
        """This part fails, for this reason."""
        line = " ".join(text.split())
        if self._open.get(part) != line:
            self._open[part] = line
            self._say(line)

    def over(self, part: str) -> None:
        """This part works."""
        if self._open.pop(part, None) is not None:
            self._say(f"{part}: works again")
