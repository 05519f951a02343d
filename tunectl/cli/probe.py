"""tunectl probe: jitter, wake, feed, hedge, contention and selftest"""

import os
from functools import partial

import click

from tunectl.cli.command import check_output, emit, progress, stay_off, tunectl_command
from tunectl.cli.experiments import contention, feed, hedge, wake
from tunectl.cli.helped import DRIFTED, FAILED, OK, Example, Family
from tunectl.cli.options import Options, intrude_option, load_option, result_option
from tunectl.cli.probing import (
    STOP,
    config_of,
    emit_and_write,
    refuse_empty,
    refuse_taken,
    taken_cpus,
    this_machine,
)
from tunectl.cli.values import Number
from tunectl.compare.compared import quiet_and_loaded
from tunectl.cpulist import CpuSet, named_cpus, parse_cpulist
from tunectl.errors import TunectlError, UsageError
from tunectl.host.cpusets import CpuFacts, read_scope_facts
from tunectl.host.ending import ENDING
from tunectl.host.identity import read_identity
from tunectl.host.occupants import refusal, said
from tunectl.host.sysroot import Sysroot
from tunectl.hostfile.config import HostConfig
from tunectl.probe.budget import judge
from tunectl.probe.loaded import Plan, planned, quiet_then_loaded
from tunectl.probe.loaded import refusal as load_refusal
from tunectl.probe.loads import chosen as chosen_loads
from tunectl.probe.runner import run_jitter, run_selftest
from tunectl.probe.runs import several
from tunectl.shapes import Jitter, JitterLoaded, JitterRuns, LeftOut, plain, replaced
from tunectl.tuning.inspection import proposed_config
from tunectl.work import Tell, Work


@click.group(
    name="probe",
    cls=Family,
    examples=(
        Example("How long a spinning thread is interrupted:", "sudo tunectl probe jitter --duration 60"),
        Example("What sleeping costs, compared with spinning:", "sudo tunectl probe wake"),
        Example("Does the probe itself find what it should?", "sudo tunectl probe selftest"),
    ),
)
def command() -> None:
    """What a spinning thread would feel on a CPU, and what waiting for a message costs."""


@tunectl_command(
    name="jitter",
    short_help="Gaps in a loop that only reads the time-stamp counter.",
    exits={
        OK: "within the budget, or there is none",
        FAILED: "a limit could not be judged, or a load did not run, or the command failed",
        DRIFTED: "over the budget; or --until ended the run",
    },
    examples=(
        Example("The isolated CPUs for a minute:", "sudo tunectl probe jitter --duration 60"),
        Example("What interrupts each CPU:", "sudo tunectl probe jitter --attribute"),
        Example("Five runs, to compare with later ones:", "sudo tunectl probe jitter --runs 5 --output before.json"),
    ),
)
@click.option(
    "--cpus",
    metavar="LIST",
    help="CPUs to probe [the host file's, else those the kernel isolates, else those tunectl would propose].",
)
@click.option("--duration", "duration_s", default=5.0, show_default=True, metavar="S", help="How long, in seconds.")
@click.option("--threshold-ns", type=click.IntRange(1), metavar="N", help="The shortest gap that counts.")
@click.option("--fifo", type=click.IntRange(1, 99), metavar="PRIO", help="Spin as SCHED_FIFO at this priority.")
@click.option("--events", type=click.IntRange(0), metavar="N", help="How many gaps to list, for each CPU.")
@click.option(
    "--until",
    "until_ns",
    type=click.IntRange(1),
    metavar="NS",
    help="End at the first gap so long, and tell of it.",
)
@click.option("--attribute", is_flag=True, help="Trace the kernel, to name the cause of each gap (needs root).")
@click.option("--runs", type=click.IntRange(1, 1000), default=1, help="So many runs, kept together for `compare`.")
@click.option(
    "--pause",
    "pause_s",
    type=Number(0, 86400),
    default=10.0,
    show_default=True,
    metavar="S",
    help="Between two runs, in seconds.",
)
@load_option
@intrude_option
@result_option
def jitter(
    options: Options,
    cpus: str | None,
    duration_s: float,
    threshold_ns: int | None,
    fifo: int | None,
    events: int | None,
    until_ns: int | None,
    attribute: bool,
    runs: int,
    pause_s: float,
    load: str | None,
    intrude: bool,
    output: str | None,
) -> int:
    """Gaps in a loop that only reads the time-stamp counter: how many, how long, when, and what they add up to."""
    root = this_machine(options)
    _check_duration(duration_s)
    if output is not None:
        check_output(output)
    loads = chosen_loads(load.split(","), "--load") if load is not None else ()
    facts = read_scope_facts(root)
    config = config_of(options, facts)
    chosen, noted = _choice(root, config, facts, cpus)
    limits = config.budget if config else {}
    isolated = config.scope.isolated if config else facts.quiet
    stay_off(root, chosen | isolated)
    trading = config.threads if config else ()
    refused = partial(load_refusal, root, facts, chosen, isolated, trading)
    plan = _plan(root, facts, loads, chosen, isolated, refused()) if loads else None
    ENDING.keep()

    def measured(tell: Tell) -> Jitter:
        taken = taken_cpus(root, facts, chosen, config, intrude)
        if chosen <= taken.keys():
            raise TunectlError(refusal(taken), STOP)
        free = chosen - taken.keys()
        result = run_jitter(
            free, duration_s, threshold_ns, fifo, events, attribute, intrude, on_progress=tell, until_ns=until_ns
        )
        left = [LeftOut(cpu, why) for cpu, why in said(taken).items()]
        result = replaced(result, warnings=[*noted, *result.warnings], not_measured=[*result.not_measured, *left])
        if nothing := result.nothing_measured:
            raise TunectlError(nothing, _way_out(intrude, fifo))
        return result

    result: Measured
    with progress(options) as tell:
        if plan:
            result = quiet_then_loaded(plan, runs, pause_s, duration_s, measured, refused, tell)
        else:
            result = several(runs, pause_s, duration_s, measured, tell) if runs > 1 else measured(tell)
        result = _held(result, config)
    name = result.schema.removeprefix("tunectl.").removesuffix("/1")
    emit_and_write(options, name, read_identity(root), plain(result), output)
    every = _every(result)
    verdicts = {run.budget.verdict for run in every}
    if "broken" in verdicts or any(run.ended_by == "until" for run in every):
        return DRIFTED
    if isinstance(result, JitterLoaded) and (not result.loaded or any(run.load_problem for run in every)):
        return FAILED
    return OK if not limits or verdicts == {"within"} else FAILED


