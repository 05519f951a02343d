"""tunectl probe wake"""

from __future__ import annotations

import os
import signal

import click

from tunectl.cli.command import emit, open_root, stay_off, tunectl_command
from tunectl.cli.exits import OK
from tunectl.cli.options import Options
from tunectl.cli.progress import progress
from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.errors import UsageError
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.identity import read_identity
from tunectl.host.sysroot import Sysroot
from tunectl.probe.result import write_result
from tunectl.probe.wake import WakeRequest, run_wake, serve_wake
from tunectl.tuning.inspection import read_wishes

_MESSAGES = 10_000_000


@tunectl_command(name="wake")
@click.option("--cpus", metavar="S,R", help="The sender's CPU and the receiver's [two isolated ones, on two cores].")
@click.option("--mechanisms", metavar="LIST", help="Of channel, eventfd, pipe, unix, tcp, udp [all].")
@click.option(
    "--waiting", metavar="LIST", help="sleeping, spinning, busy-poll; or single ways: block, poll, ... [all]."
)
@click.option("--idle-ms", metavar="LIST", help="From message to message, in ms [0,1,10,100].")
@click.option("--messages", type=click.IntRange(1, _MESSAGES), metavar="N", help="In each cell [99].")
@click.option("--busy-poll-us", type=click.IntRange(1, 1_000_000), metavar="N", help="Given to SO_BUSY_POLL [50].")
@click.option("--fifo", type=click.IntRange(1, 99), metavar="PRIO", help="Both threads as SCHED_FIFO at this priority.")
@click.option("--listen", metavar="A:P", help="Be the other host of a --connect, until Ctrl-C.")
@click.option("--connect", metavar="A:P", help="Measure round trips to that host, over tcp and udp.")
@click.option("--output", type=click.Path(dir_okay=False), metavar="FILE", help="Write the JSON result there, too.")
def wake(
    options: Options,
    cpus: str | None,
    mechanisms: str | None,
    waiting: str | None,
    idle_ms: str | None,
    messages: int | None,
    busy_poll_us: int | None,
    fifo: int | None,
    listen: str | None,
    connect: str | None,
    output: str | None,
) -> int:
    """Spinning against sleeping: how long a message takes to a waiting thread, by each mechanism and way of waiting."""
    root = open_root(options)
    if not root.live:
        raise UsageError("the probe measures this machine: --root makes no sense here")
    if output and not os.path.isdir(os.path.dirname(os.path.abspath(output))):
        raise UsageError(f"--output {output}: no such directory")
    isolated = _isolated(options, root)
    among = format_cpulist(isolated) if not cpus and len(isolated) > 1 else None
    stay_off(root, isolated)
    request = WakeRequest(cpus, among, mechanisms, waiting, idle_ms, messages, fifo, busy_poll_us, listen, connect)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the run as Ctrl-C does: with the result so far
    if listen:
        serve_wake(request, lambda line: click.echo(line, err=True))
        return OK
    with progress(options) as tell:
        result = run_wake(request, tell)
    if output:
        write_result(output, result)
    emit(options, "probe.wake", read_identity(root), result)
    return OK


def _isolated(options: Options, root: Sysroot) -> CpuSet:
    """The CPUs the host file isolates, else those the kernel does."""
    facts = read_scope_facts(root)
    wishes = read_wishes(options.host_path, facts) if options.host or os.path.exists(options.host_path) else None
    return wishes.scope.isolated if wishes else facts.quiet
