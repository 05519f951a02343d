"""tunectl monitor"""

import os
import sys
from collections.abc import Callable

import click

from tunectl.cli.command import emit, hinted, is_terminal, open_root, stay_off, today, tunectl_command
from tunectl.cli.helped import DRIFTED, OK, Example, exit_code
from tunectl.cli.options import Options
from tunectl.cpulist import CpuSet, format_cpulist, parse_cpulist
from tunectl.errors import UsageError
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.identity import read_identity
from tunectl.host.sysroot import Sysroot, is_missing
from tunectl.hostfile.config import kernel_config
from tunectl.monitor.document import monitor_body
from tunectl.monitor.watcher import Watcher, look_twice, verdict_of
from tunectl.tuning.inspection import Inspection, open_inspection
from tunectl.tuning.journal import peek

_FORMATS = ("text", "json", "nagios")
_NO_CURSOR = ("dumb", "unknown")  # terminfo's names of terminals on which no page can be drawn again
_SOON_S = 1.0  # between the two looks of --once


@tunectl_command(
    formats=_FORMATS,
    exits={
        OK: "ended as asked; with --once: nothing is wrong",
        DRIFTED: "an alert: that would fire (--once), that fired (--duration)",
    },
    examples=(
        Example("A live view in this terminal:", "tunectl monitor --watch"),
        Example("One verdict, for Nagios:", "tunectl monitor --once --format nagios"),
        Example("The daemon, for ten minutes in the foreground:", "sudo tunectl monitor --duration 600"),
    ),
)
@click.option("--once", is_flag=True, help="Two snapshots, one verdict: a monitoring check.")
@click.option("--clock", metavar="LIST", help="With --once: have the probe take 20 ms of these CPUs, for their clock.")
@click.option("--watch", is_flag=True, help="A live view in the terminal; tells nobody.")
@click.option("--repair", is_flag=True, help="Ask the repair service for apply when a knob drifts.")
@click.option(
    "--daemon", is_flag=True, help="SIGHUP reloads the host file, as below systemd; else it ends the monitor."
)
@click.option("--duration", "duration_s", type=float, metavar="S", help="End after so many seconds.")
@click.option(
    "--interval", "interval_s", type=float, metavar="S", help="Between two snapshots [the host file's, or 1]."
)
def command(
    options: Options,
    once: bool,
    clock: str | None,
    watch: bool,
    repair: bool,
    daemon: bool,
    duration_s: float | None,
    interval_s: float | None,
) -> int:
    """Watch this host: frequency, throttling, temperature, interrupts, drift. Alerts go where [monitor] says."""
    _check(options, once, watch, repair or daemon, duration_s, interval_s)
    root = open_root(options)
    read = _reader(options, root)
    inspection = read()
    stay_off(root, inspection.config.scope.isolated)
    notes = _blind_spots(inspection)
    if (once or watch) and inspection.config.monitor.has_residents:
        notes.append("[monitor.sentinel] and the application's latencies are the daemon's alone, and not seen here")
    if once:
        return _once(options, inspection, interval_s or _SOON_S, notes, _clocks(options, inspection, clock))
    if clock is not None:
        raise UsageError("--clock goes with --once; the daemon has [monitor.sentinel]")
    from tunectl.cli.daemon import run_daemon, settle

    settle()
    if watch:
        from tunectl.cli.watch import run_watch  # rich.live is slow to import

        return run_watch(options, inspection, interval_s, duration_s, notes)
    return run_daemon(options, inspection, read, interval_s, duration_s, repair, daemon, notes)


def _check(
    options: Options, once: bool, watch: bool, stays: bool, duration_s: float | None, interval_s: float | None
) -> None:
    """`stays`: something was asked that only the daemon does."""
    if once and (watch or stays or duration_s is not None):
        others = "--watch, --repair, --daemon nor --duration"
        raise UsageError(f"--once takes two snapshots and ends: it goes with neither {others}")
    if watch and stays:
        raise UsageError("--watch only looks: it goes with neither --repair nor --daemon")
    if duration_s is not None and not 0 < duration_s < 1e10:
        raise UsageError("--duration: seconds, above 0")
    if interval_s is not None and not 0.05 <= interval_s <= 3600:
        raise UsageError("--interval: seconds, from 0.05 to 3600")
    if options.fmt == "nagios" and not once:
        raise UsageError("--format nagios goes with --once")
    if watch and not is_terminal(sys.stdout):
        raise UsageError("--watch needs a terminal", "--once prints the same page once")
    if watch and (kind := os.environ.get("TERM", "")).lower() in _NO_CURSOR:
        raise UsageError(
            f"--watch needs a terminal whose cursor can be moved, and TERM is {kind}",
            "`tunectl monitor --once` prints the same page once, `tunectl monitor` a line for each alert",
        )


def _reader(options: Options, root: Sysroot) -> Callable[[], Inspection]:
    """What reads the host file, at the start and again for a reload; without one, the CPUs that the kernel isolates.

    A file that was named must be there, and so must one that was read before: who removed it did not ask for a
    monitor that watches no knob and tells nobody.
    """
    must_be = bool(options.host)

    def read() -> Inspection:
        nonlocal must_be
        with hinted(options):
            must_be = must_be or not is_missing(options.host_path)
            if must_be:
                return open_inspection(root, options.host_path, options.state_path, options.invocation, today())
            config = kernel_config(read_scope_facts(root))
            standing = peek(options.state_path)
            return Inspection(root, read_identity(root), config, standing, options.invocation, today())

    return read


def _blind_spots(inspection: Inspection) -> list[str]:
    """What this run cannot watch, whatever the sources say."""
    notes = []
    if not inspection.config.settings:
        notes.append("no host file: no knob is compared with a wish, and the isolated CPUs are the kernel's")
    if not inspection.root.live:
        notes.append("a recorded host: its files are read again in each snapshot, and nothing announces a device")
    return [*notes, *inspection.notes()]


def _clocks(options: Options, inspection: Inspection, text: str | None) -> CpuSet:
    """The CPUs whose clock --clock asks for."""
    if text is None:
        return frozenset()
    if not inspection.root.live:
        raise UsageError("--clock measures this machine: --root makes no sense here")
    scope = inspection.config.scope
    cpus = parse_cpulist(text, nr_cpus=scope.nr_cpus)
    if missing := cpus - scope.online:
        raise UsageError(f"--clock {text}: CPU {format_cpulist(missing)} is not online")
    return cpus


def _once(options: Options, inspection: Inspection, seconds: float, notes: list[str], clocks: CpuSet) -> int:
    watcher = Watcher(inspection, {}, beside=True)
    watcher.watched_host.clocks_asked = clocks
    status, first = look_twice(watcher, seconds)
    judged = verdict_of(status)
    body = monitor_body(status._replace(firing=(), recent=()), first, judged, notes, inspection.unconfirmed())
    emit(options, "monitor", inspection.identity, body)
    return exit_code(judged[0], options.fmt)
