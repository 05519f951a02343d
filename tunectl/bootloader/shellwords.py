"""Reads one word of shell text: its quotes, escapes and variables. What only a shell can tell is never guessed. Pure.

Source: POSIX.1-2017, Shell Command Language, 2.2 Quoting, 2.6.2 Parameter Expansion, 2.6.3 Command Substitution.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import NamedTuple

# A recorded host is not trusted: `A=$A$A`, forty times, is a terabyte.
_MAX_VALUE = 1 << 16
_MAX_PIECES = 4096

_NAME = r"[A-Za-z_][A-Za-z0-9_]*+"
_UNQUOTED = re.compile(r"[^ \t\n'\"$`\\;&|<>()~]+")
_IN_QUOTES = re.compile(r'[^"$`\\]+')
_VARIABLE = re.compile(rf"\$(?:({_NAME})(?!\\\n)|\{{({_NAME})\}})")
_CHOICE = re.compile(
    rf"\$\{{({_NAME})(:?)([-+])((?:[A-Za-z0-9_ ./:=,@%+-]|\$(?!\d)\w++|\$\{{{_NAME}\}})*)\}}", re.ASCII
)
_INNER_VARIABLE = re.compile(rf"(\$(?:{_NAME}|\{{{_NAME}\}}))")
_BACKTICKS = re.compile(r"`(?:[^`\\]|\\.)*`", re.DOTALL)
_SUBSTITUTION_PART = re.compile(r"'[^']*'|\"[^\"$`\\]*\"|[^'\"$`\\()#<]+|\$(?![({'\"])|<(?!<)")
# `$1`, `$?`, `${x%y}`; a backslash may be a continuation in the middle of a name.
_OTHER_EXPANSION = re.compile(r"[\w{*@#?!$\\-]")

# Set by grub-mkconfig itself before it reads the files, so their values are not in the files.
_MKCONFIGS_OWN = re.compile(r"GRUB_(DEVICE(_BOOT)?(_(PART)?UUID)?|FS|DISABLE_OS_PROBER|EARLY_INITRD_LINUX_STOCK)")


class Piece(NamedTuple):
    """A part of a value and where it was written, `/etc/default/grub:6`; `text` is None where only a shell knows."""

    text: str | None
    where: str


Value = tuple[Piece, ...]


class NeedsShell(Exception):  # noqa: N818 - a signal between these two modules, not an error of ours
    """The text from here on is more than plain assignments."""


class WordReader:
    """A place in a text, and the variables known there."""

    def __init__(self, name: str, text: str, values: dict[str, Value]) -> None:
        self._name, self._text, self._at = name, text, 0
        self._lines = [at for at, char in enumerate(text) if char == "\n"]
        self._values = values

    def where(self) -> str:
        """`/etc/default/grub:6`, of the place reached."""
        return f"{self._name}:{bisect_left(self._lines, self._at) + 1}"

    def peek(self, ahead: int = 0) -> str:
        """A character not yet taken; "" past the end."""
        return self._text[self._at + ahead : self._at + ahead + 1]

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Goes past what the pattern matches here."""
        found = pattern.match(self._text, self._at)
        if found:
            self._at = found.end()
        return found

    def skip(self, count: int = 1) -> None:
        """Goes past some characters."""
        self._at += count

    def word(self, *, splits: bool) -> Value:
        """One word from here. `splits`: what the shell would split and glob, as behind `export`, is refused."""
        pieces: list[Piece] = []
        while (char := self.peek()) not in ("", " ", "\t", "\n", ";"):
            if plain := self.take(_UNQUOTED):
                if splits and re.search(r"[*?[]", plain[0]):
                    raise NeedsShell
                pieces.append(Piece(plain[0], self.where()))
            elif char == "'":
                pieces.append(self._single_quoted())
            elif char == '"':
                self._double_quoted(pieces)
            elif char == "\\":
                self._escape(pieces, "")
            elif char in "$`" and not splits:
                pieces += self._expansion(quoted=False)
            else:
                raise NeedsShell
            _bound(pieces)
        return _value(pieces)

    def _single_quoted(self) -> Piece:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise NeedsShell
        piece = Piece(self._text[self._at + 1 : end], self.where())
        self._at = end + 1
        return piece

    def _double_quoted(self, pieces: list[Piece]) -> None:
        self.skip()
        while (char := self.peek()) != '"':
            if plain := self.take(_IN_QUOTES):
                pieces.append(Piece(plain[0], self.where()))
            elif char == "\\":
                self._escape(pieces, '$`"\\')
            elif char:
                pieces += self._expansion(quoted=True)
            else:
                raise NeedsShell
            _bound(pieces)
        self.skip()

    def _escape(self, pieces: list[Piece], only: str) -> None:
        """A backslash; `only` names the characters it has a meaning for, "" means all."""
        char = self.peek(1)
        if not char:
            raise NeedsShell
        if char != "\n":
            pieces.append(Piece(char if not only or char in only else "\\" + char, self.where()))
        self.skip(2)

    def _expansion(self, *, quoted: bool) -> Value:
        where = self.where()
        if self.take(_BACKTICKS):
            return (Piece(None, where),)
        if found := self.take(_VARIABLE):
            return self._variable(found[1] or found[2])
        if found := self.take(_CHOICE):
            return self._choice(found[1], bool(found[2]), found[3], found[4])
        if self.peek() == "$" and self.peek(1) == "(":
            self._skip_substitution()
            return (Piece(None, where),)
        following = self.peek(1)
        # A dollar before a quote is literal in dash and a quotation of its own in bash; either may be /bin/sh.
        if self.peek() == "`" or _OTHER_EXPANSION.match(following) or (following in ("'", '"') and not quoted):
            raise NeedsShell
        self.skip()
        return (Piece("$", where),)

    def _skip_substitution(self) -> None:
        """Past `$( … )`. Where its end is not certain (a comment, a here-document, `case`), nothing after it is."""
        self.skip(2)
        depth = 1
        while depth:
            part = self.take(_SUBSTITUTION_PART)
            if part and re.search(r"\bcase\b", part[0]):
                raise NeedsShell
            if part:
                continue
            self.skip(1 if self.peek() == "$" and self.peek(1) == "(" else 0)
            if self.peek() not in ("(", ")"):
                raise NeedsShell
            depth += 1 if self.peek() == "(" else -1
            self.skip()

    def _variable(self, name: str) -> Value:
        if name in self._values:
            return self._values[name]
        if name.startswith("GRUB_") and not _MKCONFIGS_OWN.fullmatch(name):
            return ()
        return (Piece(None, self.where()),)

    def _choice(self, name: str, or_empty: bool, sign: str, word: str) -> Value:
        value = self._variable(name)
        if any(piece.text is None for piece in value):
            return (Piece(None, self.where()),)
        is_set = name in self._values and not (or_empty and not value)
        if sign == "-":
            return value if is_set else self._nested(word)
        return self._nested(word) if is_set else ()

    def _nested(self, word: str) -> Value:
        pieces: list[Piece] = []
        for part in _INNER_VARIABLE.split(word):
            pieces += self._variable(part.strip("${}")) if part.startswith("$") else [Piece(part, self.where())]
            _bound(pieces)
        return _value(pieces)


def _bound(pieces: list[Piece]) -> None:
    if len(pieces) > _MAX_PIECES:
        raise NeedsShell


def _value(pieces: list[Piece]) -> Value:
    if sum(len(piece.text or "") for piece in pieces) > _MAX_VALUE:
        raise NeedsShell
    return tuple(piece for piece in pieces if piece.text != "")
