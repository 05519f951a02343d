"""A GRUB script as a tree of commands, conditions, loops and functions. Pure.

A text that GRUB would refuse is refused here, too: what GRUB then does with the lines around it is not followed.
Source: grub-core/script/parser.y.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import NamedTuple

from tunectl.bootloader.grubscript import Word, split_words

_KEYWORDS = frozenset(
    (
        *("case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then", "until"),
        *("while", "[[", "]]"),
    )
)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ENDS = (";", "\n")
_MAX_DEPTH = 64  # GRUB's own limit of nesting is of the same size


class Unfollowed(Exception):  # noqa: N818 - a result of the evaluation, not an error of ours
    """What GRUB does from here on cannot be told; the text is the reason, with file and line.

    `errno` is that of a file that could not be read.
    """

    def __init__(self, why: str, errno: int | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.errno = errno


class Command(NamedTuple):
    """A command with its words, and the block in braces behind it."""

    at: str  # `/boot/grub/grub.cfg:12`
    words: tuple[Word, ...]
    block: Nodes | None


class If(NamedTuple):
    """Each condition with the commands behind its `then`, and those behind `else`."""

    at: str
    branches: tuple[tuple[Nodes, Nodes], ...]
    otherwise: Nodes


class While(NamedTuple):
    """A `while` or `until`: the body as long as the condition's value is `wanted`."""

    at: str
    wanted: bool
    condition: Nodes
    body: Nodes


class For(NamedTuple):
    """A `for NAME in WORDS`."""

    at: str
    name: str
    words: tuple[Word, ...]
    body: Nodes


class Function(NamedTuple):
    """A definition; it takes place where it is read, and only outside of everything else."""

    at: str
    name: str
    body: Nodes


Node = Command | If | While | For | Function
Nodes = tuple[Node, ...]


def parse(name: str, text: str) -> Nodes:
    """The commands of a script; `name` is its file, for the places. Unfollowed where GRUB finds a syntax error."""
    return _Parser(name, text).script()


class _Parser:
    """The words of one text, and how far they are read."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._words = list(split_words(text))
        self._lines = [at for at, char in enumerate(text) if char == "\n"]
        self._next = 0
        self._depth = 0

    def script(self) -> Nodes:
        nodes: list[Node] = []
        self._newlines()
        while self._next < len(self._words):
            nodes.append(self._function() if self._is("function") else self._command())
            if self._next < len(self._words) and not self._mark(*_ENDS):
                raise self._error()
            self._newlines()
        return tuple(nodes)

    def _peek(self) -> Word | None:
        return self._words[self._next] if self._next < len(self._words) else None

    def _at(self) -> str:
        word = self._peek()
        at = word.at if word else (self._lines[-1] if self._lines else 0)
        return f"{self._name}:{bisect_left(self._lines, at) + 1}"

    def _error(self) -> Unfollowed:
        return Unfollowed(f"a syntax error at {self._at()}")

    def _is(self, *raws: str) -> bool:
        word = self._peek()
        return bool(word and word.raw in raws)

    def _expect(self, raw: str) -> None:
        if not self._is(raw):
            raise self._error()
        self._next += 1

    def _mark(self, *marks: str) -> bool:
        """Goes past one of these marks, if it is next."""
        word = self._peek()
        found = bool(word and word.mark in marks and word.mark)
        self._next += found
        return found

    def _newlines(self) -> None:
        while self._mark("\n"):
            pass

    def _commands(self, *ends: str) -> Nodes:
        """Commands up to a keyword in `ends`, or up to `}`, which may stand there without a `;` before it."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise Unfollowed(f"commands nested too deeply at {self._at()}")
        self._newlines()
        nodes = [self._command()]
        while self._mark(*_ENDS):
            self._newlines()
            word = self._peek()
            if not word or self._is(*ends) or (not ends and word.mark == "}"):
                break
            nodes.append(self._command())
        else:
            if ends:
                raise self._error()
        self._depth -= 1
        return tuple(nodes)

    def _command(self) -> Node:
        at = self._at()
        if self._is("if"):
            return self._if(at)
        if self._is("while", "until"):
            return self._while(at)
        if self._is("for"):
            return self._for(at)
        word = self._peek()
        if not word or word.mark or word.raw in _KEYWORDS:
            raise self._error()
        words = self._arguments()
        return Command(at, words, self._block() if self._mark("{") else None)

    def _arguments(self) -> tuple[Word, ...]:
        start = self._next
        while (word := self._peek()) and not word.mark and word.raw not in ("[[", "]]"):
            self._next += 1
        return tuple(self._words[start : self._next])

    def _block(self) -> Nodes:
        nodes = self._commands()
        if not self._mark("}"):
            raise self._error()
        return nodes

    def _if(self, at: str) -> If:
        branches = []
        while self._is("if", "elif"):
            self._next += 1
            condition = self._commands("then")
            self._expect("then")
            branches.append((condition, self._commands("elif", "else", "fi")))
        otherwise: Nodes = ()
        if self._is("else"):
            self._next += 1
            otherwise = self._commands("fi")
        self._expect("fi")
        return If(at, tuple(branches), otherwise)

    def _while(self, at: str) -> While:
        wanted = self._is("while")
        self._next += 1
        condition = self._commands("do")
        self._expect("do")
        body = self._commands("done")
        self._expect("done")
        return While(at, wanted, condition, body)

    def _for(self, at: str) -> For:
        self._next += 1
        name = self._name_word()
        self._expect("in")
        words = self._arguments()
        if not self._mark(*_ENDS):
            raise self._error()
        self._newlines()
        self._expect("do")
        body = self._commands("done")
        self._expect("done")
        return For(at, name, words, body)

    def _function(self) -> Function:
        at = self._at()
        self._next += 1
        name = self._name_word()
        self._newlines()
        if not self._mark("{"):
            raise self._error()
        return Function(at, name, self._block())

    def _name_word(self) -> str:
        word = self._peek()
        if not word or not _NAME.fullmatch(word.raw) or word.raw in _KEYWORDS:
            raise self._error()
        self._next += 1
        return word.raw
