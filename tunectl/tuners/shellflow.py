"""Which commands of a shell script are never run: what stands behind its end, and functions that nobody calls. Pure.

Conditions are not judged: what stands in one may be run. So may a function where a script calls what only it knows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_OPENERS = {"if": "fi", "for": "done", "while": "done", "until": "done", "select": "done", "case": "esac"}
_CLOSERS = {"fi": ("if",), "done": ("for", "while", "until", "select"), "esac": ("case",)}
_LEADING = frozenset({"then", "do", "else", "elif", "!", "time"})
_UNKNOWN_CALLS = frozenset({"eval", ".", "source"})
_NAMES = re.compile(r"[\w-]+")
_IN_TURN = ("", ";")  # what stands before a command that is run in any case
_ANY = "*"


class Flow:
    """A walk along the commands of a script, in their order."""

    def __init__(self) -> None:
        self.ended = False  # nothing behind the last command is run
        self._open: list[tuple[str, str]] = []  # (what is open, the function's name)
        self._named = ""  # a function whose body comes next
        self._last: tuple[str, list[str]] = ("", [])  # its function, and the words of a command that may name one
        self._before = ""
        self._uses: dict[str, set[str]] = {}

    @property
    def function(self) -> str:
        """The function that the last command belongs to; "" for none."""
        return next((name for kind, name in reversed(self._open) if kind == "function"), "")

    def new_line(self) -> None:
        """A line goes on where the last one ended with an operator."""
        self._before = self._before if self._before in ("&&", "||", "|") else ""

    def step(self, sign: str, words: Sequence[str]) -> None:
        """One command, and the separator before it."""
        self._sign(sign)
        before = sign or self._before
        self._before = "" if words else before
        if not words:
            return
        if words == ["("] or words == [")"]:
            self._parenthesis(words[0])
            return
        rest = list(words)
        while rest and (rest[0] in _LEADING or rest[0] in _CLOSERS):
            self._close(*_CLOSERS.get(rest.pop(0), ()))
        self._use(rest)
        if rest[:1] == ["function"] and len(rest) > 1:
            self._named, self._last = rest[1], ("", [])
        elif rest and rest[0] in _OPENERS:
            self._open.append((rest[0], ""))
        elif rest and not self._open and before in _IN_TURN and "|" not in rest:
            self.ended |= rest[0] == "exit" or (rest[0] == "exec" and _is_program(rest[1:]))

    def _sign(self, sign: str) -> None:
        if sign == "{":
            self._open.append(("function", self._named) if self._named else ("{", ""))
            self._named = ""
        elif sign == "}":
            self._close("{", "function")

    def _parenthesis(self, sign: str) -> None:
        """`name ()` names a function, any other is a subshell; a single `)` is a pattern of `case`."""
        if sign == "(":
            self._open.append(("(", ""))
        elif self._open and self._open[-1][0] == "(":
            self._open.pop()
            if len(self._last[1]) == 1:
                self._named, self._last = self._last[1][0], ("", [])

    def _close(self, *kinds: str) -> None:
        if self._open and self._open[-1][0] in kinds:
            self._open.pop()

    def _use(self, words: list[str]) -> None:
        owner, last = self._last
        names = self._uses.setdefault(owner, set())
        names.update(name for word in last for name in _NAMES.findall(word))
        if last and (last[0].startswith("$") or last[0] in _UNKNOWN_CALLS):
            names.add(_ANY)
        self._last = self.function, words

    def is_called(self, function: str) -> bool:
        """May a function be run? To ask at the end."""
        self._use([])
        reached, waiting = {""}, [""]
        while waiting:
            uses = self._uses.get(waiting.pop(), set())
            if _ANY in uses:
                return True
            waiting += uses - reached
            reached |= uses
        return function in reached


def _is_program(words: Sequence[str]) -> bool:
    """Does `exec` take the shell's place? With redirections alone it does not."""
    return bool(words) and not re.match(r"[0-9]*$|[<>&]", words[0])
