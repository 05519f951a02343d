"""tunectl monitor, as systemd or a terminal runs it: the process around the loop."""

import gc
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial

import click

from tunectl.address import DeliveryError
from tunectl.cli.command import stay_off, typed
from tunectl.cli.helped import DRIFTED, OK
from tunectl.cli.options import Options
from tunectl.model import Document, HostId
from tunectl.monitor.assembly import Places, opener_of
from tunectl.monitor.daemon import Daemon, Opener
from tunectl.monitor.document import monitor_body
from tunectl.monitor.model import Alert, Snapshot, Status
from tunectl.monitor.notify import open_notify
from tunectl.monitor.receivers import Receiver
from tunectl.monitor.repair import Repair
from tunectl.monitor.store import Store
from tunectl.monitor.wakeup import RELOADING, STOPPING, DeviceEvents
from tunectl.monitor.watched_host import Lasting
from tunectl.monitor.watcher import verdict_of
from tunectl.shapes import now_utc
from tunectl.tuning.inspection import Inspection
from tunectl.tuning.repairing import taken_back


def run_daemon(
    options: Options,
    inspection: Inspection,
    read_inspection: Callable[[], Inspection],
    interval_s: float | None,
    duration_s: float | None,
    repair: bool,
    reloads: bool,
    notes: Sequence[str],
) -> int:
    """Until a signal, or the time is over. With a duration, the exit code says whether anything fired."""
    store = Store(os.path.join(_directory("STATE_DIRECTORY") or options.state_path, "monitor"))
    directory = _directory("RUNTIME_DIRECTORY")
    lasting = Lasting()
    vain = partial(taken_back, options.state_path, inspection.root, inspection.identity.boot_id)
    places = Places(store, lasting, Repair(directory, taken_back=vain) if directory else None, interval_s, repair)
    events = DeviceEvents(lambda: daemon.wakeup.poke())
    first = iter([inspection])

    def prepare() -> Opener:
        """The first time the inspection that is open already; then the host file is read again."""
        fresh = next(first, None) or read_inspection()
        printer = _printer(options, fresh.identity)
        here = places._replace(typed=typed(options).fix)  # a host file may be there by now
        opener = opener_of(fresh, here, lambda watcher: events.go_to(watcher.watched_host.announce), printer)
        _stay_off_all(fresh)
        if fresh is inspection:
            _begin(options, places, fresh, events, notes)
        return opener

    systemd = open_notify(os.environ)
    reloads = reloads or systemd.is_service
    daemon = Daemon(prepare, systemd=systemd, reloads=reloads, say=say)
    # Below nohup it is ignored, and who started it so wants the monitor to outlive the terminal.
    heeds_hup = reloads or signal.getsignal(RELOADING) is not signal.SIG_IGN
    daemon.wakeup.catch((*STOPPING, RELOADING) if heeds_hup else STOPPING)
    store.open()
    try:
        daemon.run(store.state, duration_s)
    finally:
        events.stop()
        lasting.close()
        store.close()
    if duration_s is None:
        return OK
    if options.fmt == "json" and daemon.status:
        _print_last(options, inspection.identity, daemon.first, daemon.status, notes)
    return DRIFTED if daemon.fired else OK


def _print_last(options: Options, host: HostId, first: Snapshot | None, status: Status, notes: Sequence[str]) -> None:
    """What the last look saw, as one more line: only this process has the application's latencies and the sentinel."""
    from tunectl.report import render

    body = typed(options).body(monitor_body(status, first, verdict_of(status), notes))
    text = render(Document("monitor", host, now_utc(), body, body["findings"], options.verbose), "json")
    click.echo(json.dumps(json.loads(text), separators=(",", ":")))


def settle() -> None:
    """From a command that soon ends to a process that stays: collect garbage, and no thread dies with a traceback."""
    gc.collect()
    gc.freeze()
    gc.enable()
    threading.excepthook = _say_thread
    logging.basicConfig(handlers=[_Said()], level=logging.INFO, format="%(message)s")


def say(text: str) -> None:
    """One line of stderr, with nothing in it that a terminal would obey: every line of the monitor leaves here."""
    from tunectl.report.escape import printable

    click.echo(f"tunectl: {printable(' '.join(text.split()))}", err=True)


class _Said(logging.Handler):
    """What is logged is said."""

    def emit(self, record: logging.LogRecord) -> None:
        """One record, one line."""
        try:
            say(self.format(record))
        except Exception:  # a closed stderr must end nothing
            self.handleError(record)


def _begin(
    options: Options, places: Places, inspection: Inspection, events: DeviceEvents, notes: Sequence[str]
) -> None:
    """What this run cannot do is said once, after the host file was found to be good."""
    said = list(notes)
    if inspection.root.live and (why := events.start()):
        said.append(f"device events are not heard: {why}")
    if (places.repair or inspection.config.monitor.repair) and not places.repairs:
        said.append("repair: nobody gave this process a RuntimeDirectory, so no repair can be asked for")
    for note in () if options.quiet else said:
        say(note)


def _say_thread(args: threading.ExceptHookArgs) -> None:
    name = args.thread.name if args.thread else "a thread"
    say(f"{name} ended: {args.exc_type.__name__}: {args.exc_value}")


def _directory(name: str) -> str:
    """One that systemd made for the service; its user may write nowhere else."""
    return os.environ.get(name, "").partition(":")[0]


def _stay_off_all(inspection: Inspection) -> None:
    """After a reload the isolated CPUs may be others: every thread there is moves."""
    if inspection.root.live:
        for name in os.listdir("/proc/self/task"):
            scope = inspection.config.scope
            stay_off(inspection.root, scope.isolated, int(name), scope.housekeeping)


def _printer(options: Options, host: HostId) -> Receiver | None:
    """Each transition is a line of stdout, except where that is systemd's journal, which is a receiver of its own."""
    if os.environ.get("JOURNAL_STREAM"):
        return None

    def deliver(alerts: Sequence[Alert]) -> None:
        try:
            for alert in alerts:
                click.echo(transition_line(alert, host, options.fmt))
            sys.stdout.flush()
        except OSError as error:
            raise DeliveryError(f"{error.strerror}", retry=False) from error

    return Receiver("stdout", deliver, is_counted=False)


def transition_line(alert: Alert, host: HostId, fmt: str) -> str:
    """Text, or a tunectl.alert/1 document on one line: for a terminal, or for who reads the program through a pipe."""
    from tunectl.monitor.receivers import message

    if fmt == "json":
        return json.dumps(json.loads(message.document(alert, host)), separators=(",", ":"))
    return f"{alert.at} {alert.severity.value} {message.line(alert)}"
