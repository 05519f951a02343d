"""INI files as systemd and most daemons write them: sections, `key = value`, comments on lines of their own. Pure.

Source: systemd.syntax(7). Quotes are part of a value; the reader of a key knows whether they mean anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tunectl.host.lines import Line, join_lines


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
    lines = [(number, line.strip()) for number, line in enumerate(f"{text}\n".split("\n"), 1)]
    every = join_lines(lines, comments="#;", anywhere=True) if continued else (Line(one, n, n) for n, one in lines)
    for line in every:
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
