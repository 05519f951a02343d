"""What can go wrong, as one line a user can act on: what happened, where, and what would be right.

A value or a program's words in it are cut where they are longer than anybody reads.
"""

import re

_WORDS = 300  # characters of a line that a program said
_SHOWN = 60  # characters of what is cut
_LINE = 1500
# What stands in quotes, but not between two apostrophes; and what has no space in it. Longer than a path of a host is.
_LONG = re.compile(r"""(?<!\w)(?P<quote>['"])(?:(?!(?P=quote)).){200,}(?P=quote)(?!\w)|\S{400,}""", re.DOTALL)


class TunectlError(Exception):
    """A failure that ends the command: `message` says what and where, `hint` what would be right."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        message = shortened(message)
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class UsageError(TunectlError):
    """Bad input from the operator: an option, a host file, a profile, a CPU list."""

    exit_code = 2


def shortened(message: str) -> str:
    """The message; each long value in it as its beginning and how many characters it has."""
    if len(message) < 200:
        return message
    message = _LONG.sub(_cut, message)
    return message if len(message) <= _LINE else f"{message[:_LINE]}... ({len(message):,} characters)"


def words_of(said: str) -> str:
    """What a program said, for a person: its first and its last line, and how many are between them."""
    lines = [cut_line(line) for line in said.splitlines() if line.strip()]
    if len(lines) < 3:
        return "; ".join(lines)
    return f"{lines[0]} ... ({len(lines) - 2:,} more lines) ... {lines[-1]}"


def cut_line(line: str) -> str:
    """One line that a program said, its beginning where it is long."""
    return line.strip() if len(line) <= _WORDS else f"{line[:_WORDS].strip()}... ({len(line):,} characters)"


def _cut(match: re.Match[str]) -> str:
    return f"{match[0][:_SHOWN]}...{match['quote'] or ''} ({len(match[0]):,} characters)"