def _check_duration(duration_s: float) -> None:
    if not 0 < duration_s <= 86400:
        raise UsageError(f"--duration {duration_s:g}: seconds, above 0 and at most a day")


Measured = Jitter | JitterRuns | JitterLoaded


def _held(result: Measured, config: HostConfig | None) -> Measured:
    """The same, each run held to the host file's limits, and those under load compared with the quiet ones."""

    def hold(run: Jitter) -> Jitter:
        return run.held(replaced(judge(run, config.budget), looser=list(config.looser)) if config else judge(run, {}))

    match result:
        case JitterLoaded(quiet=quiet, loaded=loaded):
            held = replaced(result, quiet=list(map(hold, quiet)), loaded=list(map(hold, loaded)))
            return replaced(held, comparison=quiet_and_loaded(held))
        case JitterRuns(runs=runs):
            return replaced(result, runs=list(map(hold, runs)))
    return hold(result)


def _every(result: Measured) -> list[Jitter]:
    if isinstance(result, JitterLoaded):
        return [*result.quiet, *result.loaded]
    return result.runs if isinstance(result, JitterRuns) else [result]


@tunectl_command(
    name="selftest",
    short_help="Interrupts a CPU by known lengths: does the probe find them all?",
    exits={OK: "the probe found what was injected", FAILED: "it did not, or the command failed"},
    examples=(Example("On the last isolated CPU:", "sudo tunectl probe selftest"),),
)
@click.option(
    "--cpu",
    type=click.IntRange(0),
    metavar="CPU",
    help="The CPU to test [the last isolated one, else the last allowed one].",
)
@intrude_option
def selftest(options: Options, cpu: int | None, intrude: bool) -> int:
    """Interrupts a CPU by known lengths at known times: does the probe find them all? Some twelve seconds."""
    root = this_machine(options)
    facts = read_scope_facts(root)
    # The first CPUs do the kernel's own work.
    chosen = max(facts.quiet or os.sched_getaffinity(0)) if cpu is None else cpu
    refuse_taken(root, facts, frozenset({chosen}), config_of(options, facts), intrude)
    stay_off(root, frozenset({chosen}))
    with progress(options) as tell:
        tell(Work("injecting known interruptions", 12.0))
        result = run_selftest(chosen)
    emit(options, "probe.selftest", read_identity(root), result)
    return OK if result["passed"] else FAILED


for _one in (jitter, wake, feed, hedge, contention, selftest):
    command.add_command(_one)


def _choice(root: Sysroot, config: HostConfig | None, facts: CpuFacts, cpus: str | None) -> tuple[CpuSet, list[str]]:
    """Which CPUs, and where they come from if nobody has named them."""
    if cpus is not None:
        refuse_empty(cpus)
        return parse_cpulist(cpus, nr_cpus=facts.nr_cpus), []
    chosen = config.scope.isolated if config else facts.kernel_isolated | facts.partitioned or facts.nohz_full
    if chosen:
        return chosen, []
    proposal, said = proposed_config(root, facts)
    if not proposal:
        raise UsageError(f"no CPU is isolated here, and none can be proposed: {said[0]}", "say --cpus LIST")
    isolated = proposal.scope.isolated
    return isolated, [f"no host file: `tunectl propose` names {named_cpus(isolated)}"]


def _plan(
    root: Sysroot, facts: CpuFacts, loads: tuple[str, ...], probed: CpuSet, isolated: CpuSet, refused: str
) -> Plan:
    """The load that is to be. TunectlError beside a running engine, and where something is missing."""
    if refused:
        raise TunectlError(f"--load: {refused}", "a load is for a host that does not trade: stop them")
    return planned(root, facts, loads, probed, isolated)


def _way_out(intrude: bool, fifo: int | None) -> str:
    """What gives the probe a CPU that somebody else's thread kept."""
    if not intrude:
        return STOP
    return "stop them" if fifo else "stop them, or say --fifo 1: it takes the CPU from ordinary threads"
