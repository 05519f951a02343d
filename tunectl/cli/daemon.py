"""tunectl monitor, as systemd or a terminal runs it: the process around the loop."""

from __future__ import annotations

import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence

import click

from tunectl.cli.command import stay_off
from tunectl.cli.exits import DRIFTED, OK
from tunectl.cli.options import Options
from tunectl.errors import TunectlError
from tunectl.model import HostId
from tunectl.monitor.assembly import Places, opener_of
from tunectl.monitor.daemon import Daemon, Opener
from tunectl.monitor.listener import Listener
from tunectl.monitor.model import Alert
from tunectl.monitor.notify import open_notify
from tunectl.monitor.state import OccupiedError, State
from tunectl.tuning.inspection import Inspection


def run_daemon(
    options: Options,
    session: Inspection,
    read_session: Callable[[], Inspection],
    interval_s: float | None,
    duration_s: float | None,
    repair: bool,
    notes: Sequence[str],
) -> int:
    """Until a signal, or the time is over. With a duration, the exit code says whether anything fired."""
    places = Places(_directory("STATE_DIRECTORY") or options.state_path, _runtime(), interval_s, repair)
    state = State(os.path.join(places.state_dir, "monitor"))
    listener = Listener(lambda: daemon.waker.poke())
    first = iter([session])

    def prepare() -> Opener:
        """The first time the session there is; then the host file anew."""
        fresh = next(first, None) or read_session()
        printer = _printer(options, fresh.identity)
        opener = opener_of(fresh, places, lambda watcher: listener.tells(watcher.eyes.tell), printer)
        _stay_off_all(fresh)
        if fresh is session:
            _begin(options, places, fresh, listener, notes)
        return opener

    daemon = Daemon(prepare, save=state.save, notify=open_notify(os.environ), say=say)
    daemon.waker.catch()
    try:
        daemon.run(_hold(state), duration_s)
    finally:
        listener.stop()
        state.release()
    return DRIFTED if duration_s is not None and daemon.fired else OK


def settle() -> None:
    """From a command that soon ends to a process that stays: collect garbage, and no thread dies with a traceback."""
    gc.collect()
    gc.freeze()
    gc.enable()
    threading.excepthook = _say_thread
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="tunectl: %(message)s")


def say(text: str) -> None:
    """One line of stderr."""
    from tunectl.report.escape import printable

    click.echo(f"tunectl: {printable(' '.join(text.split()))}", err=True)


def _begin(options: Options, places: Places, session: Inspection, listener: Listener, notes: Sequence[str]) -> None:
    """What this run cannot do is said once, after the host file was found to be good."""
    said = list(notes)
    if session.root.live and (why := listener.start()):
        said.append(f"device events are not heard: {why}")
    if (places.repair or session.wishes.monitor.repair) and not places.runtime_dir:
        said.append("repair: nobody gave this process a RuntimeDirectory, so no repair can be asked for")
    for note in () if options.quiet else said:
        say(note)


def _say_thread(args: threading.ExceptHookArgs) -> None:
    name = args.thread.name if args.thread else "a thread"
    say(f"{name} ended: {args.exc_type.__name__}: {args.exc_value}")


def _directory(name: str) -> str:
    """One that systemd made for the service; its user may write nowhere else."""
    return os.environ.get(name, "").partition(":")[0]


def _runtime() -> str:
    return _directory("RUNTIME_DIRECTORY")


def _hold(state: State) -> dict[str, object]:
    """The state directory is ours; where it cannot be, that is said, and nothing is remembered."""
    try:
        state.hold()
        return state.load()
    except OccupiedError:
        raise
    except TunectlError as error:
        say(str(error))
        return {}


def _stay_off_all(session: Inspection) -> None:
    """After a reload the isolated CPUs may be others: every thread there is moves."""
    if session.root.live:
        for name in os.listdir("/proc/self/task"):
            scope = session.wishes.scope
            stay_off(session.root, scope.isolated, int(name), scope.housekeeping)


def _printer(options: Options, host: HostId) -> Callable[[Sequence[Alert]], None] | None:
    """Each edge is a line of stdout, but where that is systemd's journal, which is told in its own way."""
    if os.environ.get("JOURNAL_STREAM"):
        return None
    from tunectl.cli.edges import edge_line

    def show(edges: Sequence[Alert]) -> None:
        for alert in edges:
            click.echo(edge_line(alert, host, options.fmt))
        sys.stdout.flush()

    return show
