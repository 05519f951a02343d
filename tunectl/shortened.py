"""A value in a message, cut where it is longer than anybody reads."""

from __future__ import annotations

import re

_SHOWN = 60  # characters of what is cut
_LINE = 1500
# What stands in quotes, but not between two apostrophes; and what has no space in it. Longer than a path of a host is.
_LONG = re.compile(r"""(?<!\w)(?P<quote>['"])(?:(?!(?P=quote)).){200,}(?P=quote)(?!\w)|\S{400,}""", re.DOTALL)


def shortened(message: str) -> str:
    """The message; each long value in it as its beginning and how many characters it has."""
    if len(message) < 200:
        return message
    message = _LONG.sub(_cut, message)
    return message if len(message) <= _LINE else f"{message[:_LINE]}... ({len(message):,} characters)"


def _cut(found: re.Match[str]) -> str:
    return f"{found[0][:_SHOWN]}...{found['quote'] or ''} ({len(found[0]):,} characters)"
