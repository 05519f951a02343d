"""tunectl probe: jitter, wake and selftest"""

from __future__ import annotations

import os
import signal
from typing import Any

import click

from tunectl.cli.command import check_output, emit, open_root, progress, stay_off, tunectl_command
from tunectl.cli.exits import DRIFTED, FAILED, OK
from tunectl.cli.options import Options, intrude_option
from tunectl.cpulist import CpuSet, format_cpulist, parse_cpulist
from tunectl.errors import TunectlError, UsageError
from tunectl.host.cpusets import CpuFacts, read_scope_facts
from tunectl.host.identity import read_identity
from tunectl.host.occupants import Occupant, Place, look, refusal, said
from tunectl.host.sysroot import Sysroot
from tunectl.hostfile.config import HostConfig
from tunectl.probe.budget import judge
from tunectl.probe.result import nothing_measured, write_result
from tunectl.probe.runner import run_jitter, run_selftest
from tunectl.probe.wake import WakeRequest, run_wake, serve_wake
from tunectl.tuning.inspection import read_config

_MOST_MESSAGES = 10_000_000
_STOP = "stop them, or say --intrude"


@click.group(name="probe")
def command() -> None:
    """What a spinning thread would feel on a CPU, and what waiting for a message costs."""


@tunectl_command(name="jitter")
@click.option("--cpus", metavar="LIST", help="CPUs to probe [the host file's, else those the kernel isolates].")
@click.option("--duration", "duration_s", default=5.0, show_default=True, metavar="S", help="How long, in seconds.")
@click.option("--threshold-ns", type=click.IntRange(1), metavar="N", help="The shortest gap that counts.")
@click.option("--fifo", type=click.IntRange(1, 99), metavar="PRIO", help="Spin as SCHED_FIFO at this priority.")
@click.option("--events", type=click.IntRange(0), metavar="N", help="How many gaps to list, for each CPU.")
@click.option("--attribute", is_flag=True, help="Trace the kernel, to name the cause of each gap (needs root).")
@intrude_option
@click.option("--output", type=click.Path(dir_okay=False), metavar="FILE", help="Write the JSON result there, too.")
def jitter(
    options: Options,
    cpus: str | None,
    duration_s: float,
    threshold_ns: int | None,
    fifo: int | None,
    events: int | None,
    attribute: bool,
    intrude: bool,
    output: str | None,
) -> int:
    """Gaps in a loop that only reads the time-stamp counter: how many, how long, when, and what they add up to."""
    root = _this_machine(options)
    if not 0 < duration_s <= 86400:
        raise UsageError(f"--duration {duration_s:g}: seconds, above 0 and at most a day")
    if output:
        check_output(output)
    facts = read_scope_facts(root)
    config = _config(options, facts)
    chosen = _choice(config, facts, cpus)
    limits = config.budget if config else {}
    isolated = config.scope.isolated if config else facts.quiet
    stay_off(root, chosen | isolated)
    taken = _taken(root, facts, chosen, config, intrude)
    if chosen <= taken.keys():
        raise TunectlError(refusal(taken), _STOP)
    with progress(options) as tell:
        result = run_jitter(
            chosen - taken.keys(), duration_s, threshold_ns, fifo, events, attribute, intrude, on_progress=tell
        )
    result["not_measured"] = [*result.get("not_measured", ()), *_left_alone(taken)]
    if nothing := nothing_measured(result):
        raise TunectlError(nothing, _STOP)
    result["budget"] = judge(result, limits)
    if output:
        write_result(output, result)
    emit(options, "probe.jitter", read_identity(root), result)
    verdict = result["budget"]["verdict"]
    return {"broken": DRIFTED, "within": OK}.get(verdict, FAILED if limits else OK)


