"""tunectl probe hedge"""

from __future__ import annotations

import click

from tunectl.cli.command import check_output, progress, tunectl_command
from tunectl.cli.exits import OK
from tunectl.cli.helped import Example
from tunectl.cli.options import Options, intrude_option
from tunectl.cli.probing import code_of_cases, emit_and_write, pair_of, refuse_taken, this_machine
from tunectl.cli.values import some_of
from tunectl.experiments.hedge import (
    DELAYS,
    DURATION_S,
    LOADS,
    MOST_SERVICE_NS,
    SERVICE_NS,
    STALLS,
    HedgeRequest,
    run_hedge,
)
from tunectl.experiments.pair import asked_cpus
from tunectl.host.ending import ENDING
from tunectl.host.identity import read_identity

_THREADS = 3
_MOST_SEED = 10**15


@tunectl_command(
    name="hedge",
    short_help="A second copy of each late request: does it help, and when not?",
    exits={OK: "at least one case was measured"},
    examples=(
        Example("On three isolated CPUs:", "sudo tunectl probe hedge"),
        Example(
            "On simulated time, which needs no CPU of its own:",
            "tunectl probe hedge --simulate --load 0.3,0.7",
        ),
    ),
)
@click.option(
    "--cpus", metavar="C,A,B", help="The client's CPU and those of both servers [three isolated ones, on three cores]."
)
@click.option(
    "--simulate",
    is_flag=True,
    help="The same client and policy on simulated time: needs no CPU, and is no measurement.",
)
@click.option(
    "--service-ns",
    type=click.IntRange(500, MOST_SERVICE_NS),
    default=SERVICE_NS,
    show_default=True,
    metavar="N",
    help="Work of a request.",
)
@click.option(
    "--load", default=LOADS, metavar="LIST", help=f"Of each server, without second copies and stalls [{LOADS}]."
)
@click.option(
    "--delay",
    default=DELAYS,
    metavar="LIST",
    help="When a request without an answer gets a second copy: ns from due, or pNN, that percentile of the latest "
    f"answers; without any is always measured, too [{DELAYS}].",
)
@click.option(
    "--cancel/--no-cancel", default=True, help="Cancel a copy that is not needed, where it has not begun [yes]."
)
@click.option(
    "--budget", type=float, metavar="X", help="Second copies for each request, on average, 0 to 1 [no limit]."
)
@click.option(
    "--shed", type=click.IntRange(1, 1_000_000), metavar="N", help="A queue of N refuses what comes [none does]."
)
@click.option(
    "--stall",
    default="none",
    metavar="LIST",
    shell_complete=some_of(lambda: STALLS),
    help=f"Who stalls for 300 us, 1 % of the time: {', '.join(STALLS)} (both at the same instants) [none].",
)
@click.option(
    "--duration", "duration_s", type=float, default=DURATION_S, show_default=True, metavar="S", help="Of each case."
)
@click.option(
    "--seed",
    type=click.IntRange(0, _MOST_SEED),
    default=1,
    show_default=True,
    metavar="N",
    help="Of arrivals and stalls.",
)
@click.option("--fifo", type=click.IntRange(1, 99), metavar="PRIO", help="All threads as SCHED_FIFO at this priority.")
@intrude_option
@click.option("--output", type=click.Path(dir_okay=False), metavar="FILE", help="Write the JSON result there, too.")
def hedge(
    options: Options,
    cpus: str | None,
    simulate: bool,
    service_ns: int,
    load: str,
    delay: str,
    cancel: bool,
    budget: float | None,
    shed: int | None,
    stall: str,
    duration_s: float,
    seed: int,
    fifo: int | None,
    intrude: bool,
    output: str | None,
) -> int:
    """A second copy of each late request to another server: does it help, at which delay, when does it collapse?"""
    root, among = this_machine(options), None
    if simulate:
        if output is not None:
            check_output(output)
    else:
        pair = pair_of(options, cpus, intrude, output, _THREADS)
        among = pair.among
        refuse_taken(root, pair.facts, asked_cpus(cpus, among), pair.config, intrude)
    request = HedgeRequest(
        cpus=cpus,
        among=among,
        service_ns=service_ns,
        load=load,
        delay=delay,
        cancel=cancel,
        budget=budget,
        shed=shed,
        stall=stall,
        duration_s=duration_s,
        seed=seed,
        fifo=fifo,
        intrude=intrude,
        simulate=simulate,
    )
    ENDING.keep()
    with progress(options) as tell:
        result = run_hedge(request, tell)
    emit_and_write(options, "probe.hedge", read_identity(root), result, output)
    return code_of_cases(result)
