"""tunectl monitor --watch: the page of `--once`, drawn again after each look."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.live import Live
from rich.text import Text

from tunectl.cli.command import now
from tunectl.cli.exits import OK
from tunectl.cli.options import Options
from tunectl.model import Document
from tunectl.monitor.assembly import Watcher
from tunectl.monitor.document import monitor_body
from tunectl.monitor.listener import Listener
from tunectl.monitor.model import Board, Look
from tunectl.monitor.once import verdict_of
from tunectl.monitor.wake import STOPPING, Waker, now_s
from tunectl.report import render
from tunectl.report.escape import encodable
from tunectl.tuning.inspection import Inspection


def run_watch(
    options: Options, session: Inspection, interval_s: float | None, duration_s: float | None, notes: Sequence[str]
) -> int:
    """Until ^C, or the time is over."""
    waker, watcher = Waker(), Watcher(session, {})
    waker.catch((*STOPPING, signal.SIGWINCH))
    listener = Listener(waker.poke)
    listener.tells(watcher.eyes.tell)
    unheard = listener.start() if session.root.live else ""
    said = [*notes, *([f"device events are not heard: {unheard}"] if unheard else [])]
    interval = interval_s or session.wishes.monitor.interval_s
    console = Console(markup=False, highlight=False, emoji=False)
    end = now_s() + duration_s if duration_s else float("inf")
    try:
        # No thread of rich's own: the page is drawn when there is something new, and that is work on a host we watch.
        with Live(console=console, screen=True, auto_refresh=False, vertical_overflow="crop") as live:
            _loop(options, session, watcher, waker, live, interval, end, said)
    finally:
        listener.stop()
        waker.close()
    return OK


def _loop(
    options: Options,
    session: Inspection,
    watcher: Watcher,
    waker: Waker,
    live: Live,
    interval: float,
    end: float,
    notes: Sequence[str],
) -> None:
    before: Look | None = None
    board, _ = watcher.cycle.step()
    due = now_s() + min(interval, 1.0)  # the first rises and rates, soon
    while True:
        live.update(_page(options, session, board, before, notes, live.console), refresh=True)
        if now_s() >= end:
            return
        signals, _ = waker.sleep(max(0.0, min(due, end) - now_s()))
        if signals & set(STOPPING):
            return
        if now_s() >= due:
            before = board.look
            board, _ = watcher.cycle.step()
            due = max(due + interval, now_s())


def _page(
    options: Options, session: Inspection, board: Board, before: Look | None, notes: Sequence[str], console: Console
) -> Text:
    body = monitor_body(board, before, verdict_of(board), notes)
    document = Document("monitor", session.identity, now(), body, (), options.verbose)
    colour = "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    text = render(document, "text", width=console.width, colour=colour)
    return Text.from_ansi(encodable(text, sys.stdout.encoding or "utf-8"), no_wrap=True, overflow="crop")