@tunectl_command(name="wake")
@click.option("--cpus", metavar="S,R", help="The sender's CPU and the receiver's [two isolated ones, on two cores].")
@click.option("--mechanisms", metavar="LIST", help="Of channel, eventfd, pipe, unix, tcp, udp [all].")
@click.option(
    "--waiting", metavar="LIST", help="sleeping, spinning, busy-poll; or single ways: block, poll, ... [all]."
)
@click.option("--idle-ms", metavar="LIST", help="From message to message, in ms [0,1,10,100].")
@click.option("--messages", type=click.IntRange(1, _MOST_MESSAGES), metavar="N", help="In each case [99].")
@click.option("--busy-poll-us", type=click.IntRange(1, 1_000_000), metavar="N", help="Given to SO_BUSY_POLL [50].")
@click.option("--fifo", type=click.IntRange(1, 99), metavar="PRIO", help="Both threads as SCHED_FIFO at this priority.")
@intrude_option
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
    intrude: bool,
    listen: str | None,
    connect: str | None,
    output: str | None,
) -> int:
    """Spinning against sleeping: how long a message takes to a waiting thread, by each mechanism and wait method."""
    root = _this_machine(options)
    if output:
        check_output(output)
    facts = read_scope_facts(root)
    config = _config(options, facts)
    isolated = config.scope.isolated if config else facts.quiet
    taken = _taken(root, facts, isolated, config, intrude or bool(cpus))
    free = isolated - taken.keys()
    among = format_cpulist(free if len(free) > 1 else isolated) if not cpus and len(isolated) > 1 else None
    stay_off(root, isolated)
    request = WakeRequest(
        cpus, among, mechanisms, waiting, idle_ms, messages, fifo, busy_poll_us, intrude, listen, connect
    )
    _refuse_taken(root, facts, request.named, config, intrude)
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


@tunectl_command(name="selftest")
@click.option("--cpu", type=click.IntRange(0), metavar="CPU", help="The CPU to test [the last isolated one].")
@intrude_option
def selftest(options: Options, cpu: int | None, intrude: bool) -> int:
    """Interrupts a CPU by known lengths at known times: does the probe find them all? Some twelve seconds."""
    root = _this_machine(options)
    facts = read_scope_facts(root)
    cpus = frozenset({cpu}) if cpu is not None else frozenset({max(facts.quiet)}) if facts.quiet else frozenset()
    _refuse_taken(root, facts, cpus, _config(options, facts), intrude)
    with progress(options) as tell:
        tell("injecting known interruptions: some twelve seconds")
        result = run_selftest(cpu)
    emit(options, "probe.selftest", read_identity(root), result)
    return OK if result["passed"] else FAILED


for _one in (jitter, wake, selftest):
    command.add_command(_one)


def _this_machine(options: Options) -> Sysroot:
    root = open_root(options)
    if not root.live:
        raise UsageError("the probe measures this machine: --root makes no sense here")
    return root


def _choice(config: HostConfig | None, facts: CpuFacts, cpus: str | None) -> CpuSet:
    """Which CPUs."""
    if cpus is not None:
        return parse_cpulist(cpus, nr_cpus=facts.nr_cpus)
    chosen = config.scope.isolated if config else facts.kernel_isolated | facts.partitioned or facts.nohz_full
    if not chosen:
        raise UsageError("no CPU is isolated here, and there is no host file to name some", "say --cpus LIST")
    return chosen


def _taken(
    root: Sysroot, facts: CpuFacts, cpus: CpuSet, config: HostConfig | None, intrude: bool
) -> dict[int, list[Occupant]]:
    """The CPUs that somebody else's threads want, and that are left to them."""
    if intrude:
        return {}
    isolated = config.scope.isolated if config else facts.quiet
    return look(root, Place.of(facts, cpus, isolated), config.threads if config else ())


def _left_alone(taken: dict[int, list[Occupant]]) -> list[dict[str, Any]]:
    return [{"cpu": cpu, "reason": why} for cpu, why in said(taken).items()]


def _refuse_taken(root: Sysroot, facts: CpuFacts, cpus: CpuSet, config: HostConfig | None, intrude: bool) -> None:
    """TunectlError where somebody else's threads want one of the CPUs: a measurement that needs all of them."""
    if taken := _taken(root, facts, cpus, config, intrude):
        raise TunectlError(refusal(taken), _STOP)


def _config(options: Options, facts: CpuFacts) -> HostConfig | None:
    """What the host file asks for; None without a host file. A file that was named must exist."""
    if not options.host and not os.path.exists(options.host_path):
        return None
    return read_config(options.host_path, facts, open_root(options))
