"""Lines of configuration that a backslash continues. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Line(NamedTuple):
    """One line with those that continue it, and the numbers of its first and last line; the first of a file is 1."""

    text: str
    first: int
    last: int


def continued_lines(text: str, between: str = " ", *, comments: str = "", anywhere: bool = False) -> Iterator[Line]:
    """The lines of a text; `between` stands in the place of each backslash at an end. One at the very end is dropped.

    `comments`: a line that begins with one of these is left out, and no backslash continues it (a shell's, udev's);
    with `anywhere` also between lines that are joined.
    """
    yield from join_lines(enumerate(text.split("\n"), 1), between, comments=comments, anywhere=anywhere)


def join_lines(
    numbered: Iterable[tuple[int, str]], between: str = " ", *, comments: str = "", anywhere: bool = False
) -> Iterator[Line]:
    """The same of lines that have their numbers. It takes no more of them than it has yielded."""
    waiting, first = "", 0
    for number, line in numbered:
        if comments and (anywhere or not waiting) and line.lstrip().startswith(tuple(comments)):
            continue
        first = first if waiting else number
        if line.endswith("\\"):
            waiting += line[:-1] + between
            continue
        yield Line(waiting + line, first, number)
        waiting = ""
