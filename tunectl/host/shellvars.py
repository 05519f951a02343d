"""Files of shell assignments, such as /etc/default/grub and os-release, read without a shell. Pure.

There are two ways to read one. `evaluate` gives what a shell would have after it sourced the files: a value with a
command substitution in it is unknown, and a command, a condition or a redirection ends the evaluation. `assignments`
gives each line that looks like an assignment, whatever the other lines are, as many daemons read such files; what
systemd makes of one, environmentfiles.py reads. What only a shell can tell is never guessed.
Source: POSIX.1-2017, Shell Command Language, 2.2 Quoting, 2.6.2 Parameter Expansion, 2.6.3 Command Substitution,
2.9.1 Simple Commands; bash(1), PARAMETERS (`+=`).
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tunectl.command import as_data

SH = "bin/sh"  # a link to the shell that scripts are read by
# A recorded host is not trusted: `A=$A$A`, forty times, is a terabyte.
_MAX_VALUE = 1 << 16
_MAX_PIECES = 4096

_NAME = r"[A-Za-z_][A-Za-z0-9_]*+"
# In `$( … )`: quotes, and parentheses one level deep. Where its end is not certain (a comment, `<<`), nothing after is.
_PLAIN = r"""'[^']*'|"[^"$`\\]*"|[^'"$`\\()#<]++|\$(?![({'"])|<(?!<)"""
_SUBSTITUTION = rf"`(?:[^`\\]|\\.)*`|\$\((?!\()(?:{_PLAIN}|\((?:{_PLAIN})*+\))*+\)"
_CHOSEN = rf"(?:[A-Za-z0-9_ ./:=,@%+-]|\$(?!\d)\w++|\$\{{{_NAME}\}})*+"
_EXPANSION = (
    rf"(?P<command>{_SUBSTITUTION})"
    rf"|\$(?:(?P<name>{_NAME})(?!\\\n)|\{{(?P<braced>{_NAME})\}})"
    rf"|\$\{{(?P<asked>{_NAME})(?P<colon>:?)(?P<sign>[-+])(?P<chosen>{_CHOSEN})\}}"
    # no `$1`, `$?`, `${x%y}`; a backslash may be a continuation in the middle of a name
    r"|(?P<dollar>\$)(?![\w{*@#?!$\\(-])"
)
# The parts of a word. A dollar before a quote is literal in dash and a quotation of its own in bash.
_BARE = re.compile(
    r"(?P<text>[^ \t\n'\"$`\\;&|<>()~]+)|'(?P<single>[^']*)'|(?P<open>\")|\\(?P<escaped>.)"
    rf"|(?!\$['\"])(?:{_EXPANSION})",
    re.DOTALL | re.ASCII,
)
_IN_QUOTES = re.compile(rf"(?P<text>[^\"$`\\]+)|\\(?P<escaped>.)|{_EXPANSION}", re.DOTALL | re.ASCII)
_INNER_VARIABLE = re.compile(rf"(\$(?:{_NAME}|\{{{_NAME}\}}))")
_BLANK = r"(?:[ \t]|\\\n)"
_BETWEEN = re.compile(rf"(?:{_BLANK}|\n|#[^\n]*)*+")
_ASSIGNMENT = re.compile(rf"(export{_BLANK}+)?({_NAME})(\+?)=")
_UNSET = re.compile(rf"unset{_BLANK}+({_NAME})(?!\\\n)")
_ANOTHER = re.compile(rf"{_BLANK}+()({_NAME})(\+?)=")  # of the same command
_END = re.compile(rf"{_BLANK}*+(?:(?<![^\s;])#[^\n]*)?(?:\n|;(?!;)|\Z)")
_GLOB = re.compile(r"[*?[]")
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
    """The text from here on is more than plain assignments; its words say what it needs."""

    def __init__(self, why: str = "needs a shell") -> None:
        super().__init__(why)


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


def evaluate(
    files: Iterable[tuple[str, str]], empty: Callable[[str], bool] = nothing_is_empty, shell: str = ""
) -> Variables:
    """The variables once each (name, text) was read in order, as `. FILE` in one shell would leave them.

    `empty` says of a variable that the files do not set whether it is certain to be empty. `shell` is the shell's name
    where that is known: NAME+=VALUE appends in bash, also as sh; to dash it is the name of a command, which is not
    found. A `problem` reads `needs a shell: NAME:LINE`, and what stands behind that line has not been looked at.
    """
    values: dict[str, Value] = {}
    assigned: dict[str, str] = {}
    for name, text in files:
        reader = _Reader(name, text, values, empty)
        try:
            reader.read_file(assigned, shell)
        except NeedsShell as why:
            return Variables(values, assigned, f"{why}: {reader.where()}")
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
        pieces = _Reader("", written, {}, nothing_is_empty).word(splits=False)
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

    def __init__(self, name: str, text: str, values: dict[str, Value], empty: Callable[[str], bool]) -> None:
        self._name, self._text, self._at = name, text, 0
        self._newlines = [at for at, char in enumerate(text) if char == "\n"]
        self._values, self._empty = values, empty

    def where(self) -> str:
        """`/etc/default/grub:6`, of the place reached."""
        return f"{self._name}:{bisect_left(self._newlines, self._at) + 1}"

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Goes past what the pattern matches here."""
        match = pattern.match(self._text, self._at)
        if match:
            self._at = match.end()
        return match

    def read_file(self, assigned: dict[str, str], shell: str) -> None:
        """Every command of the file; `assigned`: where each name was, last. NeedsShell where one is no assignment."""
        while self._take(_BETWEEN) and self._at < len(self._text):
            command = None if "\0" in self._text else self._take(_ASSIGNMENT)
            unset = None if command else self._take(_UNSET)
            if unset:
                self._values.pop(unset[1], None)
                assigned[unset[1]] = self.where()
            target = command
            while target:
                where, name = self.where(), target[2]
                if name in _SHELLS_OWN:
                    raise NeedsShell
                if target[3] and shell != "bash":
                    raise NeedsShell(f"+= needs bash, and sh is {as_data(shell, 'not known')}")
                before = self._variable(name) if target[3] else ()
                self._values[name] = _value([*before, *self.word(splits=bool(command and command[1]))])
                assigned[name] = where
                target = self._take(_ANOTHER)
            if not (command or unset) or not self._take(_END):
                raise NeedsShell

    def word(self, *, splits: bool) -> Value:
        """One word from here. `splits`: what the shell would split and glob, as behind `export`, is refused."""
        pieces: list[Piece] = []
        while match := self._take(_BARE):
            if not match["open"]:
                if splits and (
                    match.lastgroup not in ("text", "single", "escaped") or _GLOB.search(match["text"] or "")
                ):
                    raise NeedsShell
                pieces += self._pieces(match, "")
                continue
            while inner := self._take(_IN_QUOTES):
                pieces += self._pieces(inner, '$`"\\')
            if self._text[self._at : self._at + 1] != '"':
                raise NeedsShell
            self._at += 1
        if self._text[self._at : self._at + 1] not in ("", " ", "\t", "\n", ";"):
            raise NeedsShell
        return _value(pieces)

    def _pieces(self, part: re.Match[str], only: str) -> Value:
        """What a part of a word stands for; `only` names the characters that a backslash has a meaning for, "" all."""
        where = self.where()
        if escaped := part["escaped"]:
            text = "" if escaped == "\n" else escaped if not only or escaped in only else f"\\{escaped}"
            return (Piece(text, where),)
        if command := part["command"]:
            if re.search(r"\bcase\b", command):  # its parentheses need not match
                raise NeedsShell
            return (Piece(None, where),)
        if name := part["name"] or part["braced"]:
            return self._variable(name)
        if part["asked"]:
            return self._choice(part["asked"], bool(part["colon"]), part["sign"], part["chosen"])
        return (Piece(part[0].strip("'") if part.lastgroup == "single" else part[0], where),)

    def _variable(self, name: str) -> Value:
        if name in self._values:
            return self._values[name]
        return () if self._empty(name) else (Piece(None, self.where()),)

    def _choice(self, name: str, or_empty: bool, sign: str, chosen: str) -> Value:
        value = self._variable(name)
        if any(piece.text is None for piece in value):
            return (Piece(None, self.where()),)
        is_set = name in self._values and not (or_empty and not value)
        if sign == "-":
            return value if is_set else self._nested(chosen)
        return self._nested(chosen) if is_set else ()

    def _nested(self, chosen: str) -> Value:
        parts = _INNER_VARIABLE.split(chosen)
        listed = [
            self._variable(part.strip("${}")) if part.startswith("$") else (Piece(part, self.where()),)
            for part in parts
        ]
        return _value([piece for pieces in listed for piece in pieces])


def _value(pieces: list[Piece]) -> Value:
    if len(pieces) > _MAX_PIECES or sum(len(piece.text or "") for piece in pieces) > _MAX_VALUE:
        raise NeedsShell
    return tuple(piece for piece in pieces if piece.text != "")
