"""INI files as systemd and most daemons write them: sections, `key = value`, comments on lines of their own. Pure.

Source: systemd.syntax(7). Quotes are part of a value; the reader of a key knows whether they mean anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Option(NamedTuple):
    """One `key = value`, its section ("" before the first), and its line, the first one is 1."""

    section: str
    key: str
    value: str
    line: int


def parse_ini(text: str, *, continued: bool = True) -> Iterator[Option]:
    """The options in their order. `continued`: a backslash at the end of a line joins it to the next, as in systemd."""
    section, waiting, first = "", "", 0
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip()
        if bare.startswith(("#", ";")):
            continue
        first = first if waiting else number
        if continued and bare.endswith("\\"):
            waiting += bare[:-1] + " "
            continue
        bare, waiting = (waiting + bare).strip(), ""
        if bare.startswith("[") and bare.endswith("]"):
            section = bare[1:-1].strip()
            continue
        key, equals, value = bare.partition("=")
        if equals:
            yield Option(section, key.strip(), value.strip(), first)


def values_of(text: str, section: str, key: str) -> list[str]:
    """The values that a file gives a key in a section, in their order."""
    return [option.value for option in parse_ini(text) if (option.section, option.key) == (section, key)]
