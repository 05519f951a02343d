"""Lines of configuration that a backslash continues. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Line(NamedTuple):
    """One line with those that continue it, and the numbers of its first and last line; the first of a file is 1."""

    text: str
    first: int
    last: int


def continued_lines(text: str, between: str = " ", *, comments: bool = False) -> Iterator[Line]:
    """The lines of a text; `between` stands in the place of each backslash at an end. One at the very end is dropped.

    `comments`: a line that begins with # is left out, and no backslash continues it (a shell's, udev's).
    """
    waiting, first = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        if comments and not waiting and line.lstrip().startswith("#"):
            continue
        first = first if waiting else number
        if line.endswith("\\"):
            waiting += line[:-1] + between
            continue
        yield Line(waiting + line, first, number)
        waiting = ""
