"""Files of shell assignments, such as /etc/default/grub and os-release, read without a shell. Pure.

There are two ways to read one. `evaluate` gives what a shell would have after it sourced the files: a value with a
command substitution in it is unknown, and a command, a condition or a redirection ends the evaluation. `assignments`
gives each line that looks like an assignment, whatever the other lines are, as many daemons read such files; what
systemd makes of one, environmentfiles.py reads. What only a shell can tell is never guessed.
Source: POSIX.1-2017, Shell Command Language, 2.2 Quoting, 2.6.2 Parameter Expansion, 2.6.3 Command Substitution,
2.9.1 Simple Commands.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
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
_ASSIGNMENT = re.compile(rf"({_NAME})=")
_NAME_ALONE = re.compile(rf"({_NAME})(?=[ \t\n;]|\Z)")
_BUILTIN = re.compile(r"(export|unset)(?=[ \t])")
_GAP = re.compile(r"(?:[ \t]|\\\n)*")
_COMMENT = re.compile(r"#[^\n]*")
_LINE = re.compile(rf"\s*(?:export\s+)?({_NAME})=")
# To assign these changes how the shell goes on, or fails.
_SHELLS_OWN = frozenset(
    ("BASHOPTS", "EUID", "IFS", "LINENO", "OPTIND", "PATH", "PPID", "PWD", "RANDOM", "SECONDS", "SHELLOPTS", "UID", "_")
)


class Piece(NamedTuple):
    """A part of a value and where it was written, `/etc/default/grub:6`; `text` is None where only a shell knows."""

    text: str | None
    where: str


Value = tuple[Piece, ...]


class NeedsShell(Exception):  # noqa: N818 - a signal inside this module, not an error of ours
    """The text from here on is more than plain assignments."""


class Variables(NamedTuple):
    """What the files assign, where each name was assigned (or unset) last, and what ended the evaluation."""

    values: dict[str, Value]
    assigned: dict[str, str]
    problem: str | None

    def text(self, name: str) -> str:
        """A variable's value; what is unknown of it is left out."""
        return "".join(piece.text or "" for piece in self.values.get(name, ()))

    def unknown(self, name: str) -> str | None:
        """Where a part of the value stands that only a shell can work out; None where all is known."""
        return next((piece.where for piece in self.values.get(name, ()) if piece.text is None), None)


class Assignment(NamedTuple):
    """One line `NAME=value`. `value` is without its quotes, or as it is written where only a shell can work it out."""

    name: str
    value: str
    line: int  # the first one is 1
    start: int  # `text[start:end]` is everything behind the `=`, to the end of the line
    end: int


def nothing_is_empty(name: str) -> bool:
    """Of a variable that the files do not set, nothing is known."""
    return False


def evaluate(files: Iterable[tuple[str, str]], empty: Callable[[str], bool] = nothing_is_empty) -> Variables:
    """The variables once each (name, text) was read in order, as `. FILE` in one shell would leave them.

    `empty` says of a variable that the files do not set whether it is certain to be empty. A `problem` reads
    `needs a shell: NAME:LINE`, and what stands behind that line has not been looked at.
    """
    values: dict[str, Value] = {}
    assigned: dict[str, str] = {}
    for name, text in files:
        reader = _Reader(name, text, values, assigned, empty)
        try:
            reader.read_file()
        except NeedsShell:
            return Variables(values, assigned, f"needs a shell: {reader.where()}")
    return Variables(values, assigned, None)


def assignments(text: str) -> Iterator[Assignment]:
    """Every line that begins with an assignment, in order. Values are not expanded: each stands for itself."""
    at = 0
    for number, line in enumerate(text.split("\n"), 1):
        if match := _LINE.match(line):
            yield Assignment(match[1], _unquoted(line[match.end() :]), number, at + match.end(), at + len(line))
        at += len(line) + 1


def _unquoted(written: str) -> str:
    """One word without its quotes; the text as it is where only a shell can work it out."""
    try:
        pieces = _Reader("", written, {}, {}, nothing_is_empty).word(splits=False)
    except NeedsShell:
        return written.strip()
    texts = [piece.text for piece in pieces]
    return written.strip() if None in texts else "".join(text or "" for text in texts)


def last_value(text: str, name: str) -> str:
    """What the last assignment of a variable gives it; "" where there is none."""
    found = [match for line in text.split("\n") if (match := _LINE.match(line)) and match[1] == name]
    return _unquoted(found[-1].string[found[-1].end() :]) if found else ""


