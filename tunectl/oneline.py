"""A word that another program will read as part of a line: systemd, udev, a boot loader. No character may end the line.

Whatever comes from the command line, the environment or a host file and goes into a unit, a drop-in, a rule or a boot
argument passes through here, where it is written.
"""

from __future__ import annotations

import re

from tunectl.errors import UsageError

# C0 (a newline is one of them), DEL, C1, Unicode's own line ends, and bytes that are not UTF-8.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_NAMES = {"\0": " (NUL)", "\n": " (a newline)", "\x1b": " (ESC)"}


def control_in(text: str) -> str:
    """The first character that ends a line, moves a cursor or is no character, as its escape; "" where none does."""
    found = _CONTROL.search(text)
    return found[0].encode("unicode_escape").decode("ascii") + _NAMES.get(found[0], "") if found else ""


def one_line(word: str, what: str) -> str:
    """The word. UsageError, which names `what` it is and repeats only the character, where it has one of these."""
    if bad := control_in(word):
        raise UsageError(f"{what}: has the control character {bad}", "printable characters, on one line")
    return word
