"""tunectl monitor"""

from __future__ import annotations

import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence

import click

from tunectl.cli.command import emit, open_root, stay_off, today, tunectl_command
from tunectl.cli.exits import DRIFTED, OK, exit_code
from tunectl.cli.options import Options
from tunectl.errors import TunectlError, UsageError
from tunectl.host.identity import read_identity
from tunectl.host.sysroot import Sysroot
from tunectl.host.topology import read_scope_facts
from tunectl.model import HostId
from tunectl.monitor.assembly import Places, Watcher, kernel_wishes, opener_of
from tunectl.monitor.daemon import Daemon, Opener
from tunectl.monitor.document import monitor_body
from tunectl.monitor.listener import Listener
from tunectl.monitor.model import Alert
from tunectl.monitor.notify import open_notify
from tunectl.monitor.once import look_twice, verdict_of
from tunectl.monitor.state import OccupiedError, State
from tunectl.tuning.journal import peek
from tunectl.tuning.session import Session, open_session

_FORMATS = ("text", "json", "nagios")
_SOON_S = 1.0  # between the two looks of --once


@tunectl_command(formats=_FORMATS)
@click.option("--once", is_flag=True, help="Two looks, one verdict, and the end: a monitoring check.")
@click.option("--watch", is_flag=True, help="A live view in the terminal; tells nobody.")
@click.option("--repair", is_flag=True, help="Ask the repair service for apply when a knob drifts.")
@click.option("--duration", "duration_s", type=float, metavar="S", help="End after so many seconds.")
@click.option("--interval", "interval_s", type=float, metavar="S", help="Between two looks [the host file's, or 1].")
def command(
    options: Options, once: bool, watch: bool, repair: bool, duration_s: float | None, interval_s: float | None
) -> int:
    """Watch this host: frequency, throttling, temperature, interrupts, drift. Alerts go where [monitor] says."""
    _check(options, once, watch, repair, duration_s, interval_s)
    root = open_root(options)
    session = _session(options, root)
    stay_off(root, session.wishes.scope.isolated)
    if once:
        return _once(options, session, interval_s or _SOON_S)
    _settle()
    if watch:
        from tunectl.cli.watch import run_watch  # rich.live is slow to import

        return run_watch(options, session, interval_s, duration_s, _blind_spots(options, session))
    return _daemon(options, root, session, Places(_state_dir(options), _runtime_dir(), interval_s, repair), duration_s)


def _check(
    options: Options, once: bool, watch: bool, repair: bool, duration_s: float | None, interval_s: float | None
) -> None:
    if once and (watch or repair or duration_s is not None):
        raise UsageError("--once looks twice and ends: it goes with neither --watch, --repair nor --duration")
    if watch and repair:
        raise UsageError("--watch only looks: it goes without --repair")
    if duration_s is not None and not 0 < duration_s < 1e10:
        raise UsageError("--duration: seconds, above 0")
    if interval_s is not None and not 0.05 <= interval_s <= 3600:
        raise UsageError("--interval: seconds, from 0.05 to 3600")
    if options.fmt == "nagios" and not once:
        raise UsageError("--format nagios goes with --once")
    if watch and not sys.stdout.isatty():
        raise UsageError("--watch needs a terminal", "--once prints the same page once")


def _session(options: Options, root: Sysroot) -> Session:
    """The host file's; without one, the CPUs that the kernel isolates and no wishes. A file that was named must be."""
    if options.host or os.path.exists(options.host_path):
        return open_session(root, options.host_path, options.state_path, options.invocation, today())
    wishes = kernel_wishes(read_scope_facts(root))
    return Session(root, read_identity(root), wishes, peek(options.state_path), options.invocation, today())


def _state_dir(options: Options) -> str:
    """systemd's StateDirectory= where it made one; its user may write nowhere else."""
    return os.environ.get("STATE_DIRECTORY", "").partition(":")[0] or options.state_path


def _runtime_dir() -> str:
    return os.environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]


def _blind_spots(options: Options, session: Session) -> list[str]:
    """What this run cannot see at all, whatever the sources say."""
    notes = []
    if not session.wishes.settings:
        notes.append("no host file: no knob is compared with a wish, and the isolated CPUs are the kernel's")
    if not session.root.live:
        notes.append("a recorded host: its files are read again in each look, and nothing announces a device")
    return [*notes, *session.notes()]


def _once(options: Options, session: Session, seconds: float) -> int:
    watcher = Watcher(session, {})
    board, first = look_twice(watcher, seconds)
    judged = verdict_of(board)
    body = monitor_body(board._replace(firing=(), recent=()), first, judged, _blind_spots(options, session))
    emit(options, "monitor", session.identity, body, body["findings"])
    return exit_code(judged[0], options.fmt)


def _settle() -> None:
    """From a command that soon ends to a process that stays: collect garbage, and no thread dies with a traceback."""
    gc.collect()
    gc.freeze()
    gc.enable()
    threading.excepthook = _say_thread
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="tunectl: %(message)s")


def _say_thread(args: threading.ExceptHookArgs) -> None:
    name = args.thread.name if args.thread else "a thread"
    _say(f"{name} ended: {args.exc_type.__name__}: {args.exc_value}")


def _say(text: str) -> None:
    from tunectl.report.escape import printable

    click.echo(f"tunectl: {printable(' '.join(text.split()))}", err=True)


def _daemon(options: Options, root: Sysroot, session: Session, places: Places, duration_s: float | None) -> int:
    state = State(os.path.join(places.state_dir, "monitor"))
    remembered = _hold(state)
    sessions = iter([session])

    def prepare() -> Opener:
        """The first time the session there is; then the host file anew."""
        fresh = next(sessions, None) or _session(options, root)
        _stay_off_all(root, fresh)
        if (places.repair or fresh.wishes.monitor.repair) and not places.runtime_dir:
            _say("--repair: nobody gave this process a RuntimeDirectory, so no repair can be asked for")
        return opener_of(
            fresh, places, lambda watcher: listener.tells(watcher.eyes.tell), _printer(options, fresh.identity)
        )

    daemon = Daemon(prepare, save=state.save, notify=open_notify(os.environ), say=_say)
    listener = Listener(daemon.waker.poke)
    if not options.quiet:
        for note in _blind_spots(options, session):
            _say(note)
    daemon.waker.catch()
    if root.live and (why := listener.start()):
        _say(f"device events are not heard: {why}")
    try:
        daemon.run(remembered, duration_s)
    finally:
        listener.stop()
        state.release()
    return DRIFTED if duration_s is not None and daemon.fired else OK


def _hold(state: State) -> dict[str, object]:
    """The state directory is ours; where it cannot be, that is said, and nothing is remembered."""
    try:
        state.hold()
        return state.load()
    except OccupiedError:
        raise
    except TunectlError as error:
        _say(str(error))
        return {}


def _stay_off_all(root: Sysroot, session: Session) -> None:
    """After a reload the isolated CPUs may be others: every thread there is moves."""
    if not root.live:
        return
    for name in os.listdir("/proc/self/task"):
        stay_off(root, session.wishes.scope.isolated, int(name), session.wishes.scope.housekeeping)


def _printer(options: Options, host: HostId) -> Callable[[Sequence[Alert]], None] | None:
    """Each edge is a line of stdout, but where that is systemd's journal, which is told in its own way."""
    if os.environ.get("JOURNAL_STREAM") or options.quiet:
        return None
    from tunectl.cli.edges import edge_line

    def show(edges: Sequence[Alert]) -> None:
        for alert in edges:
            click.echo(edge_line(alert, host, options.fmt))
        sys.stdout.flush()

    return show
