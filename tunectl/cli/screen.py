"""A page on a terminal that may be too small for it: what of it is shown, and the keys that move it."""

from __future__ import annotations

import os
import re
import select
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from tunectl.wording import plural

# What a terminal sends for a key: one character, or a sequence (ECMA-48; xterm's "PC-style function keys").
_SENT = re.compile(rb"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Z])|[^\x1b]", re.DOTALL)
_LINE, _PAGE, _END = 1, 1000, 1_000_000
_MOVES = {
    **dict.fromkeys((b"j", b"\n", b"\r", b"\x1b[B", b"\x1bOB"), _LINE),
    **dict.fromkeys((b"k", b"\x1b[A", b"\x1bOA"), -_LINE),
    **dict.fromkeys((b" ", b"f", b"\x1b[6~"), _PAGE),
    **dict.fromkeys((b"b", b"\x1b[5~"), -_PAGE),
    **dict.fromkeys((b"G", b"\x1b[F", b"\x1bOF", b"\x1b[4~"), _END),
    **dict.fromkeys((b"g", b"\x1b[H", b"\x1bOH", b"\x1b[1~"), -_END),
}
_QUITS = (b"q", b"Q", b"\x04")
_HINTS = ("; arrows, PgUp/PgDn or j/k scroll, q quits", "; j/k scroll, q quits", "; j k q")


class Asked(NamedTuple):
    """What the keys asked for: `moves` in the order of the keys, in lines, screens (_PAGE) or all there is (_END)."""

    moves: tuple[int, ...] = ()
    quits: bool = False


def asked(sent: bytes) -> Asked:
    """What these keys ask for. A key that means nothing here is ignored."""
    keys = _SENT.findall(sent)
    return Asked(tuple(_MOVES[key] for key in keys if key in _MOVES), any(key in _QUITS for key in keys))


class Window(NamedTuple):
    """Which lines of a page are shown: the first always, then `room` lines from `top` on, then what is hidden."""

    top: int
    room: int
    hidden_above: int
    hidden_below: int

    @classmethod
    def over(cls, lines: int, height: int, top: int) -> Window:
        """The window on a page of so many lines, not beyond its end. A page that fits is shown whole."""
        if lines <= height:
            return cls(0, max(lines - 1, 0), 0, 0)
        room = max(height - 2, 1)
        top = max(0, min(top, lines - 1 - room))
        return cls(top, room, top, lines - 1 - room - top)

    def moved(self, moves: Sequence[int]) -> int:
        """Where it begins after these moves; over() keeps it on the page."""
        top, rows = self.top, self.top + self.room + self.hidden_below
        for move in moves:
            if abs(move) == _PAGE:
                move = max(self.room - 1, 1) * (1 if move > 0 else -1)
            top = max(0, min(top + move, rows - self.room))
        return top

    def shown(self) -> slice:
        """Of the page's lines without the first."""
        return slice(self.top, self.top + self.room)

    def said(self, alerts: Sequence[range], width: int, *, has_keys: bool) -> str:
        """The last line: how much is hidden, and how to see it; "" where nothing is.

        `alerts` has for each alert its lines on the page without the first; one that is not whole on the screen counts.
        """
        end = self.top + self.room
        below = sum(one.stop > end for one in alerts)
        above = sum(one.start < self.top and one.stop <= end for one in alerts)
        hints = _HINTS if has_keys else ("; a taller terminal shows them", "")
        told = [self._told(below, above), self._told(below, 0)]
        if below:
            alone = f"{plural(below, 'alert')} below"
            told += [f"{alone}, {plural(self.hidden_above, 'line')} above"] if self.hidden_above else []
            told.append(alone)
        # The narrower the terminal, the less is said: first of the keys, then of what is above.
        every = [said + hint for said in told for hint in (*hints, "")] if told[0] else [""]
        return next((said for said in every if len(said) <= width), told[-1])

    def _told(self, alerts_below: int, alerts_above: int) -> str:
        below = f"{_counted(alerts_below, self.hidden_below)} below" if self.hidden_below else ""
        above = f"{_counted(alerts_above, self.hidden_above)} above" if self.hidden_above else ""
        return ", ".join(filter(None, (below, above)))


def _counted(alerts: int, lines: int) -> str:
    """`2 alerts and 22 lines`"""
    found = [(alerts, "alert")] if alerts else []
    return " and ".join(plural(count, word) for count, word in [*found, (lines, "line")])


class Keyboard:
    """The terminal's keys, one by one and without an echo. Closed, the terminal is as it was before."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._before: Any = None
        # A process in the background that changes the terminal's mode is stopped.
        with suppress(OSError):
            if os.tcgetpgrp(fd) == os.getpgrp():
                self.open()

    @property
    def is_open(self) -> bool:
        """Are there keys?"""
        return self._before is not None

    def open(self) -> None:
        """From now on a key is read when it is pressed; Ctrl-C and Ctrl-Z still are signals."""
        self._before = termios.tcgetattr(self.fd)
        tty.setcbreak(self.fd, termios.TCSANOW)

    def close(self) -> None:
        """The terminal's mode is what it was."""
        if self._before is not None:
            termios.tcsetattr(self.fd, termios.TCSANOW, self._before)
            self._before = None

    def read(self) -> Asked:
        """What the keys that were pressed since ask for. Never waits; a terminal that is gone asks to quit."""
        if not self.is_open:
            return Asked()
        sent = b"".join(self._waiting())
        return asked(sent)

    def _waiting(self) -> Iterator[bytes]:
        while select.select([self.fd], [], [], 0)[0]:
            try:
                data = os.read(self.fd, 4096)
            except OSError:
                data = b""
            yield data or _QUITS[0]
            if len(data) < 4096:
                return
