"""tunectl monitor --watch: the page of `--once`, drawn again after each snapshot."""

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
from tunectl.monitor.model import Snapshot, Status
from tunectl.monitor.once import verdict_of
from tunectl.monitor.wakeup import STOPPING, DeviceEvents, Wakeup
from tunectl.report import render
from tunectl.report.escape import encodable
from tunectl.tuning.inspection import Inspection


def run_watch(
    options: Options, inspection: Inspection, interval_s: float | None, duration_s: float | None, notes: Sequence[str]
) -> int:
    """Runs until Ctrl-C, or until the duration is over."""
    wakeup, watcher = Wakeup(), Watcher(inspection, {})
    wakeup.catch((*STOPPING, signal.SIGWINCH))
    events = DeviceEvents(wakeup.poke)
    events.go_to(watcher.watched_host.announce)
    unheard = events.start() if inspection.root.live else ""
    said = [*notes, *([f"device events are not heard: {unheard}"] if unheard else [])]
    interval = interval_s or inspection.config.monitor.interval_s
    console = Console(markup=False, highlight=False, emoji=False)
    end = wakeup.now_s() + duration_s if duration_s else float("inf")
    try:
        # Without rich's own thread: the page is drawn only after a look, because drawing is work on the host we watch.
        with Live(console=console, screen=True, auto_refresh=False, vertical_overflow="crop") as live:
            _loop(options, inspection, watcher, wakeup, live, interval, end, said)
    finally:
        events.stop()
        wakeup.close()
    return OK


def _loop(
    options: Options,
    inspection: Inspection,
    watcher: Watcher,
    wakeup: Wakeup,
    live: Live,
    interval: float,
    end: float,
    notes: Sequence[str],
) -> None:
    before: Snapshot | None = None
    status, _ = watcher.cycle.step()
    due = wakeup.now_s() + min(interval, 1.0)  # the second look comes soon: it has the first rates
    while True:
        live.update(_page(options, inspection, status, before, notes, live.console), refresh=True)
        if wakeup.now_s() >= end:
            return
        signals, _ = wakeup.sleep(max(0.0, min(due, end) - wakeup.now_s()))
        if signals & set(STOPPING):
            return
        if wakeup.now_s() >= due:
            before = status.snapshot
            status, _ = watcher.cycle.step()
            due = max(due + interval, wakeup.now_s())


def _page(
    options: Options,
    inspection: Inspection,
    status: Status,
    before: Snapshot | None,
    notes: Sequence[str],
    console: Console,
) -> Text:
    body = monitor_body(status, before, verdict_of(status), notes)
    document = Document("monitor", inspection.identity, now(), body, (), options.verbose)
    colour = "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    text = render(document, "text", width=console.width, colour=colour)
    return Text.from_ansi(encodable(text, sys.stdout.encoding or "utf-8"), no_wrap=True, overflow="crop")
