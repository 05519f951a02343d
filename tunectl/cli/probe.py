"""tunectl probe"""

from __future__ import annotations

import os

import click

from tunectl.cli.command import emit, open_root, stay_off, tunectl_command
from tunectl.cli.exits import DRIFTED, FAILED, OK
from tunectl.cli.options import Options
from tunectl.cli.progress import progress
from tunectl.cli.selftest import selftest
from tunectl.cli.wake import wake
from tunectl.cpulist import CpuSet, parse_cpulist
from tunectl.errors import UsageError
from tunectl.host.cpusets import read_scope_facts
from tunectl.host.identity import read_identity
from tunectl.host.sysroot import Sysroot
from tunectl.probe.budget import judge
from tunectl.probe.result import write_result
from tunectl.probe.runner import run_jitter
from tunectl.tuning.inspection import read_wishes


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
@click.option("--output", type=click.Path(dir_okay=False), metavar="FILE", help="Write the JSON result there, too.")
def jitter(
    options: Options,
    cpus: str | None,
    duration_s: float,
    threshold_ns: int | None,
    fifo: int | None,
    events: int | None,
    attribute: bool,
    output: str | None,
) -> int:
    """Gaps in a loop that only reads the time-stamp counter: how many, how long, when, and what they add up to."""
    root = open_root(options)
    if not root.live:
        raise UsageError("the probe measures this machine: --root makes no sense here")
    if not 0 < duration_s <= 86400:
        raise UsageError(f"--duration {duration_s:g}: seconds, above 0 and at most a day")
    if output and not os.path.isdir(os.path.dirname(os.path.abspath(output))):
        raise UsageError(f"--output {output}: no such directory")
    chosen, limits = _choice(options, root, cpus)
    stay_off(root, chosen)
    with progress(options) as tell:
        result = run_jitter(chosen, duration_s, threshold_ns, fifo, events, attribute, on_progress=tell)
    result["budget"] = judge(result, limits)
    if output:
        write_result(output, result)
    emit(options, "probe.jitter", read_identity(root), result)
    verdict = result["budget"]["verdict"]
    return {"broken": DRIFTED, "within": OK}.get(verdict, FAILED if limits else OK)


command.add_command(jitter)
command.add_command(selftest)
command.add_command(wake)


def _choice(options: Options, root: Sysroot, cpus: str | None) -> tuple[CpuSet, dict[str, float]]:
    """Which CPUs, and the budget they are held to."""
    facts = read_scope_facts(root)
    wishes = read_wishes(options.host_path, facts) if options.host or os.path.exists(options.host_path) else None
    limits = wishes.budget if wishes else {}
    if cpus is not None:
        return parse_cpulist(cpus, nr_cpus=facts.nr_cpus), limits
    chosen = wishes.scope.isolated if wishes else facts.kernel_isolated | facts.partitioned or facts.nohz_full
    if not chosen:
        raise UsageError("no CPU is isolated here, and there is no host file to name some", "say --cpus LIST")
    return chosen, limits
