"""The files that EnvironmentFile= of a unit names, by systemd's own grammar. Pure.

It is no shell: nothing is expanded, `export X=1` is an assignment to a name that is none, and systemd leaves it out
with a message in its log. Source: systemd.exec(5), EnvironmentFile=; the tests ask systemd's own parser.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

# Until systemd 254 a backslash continued a comment, too. What stands below such a comment is "doubtful".
_BETWEEN = re.compile(r"(?:[ \t\n\r]+|[#;][^\n\r]*)*+")
_CONTINUED_COMMENT = re.compile(r"[#;](?:[^\\\n\r]|\\[^\n])*+\\\n\Z", re.DOTALL)
_KEY = re.compile(r"[^\n\r][^=\n\r]*+")
_QUOTED = re.compile(r"""[ \t]*(?:'([^']*)'?|"((?:[^"\\]|\\.)*+)\\?"?)""", re.DOTALL)
# To the end of the line, without the blanks there; a backslash takes the next character, and an end of line away.
_PLAIN = re.compile(r"[ \t]*((?:[^\\\n\r \t]|\\.|[ \t]+(?=[^\n\r \t]))*+)\\?[ \t]*", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Assignment(NamedTuple):
    """One `name=value`, and its first and last line; the first of a file is 1."""

    name: str  # as it is written
    value: str
    line: int
    last: int
    is_doubtful: bool = False  # older versions of systemd read it as a part of the comment above

    @property
    def is_valid(self) -> bool:
        """Does systemd hand it on to the process?"""
        return _NAME.fullmatch(self.name) is not None


def parse_environment_file(text: str) -> Iterator[Assignment]:
    """Every assignment in its order, those that systemd leaves out, too; of two to one name the later one counts."""
    at, line = 0, 1
    while True:
        between = _BETWEEN.match(text, at)
        assert between is not None  # it may be empty
        line += between[0].count("\n")
        key = _KEY.match(text, between.end())
        if not key:
            return
        at = key.end()
        if text[at : at + 1] != "=":
            continue
        value, end = _value(text, at + 1)
        last = line + text.count("\n", at, end)
        is_doubtful = _CONTINUED_COMMENT.search(between[0]) is not None
        yield Assignment(key[0].rstrip(), value, line, last, is_doubtful)
        at, line = end, last


def _value(text: str, at: int) -> tuple[str, int]:
    """(the value, where it ends): quoted parts, then the rest of the line as it is."""
    parts = []
    while quoted := _QUOTED.match(text, at):
        # Between double quotes a backslash has a meaning before these alone.
        unescaped = re.sub(r'\\(["\\`$\n])', lambda escaped: escaped[1].strip("\n"), quoted[2] or "")
        parts.append(unescaped if quoted[1] is None else quoted[1])
        at = quoted.end()
    plain = _PLAIN.match(text, at)
    assert plain is not None  # it may be empty
    parts.append(re.sub(r"\\(.)", lambda escaped: escaped[1].strip("\n\r"), plain[1], flags=re.DOTALL))
    return "".join(parts), plain.end()
