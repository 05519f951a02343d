"""tunectl monitor --watch: the page of `--once`, drawn anew after each snapshot; keys move what is too large."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import termios
import tty
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

from rich.console import Console
from rich.live import Live
from rich.text import Text

from tunectl.cli.command import is_terminal, may_colour, typed
from tunectl.cli.helped import OK
from tunectl.cli.options import Options
from tunectl.model import Document
from tunectl.monitor.document import monitor_body
from tunectl.monitor.model import Snapshot, Status
from tunectl.monitor.wakeup import STOPPING, DeviceEvents, Wakeup
from tunectl.monitor.watcher import Watcher, verdict_of
from tunectl.report import render
from tunectl.report.escape import encodable, printable
from tunectl.report.text.monitor import MAX_PAST, alerts_of
from tunectl.report.text.page import fold
from tunectl.shapes import now_utc
from tunectl.tuning.inspection import Inspection
from tunectl.wording import plural

_ENDING = (*STOPPING, signal.SIGHUP, signal.SIGQUIT)  # after each of them the terminal must be as it was


def run_watch(
    options: Options, inspection: Inspection, interval_s: float | None, duration_s: float | None, notes: Sequence[str]
) -> int:
    """Runs until q or Ctrl-C, or until the duration is over."""
    wakeup, watcher = Wakeup(), Watcher(inspection, {}, typed=typed(options).fix, beside=True)
    wakeup.catch((*_ENDING, signal.SIGTSTP, signal.SIGWINCH))
    events = DeviceEvents(wakeup.poke)
    events.go_to(watcher.watched_host.announce)
    unheard = events.start() if inspection.root.live else ""
    said = [*notes, *([f"device events are not heard: {unheard}"] if unheard else [])]
    interval = interval_s or inspection.config.monitor.interval_s
    console = Console(markup=False, highlight=False, emoji=False)
    end = wakeup.now_s() + duration_s if duration_s else float("inf")
    keyboard = Keyboard(sys.stdin.fileno()) if is_terminal(sys.stdin) else None
    try:
        if keyboard and keyboard.is_open:
            wakeup.also(keyboard.fd)
        # Without rich's own thread: the page is drawn only after a look or a key, because drawing is work on the host
        # we watch.
        with Live(console=console, screen=True, auto_refresh=False, vertical_overflow="crop") as live:
            _View(options, inspection, watcher, wakeup, live, keyboard, said).run(interval, end)
    finally:
        if keyboard:
            keyboard.close()
        events.stop()
        wakeup.close()
    return OK


@dataclass
class _View:
    """The loop: a look when it is due, and the page after a look, a key, or a terminal of another size."""

    options: Options
    inspection: Inspection
    watcher: Watcher
    wakeup: Wakeup
    live: Live
    keyboard: Keyboard | None
    notes: Sequence[str]
    top: int = 0  # the first line shown below the headline
    helps: bool = False  # the keys are shown
    past: deque[Mapping[str, Any]] = field(default_factory=lambda: deque(maxlen=MAX_PAST))  # CPUs and zones, each look

    def run(self, interval: float, end: float) -> None:
        """Until a signal, the key q, or the end."""
        wakeup = self.wakeup
        status, _ = self.watcher.cycle.step()
        body = self._seen(status, None)
        due = wakeup.now_s() + min(interval, 1.0)  # the second look comes soon: it has the first rates
        moves: tuple[int, ...] = ()
        while True:
            self._draw(body, moves)
            if wakeup.now_s() >= end:
                return
            signals, _ = wakeup.sleep(max(0.0, min(due, end) - wakeup.now_s()))
            if signals & set(_ENDING):
                return
            if signal.SIGTSTP in signals:
                self._pause()
            moves, quits, helps = self.keyboard.read() if self.keyboard else Asked()
            if quits:
                return
            self.helps ^= helps
            if wakeup.now_s() >= due:
                before = status.snapshot
                status, _ = self.watcher.cycle.step()
                body = self._seen(status, before)
                due = max(due + interval, wakeup.now_s())

    def _pause(self) -> None:
        """Ctrl-Z: the shell gets its terminal back as it was, until this process goes on."""
        self.live.stop()
        had_keys = self.keyboard is not None and self.keyboard.is_open
        if self.keyboard:
            self.keyboard.close()
        os.kill(os.getpid(), signal.SIGSTOP)
        if self.keyboard and had_keys:
            self.keyboard.open()
        self.live.start()

    def _seen(self, status: Status, before: Snapshot | None) -> dict[str, Any]:
        """The page's body, with what was seen before."""
        body = monitor_body(status, before, verdict_of(status), self.notes)
        self.past.append({"cpus": body["cpus"], "zones": body["zones"]})
        return {**body, "past": list(self.past)}

    def _draw(self, body: Mapping[str, Any], moves: Sequence[int]) -> None:
        console = self.live.console
        page = self._lines(body, console.width)
        if self.helps:
            page[1:] = map(Text, ("", "Keys", *(f"  {keys:<20}{what}" for keys, what in KEYS)))
        parts = [folded(line, console.width) for line in page]
        lines = [part for line in parts for part in line]
        window = Window.over(len(lines), console.height, self.top)
        self.top = window.moved(moves)
        window = Window.over(len(lines), console.height, self.top)
        seen = [*lines[:1], *lines[1:][window.shown()]]
        begins = [0, *accumulate(map(len, parts))]
        places = places_of(alerts_of(body, self.options.verbose), [line.plain for line in page[1:]])
        alerts = [range(begins[place.start + 1] - 1, begins[place.stop + 1] - 1) for place in places]
        has_keys = self.keyboard is not None and self.keyboard.is_open
        said = window.said(alerts, console.width, has_keys=has_keys)
        if said or (has_keys and len(lines) < console.height):
            said = said or _HINTS[0].removeprefix("; ")
            seen.append(Text(said, "reverse" if may_colour() else ""))
        self.live.update(Text("\n", no_wrap=True, overflow="crop").join(seen), refresh=True)

    def _lines(self, body: Mapping[str, Any], width: int) -> list[Text]:
        document = Document("monitor", self.inspection.identity, now_utc(), body, (), self.options.verbose)
        text = render(document, "text", width=width, colour=may_colour())
        whole = Text.from_ansi(encodable(text, sys.stdout.encoding or "utf-8"), no_wrap=True, overflow="crop")
        return list(whole.split("\n", allow_blank=False))


