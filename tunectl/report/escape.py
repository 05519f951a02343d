"""Text that others chose (IRQ, thread and file names) made safe to print. Pure.

A device or process may put anything into its name: terminal sequences, newlines, bytes that are not
UTF-8. Escaping is visible and loses nothing: `\\x1b` stands for the character.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tunectl.model import Scalar


def printable(text: str) -> str:
    """`text` on one line, each character that does not print (control, surrogate, direction) as its escape."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


# What a terminal without UTF-8 shows instead of the characters that pages draw with. Each is one cell, so columns stay.
_ASCII = str.maketrans(
    {
        **dict(zip("▁▂▃▄▅▆▇█", ".:-=+*%#", strict=True)),
        **dict(zip("▏▎▍▌▋▊▉", "   ####", strict=True)),
        "µ": "u",
        "≤": "<",
        "→": ">",
        "·": "-",
        "…": ".",
        "\N{MULTIPLICATION SIGN}": "x",
    }
)


def encodable(text: str, encoding: str) -> str:
    """`text` with only characters that `encoding` has: drawings become ASCII, other characters their escapes."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "backslashreplace").decode(encoding)
    return text


def shown(value: Scalar) -> str:
    """A value for people: `-` for no value, `empty` for the empty CPU set or text."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "on" if value else "off"
    return printable(str(value)) or "empty"
