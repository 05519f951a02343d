"""Configuration files of others, line by line: INI sections, and shell assignments. Pure; nothing is ever sourced."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from tunectl.host.sysctld import Setting

_ASSIGNMENT = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$")


class Option(NamedTuple):
    """One `key = value`, its section ("" before the first), and where it stands."""

    section: str
    key: str
    value: str
    line: int


def parse_ini(text: str) -> Iterator[Option]:
    """The options of an INI file in their order; comments are lines of their own, begun by # or ;."""
    section = ""
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip()
        if bare.startswith("[") and bare.endswith("]"):
            section = bare[1:-1].strip()
            continue
        key, equals, value = bare.partition("=")
        if equals and not bare.startswith(("#", ";")):
            yield Option(section, key.strip(), value.strip(), number)


def parse_assignments(text: str) -> Iterator[Option]:
    """`NAME="value" # why` of a file that a shell or systemd reads; what needs a shell to be known is left as it is."""
    for number, line in enumerate(text.split("\n"), 1):
        if match := _ASSIGNMENT.match(line):
            try:
                words = shlex.split(match[2], comments=True)
            except ValueError:  # a quote that a later line closes
                words = [match[2].strip()]
            yield Option("", match[1], words[0] if words else "", number)


def last_wins(settings: list[Setting]) -> list[Setting]:
    """Of each knob's settings the last is the one in force."""
    last = {setting.knob: number for number, setting in enumerate(settings)}
    return [setting._replace(wins=last[setting.knob] == number) for number, setting in enumerate(settings)]