class _Reader:
    """A place in a text, and the variables known there."""

    def __init__(
        self, name: str, text: str, values: dict[str, Value], assigned: dict[str, str], empty: Callable[[str], bool]
    ) -> None:
        self._name, self._text, self._at = name, text, 0
        self._newlines = [at for at, char in enumerate(text) if char == "\n"]
        self._values, self._assigned, self._empty = values, assigned, empty

    def where(self) -> str:
        """`/etc/default/grub:6`, of the place reached."""
        return f"{self._name}:{bisect_left(self._newlines, self._at) + 1}"

    def _peek(self, ahead: int = 0) -> str:
        """A character not yet taken; "" past the end."""
        return self._text[self._at + ahead : self._at + ahead + 1]

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Goes past what the pattern matches here."""
        match = pattern.match(self._text, self._at)
        if match:
            self._at = match.end()
        return match

    def _skip(self, count: int = 1) -> None:
        """Goes past some characters."""
        self._at += count

    def read_file(self) -> None:
        """Every command of the file. NeedsShell where one is more than assignments."""
        if "\0" in self._text:
            raise NeedsShell
        while self._past_gap():
            if self._peek() == "\n":
                self._skip()
            else:
                self._command()

    def _past_gap(self) -> str:
        self._take(_GAP)
        self._take(_COMMENT)
        return self._peek()

    def _command(self) -> None:
        if self._peek() == ";":
            raise NeedsShell
        builtin = self._take(_BUILTIN)
        while self._past_gap() not in ("", "\n", ";"):
            self._argument(builtin[1] if builtin else "")
        if self._peek() == ";":
            self._skip()
            if self._peek() == ";":
                raise NeedsShell

    def _argument(self, builtin: str) -> None:
        where = self.where()
        alone = self._take(_NAME_ALONE) if builtin else None
        if alone and builtin == "unset":
            self._values.pop(alone[1], None)
            self._assigned[alone[1]] = where
        if alone:
            return
        name = None if builtin == "unset" else self._take(_ASSIGNMENT)
        if not name or name[1] in _SHELLS_OWN:
            raise NeedsShell
        self._values[name[1]] = self.word(splits=bool(builtin))
        self._assigned[name[1]] = where

    def word(self, *, splits: bool) -> Value:
        """One word from here. `splits`: what the shell would split and glob, as behind `export`, is refused."""
        pieces: list[Piece] = []
        while (char := self._peek()) not in ("", " ", "\t", "\n", ";"):
            if plain := self._take(_UNQUOTED):
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
        self._skip()
        while (char := self._peek()) != '"':
            if plain := self._take(_IN_QUOTES):
                pieces.append(Piece(plain[0], self.where()))
            elif char == "\\":
                self._escape(pieces, '$`"\\')
            elif char:
                pieces += self._expansion(quoted=True)
            else:
                raise NeedsShell
            _bound(pieces)
        self._skip()

    def _escape(self, pieces: list[Piece], only: str) -> None:
        """A backslash; `only` names the characters it has a meaning for, "" means all."""
        char = self._peek(1)
        if not char:
            raise NeedsShell
        if char != "\n":
            pieces.append(Piece(char if not only or char in only else "\\" + char, self.where()))
        self._skip(2)

    def _expansion(self, *, quoted: bool) -> Value:
        where = self.where()
        if self._take(_BACKTICKS):
            return (Piece(None, where),)
        if match := self._take(_VARIABLE):
            return self._variable(match[1] or match[2])
        if match := self._take(_CHOICE):
            return self._choice(match[1], bool(match[2]), match[3], match[4])
        if self._peek() == "$" and self._peek(1) == "(":
            self._skip_substitution()
            return (Piece(None, where),)
        following = self._peek(1)
        # A dollar before a quote is literal in dash and a quotation of its own in bash; either may be /bin/sh.
        if self._peek() == "`" or _OTHER_EXPANSION.match(following) or (following in ("'", '"') and not quoted):
            raise NeedsShell
        self._skip()
        return (Piece("$", where),)

    def _skip_substitution(self) -> None:
        """Past `$( … )`. Where its end is not certain (a comment, a here-document, `case`), nothing after it is."""
        self._skip(2)
        depth = 1
        while depth:
            part = self._take(_SUBSTITUTION_PART)
            if part and re.search(r"\bcase\b", part[0]):
                raise NeedsShell
            if part:
                continue
            self._skip(1 if self._peek() == "$" and self._peek(1) == "(" else 0)
            if self._peek() not in ("(", ")"):
                raise NeedsShell
            depth += 1 if self._peek() == "(" else -1
            self._skip()

    def _variable(self, name: str) -> Value:
        if name in self._values:
            return self._values[name]
        return () if self._empty(name) else (Piece(None, self.where()),)

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