def folded(line: Text, width: int) -> list[Text]:
    """The line in parts of at most `width` cells, each behind the line's indentation: nothing of it is cut off. Pure.

    A page breaks its lines between words, and leaves a longer word whole, for a terminal to wrap.
    """
    if line.cell_len <= width:
        return [line]
    indent = len(line.plain) - len(line.plain.lstrip(" "))
    lead = Text(" " * (indent if indent < width // 2 else 0), no_wrap=True, overflow="crop")
    ends = list(accumulate(map(len, fold(line.plain[indent:], width - len(lead)))))
    return [lead.copy().append_text(part) for part in line[indent:].divide(ends[:-1])]


def places_of(alerts: Sequence[Mapping[str, Any]], lines: Sequence[str]) -> list[range]:
    """The lines of each alert that fires; those that the page only counts have the line that counts them. Pure."""
    at = next((n for n, text in enumerate(lines) if any(_is_head(text, alert) for alert in alerts)), 0)
    found: list[range] = []
    while at < len(lines) and len(found) < len(alerts) and any(_is_head(lines[at], alert) for alert in alerts):
        end = next((n for n in range(at + 1, len(lines)) if not lines[n].startswith("    ")), len(lines))
        found.append(range(at, end))
        at = end
    return found + [range(at, at + 1)] * (len(alerts) - len(found))


def _is_head(line: str, alert: Mapping[str, Any]) -> bool:
    """Is it the line that names this alert?"""
    return line.split()[:2] == [alert["severity"], *printable(alert["identity"]).split()[:1]]


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
_HELPS = b"?"
_HINTS = ("; ? shows the keys, q quits", "; ? q")
KEYS = (
    ("down, j, Enter", "a line down"),
    ("up, k", "a line up"),
    ("PgDn, Space, f", "a screen down"),
    ("PgUp, b", "a screen up"),
    ("Home, g; End, G", "the first line; the last"),
    ("?", "the keys, and back to the host"),
    ("q, Ctrl-C", "ends"),
)


class Asked(NamedTuple):
    """What the keys asked for: `moves` in the order of the keys, in lines, screens (_PAGE) or all there is (_END).

    `helps`: to show the keys, or not any more.
    """

    moves: tuple[int, ...] = ()
    quits: bool = False
    helps: bool = False


def asked(sent: bytes) -> Asked:
    """What these keys ask for. A key that means nothing here is ignored."""
    keys = _SENT.findall(sent)
    quits, helps = any(key in _QUITS for key in keys), keys.count(_HELPS) % 2 == 1
    return Asked(tuple(_MOVES[key] for key in keys if key in _MOVES), quits, helps)


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
        below = sum(alert.stop > end for alert in alerts)
        above = sum(alert.start < self.top and alert.stop <= end for alert in alerts)
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
        sent = b""
        while select.select([self.fd], [], [], 0)[0]:
            try:
                data = os.read(self.fd, 4096)
            except OSError:
                data = b""
            sent += data or _QUITS[0]
            if len(data) < 4096:
                break
        return asked(sent)
