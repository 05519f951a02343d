"""Evaluates files of shell assignments, such as /etc/default/grub, without a shell. Pure.

A value with a command substitution in it is unknown; a command, a condition or a redirection ends the
evaluation. Every piece of a value remembers its file and line.
Source: POSIX.1-2017, Shell Command Language, 2.9.1 Simple Commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from tunectl.bootloader.shellwords import NeedsShell, Value, WordReader

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_NAME_ALONE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?=[ \t\n;]|\Z)")
_BUILTIN = re.compile(r"(export|unset)(?=[ \t])")
_GAP = re.compile(r"(?:[ \t]|\\\n)*")
_COMMENT = re.compile(r"#[^\n]*")
# To assign these changes how the shell goes on, or fails.
_SHELLS_OWN = frozenset(
    ("BASHOPTS", "EUID", "IFS", "LINENO", "OPTIND", "PATH", "PPID", "PWD", "RANDOM", "SECONDS", "SHELLOPTS", "UID", "_")
)


class Variables(NamedTuple):
    """What the files assign, where each name was assigned last, and what ended the evaluation."""

    values: dict[str, Value]
    assigned: dict[str, str]
    problem: str | None

    def text(self, name: str) -> str:
        """A variable's value; what is unknown of it is left out."""
        return "".join(piece.text or "" for piece in self.values.get(name, ()))

    def unknown(self, name: str) -> str | None:
        """Where a part of the value stands that only a shell can work out; None where all is known."""
        return next((piece.where for piece in self.values.get(name, ()) if piece.text is None), None)


def evaluate(files: Iterable[tuple[str, str]]) -> Variables:
    """The variables once each (name, text) was read in order, as `. FILE` in one shell would leave them.

    A `problem` reads `needs a shell: NAME:LINE`, and what stands behind that line has not been looked at.
    """
    values: dict[str, Value] = {}
    assigned: dict[str, str] = {}
    for name, text in files:
        reader = _FileReader(name, text, values, assigned)
        try:
            reader.read()
        except NeedsShell:
            return Variables(values, assigned, f"needs a shell: {reader.where()}")
    return Variables(values, assigned, None)


class _FileReader(WordReader):
    def __init__(self, name: str, text: str, values: dict[str, Value], assigned: dict[str, str]) -> None:
        super().__init__(name, text, values)
        self._has_nul = "\0" in text
        self._assigned = assigned

    def read(self) -> None:
        if self._has_nul:
            raise NeedsShell
        while self._past_gap():
            if self.peek() == "\n":
                self.skip()
            else:
                self._command()

    def _past_gap(self) -> str:
        self.take(_GAP)
        self.take(_COMMENT)
        return self.peek()

    def _command(self) -> None:
        if self.peek() == ";":
            raise NeedsShell
        builtin = self.take(_BUILTIN)
        while self._past_gap() not in ("", "\n", ";"):
            self._argument(builtin[1] if builtin else "")
        if self.peek() == ";":
            self.skip()
            if self.peek() == ";":
                raise NeedsShell

    def _argument(self, builtin: str) -> None:
        where = self.where()
        alone = self.take(_NAME_ALONE) if builtin else None
        if alone and builtin == "unset":
            self._values.pop(alone[1], None)
        if alone:
            return
        name = None if builtin == "unset" else self.take(_ASSIGNMENT)
        if not name or name[1] in _SHELLS_OWN:
            raise NeedsShell
        self._values[name[1]] = self.word(splits=bool(builtin))
        self._assigned[name[1]] = where
