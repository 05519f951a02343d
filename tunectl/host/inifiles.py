"""Files of sections and `key = value` lines, as systemd and most daemons write them, and lines continued by \\. Pure.

Source: systemd.syntax(7). Quotes are part of a value; the reader of a key knows whether they mean anything.
"""

from collections.abc import Iterator
from typing import NamedTuple


class Option(NamedTuple):
    """One `key = value`, its section ("" before the first), its first and last line; the first of a file is 1."""

    section: str
    key: str
    value: str
    line: int
    last: int


def parse_ini(text: str, *, continued: bool = True) -> Iterator[Option]:
    """The options in their order. `continued`: a backslash at the end of a line joins it to the next, as in systemd."""
    section = ""
    lines = [line.strip() for line in f"{text}\n".split("\n")]
    joined = continued_lines("\n".join(lines), comments="#;", anywhere=True)
    for line in joined if continued else (Line(line, number, number) for number, line in enumerate(lines, 1)):
        bare = line.text.strip()
        if bare.startswith(("#", ";")):
            continue
        if bare.startswith("[") and bare.endswith("]"):
            section = bare[1:-1].strip()
            continue
        key, equals, value = bare.partition("=")
        if equals:
            yield Option(section, key.strip(), value.strip(), line.first, line.last)


def values_of(text: str, section: str, key: str) -> list[str]:
    """The values that a file gives a key in a section, in their order."""
    return [option.value for option in parse_ini(text) if (option.section, option.key) == (section, key)]


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
    waiting, first = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        if comments and (anywhere or not waiting) and line.lstrip().startswith(tuple(comments)):
            continue
        first = first if waiting else number
        if line.endswith("\\"):
            waiting += line[:-1] + between
            continue
        yield Line(waiting + line, first, number)
        waiting = ""
