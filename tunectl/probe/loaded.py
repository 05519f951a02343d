"""A run of the probe beside a load on the housekeeping CPUs: started before it, ended after it, and what the load did.

A run counts as one under load only where the load worked from before its start until after its end, on its own CPUs,
and every stressor says that it did something.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from tunectl.cpulist import CpuSet, format_cpulist, named_cpus
from tunectl.errors import TunectlError, UsageError, cut_line
from tunectl.host.cpusets import CpuFacts
from tunectl.host.ending import ENDING
from tunectl.host.occupants import Place, declared, look, said
from tunectl.host.procs import hidden_threads
from tunectl.host.stressng import Ended, Figures, StressNg, check_room, find_program, version_of
from tunectl.host.sysroot import Sysroot
from tunectl.model import Trading
from tunectl.probe.loads import LOADS, instances, needs_mib, words
from tunectl.probe.runs import several
from tunectl.shapes import Jitter, JitterLoaded, Load, Stressor
from tunectl.wording import plural
from tunectl.work import Tell, Work

_BEYOND_S = 120.0  # calibration, counters, a long list of events: then it ends by itself
_MOST_WORDS = 5
_NOTHING = Figures()


class Plan(NamedTuple):
    """Which loads, where, and by which program."""

    names: tuple[str, ...]
    cpus: CpuSet
    program: str

    @property
    def named(self) -> str:
        """`load memory, timers on CPUs 0-1`"""
        return f"load {', '.join(self.names)} on {named_cpus(self.cpus)}"


def planned(root: Sysroot, facts: CpuFacts, names: tuple[str, ...], probed: CpuSet, isolated: CpuSet) -> Plan:
    """What can be started here. UsageError where no CPU is left for it, TunectlError where something is missing."""
    spared = facts.online - probed - isolated - facts.quiet
    cpus = spared & os.sched_getaffinity(0)
    if not cpus:
        others = f", and this process may not use {named_cpus(spared)}" if spared else ""
        raise UsageError(
            f"--load: no housekeeping CPU is left beside the probed ones ({format_cpulist(probed)}){others}",
            "a load never runs on a CPU that is probed or isolated: probe fewer CPUs",
        )
    rooted = [name for name in names if LOADS[name].needs_root]
    if rooted and os.geteuid():
        raise TunectlError(f"--load: {', '.join(rooted)}: only root may send raw packets", "sudo, or name the others")
    version = version_of(find_program())
    check_room(root, *needs_mib(names, len(cpus)))
    return Plan(names, cpus, version)


def refusal(root: Sysroot, facts: CpuFacts, probed: CpuSet, isolated: CpuSet, trading: Sequence[Trading]) -> str:
    """Why no load may be put on this host now; "" where one may. Also --intrude puts none beside an engine."""
    if hidden := hidden_threads(root):
        return f"{hidden}: a load could disturb an engine that does not show"
    there = sorted(set(declared(root, trading).values()))
    if there:
        return f"{', '.join(there)} of the host file runs: a load takes memory bandwidth and caches from it"
    taken = look(root, Place.of(facts, probed | isolated, isolated))
    if taken:
        each = "; ".join(f"CPU {cpu}: {why}" for cpu, why in said(taken).items())
        return (
            f"somebody else's threads run where nothing may disturb ({each}): a load takes memory bandwidth from them"
        )
    return ""


def under(plan: Plan, duration_s: float, tell: Tell, measured: Callable[[Tell], Jitter]) -> Jitter:
    """The result of `measured`, with `load`: what the load did meanwhile. TunectlError where none could be started."""
    tell(Work(f"starting {plan.named}", duration_s))
    stress = StressNg(Sysroot(), plan.cpus, words(plan.names, len(plan.cpus)), duration_s + _BEYOND_S)
    try:
        stress.until_at_work()
        result = measured(lambda work: tell(work.within(f"under {plan.named}: ")))
        broke = stress.stopped()
        ended = stress.end()
    finally:
        stress.close()
    return replace(result, load=recorded(plan, broke, ended))


def recorded(plan: Plan, broke: str, ended: Ended) -> Load:
    """The `load` of a result."""
    idle = [name for name in plan.names if not ended.figures.get(LOADS[name].stressor, _NOTHING).bogo_ops]
    reason = broke
    if not reason and ended.status is None:
        reason = "stress-ng did not end when it was told to"
    if not reason and idle:
        reason = f"stress-ng names no work of {', '.join(idle)}"
    if not reason and ended.status:
        reason = f"stress-ng failed (exit status {ended.status})"
    return Load(
        names=list(plan.names),
        cpus=format_cpulist(plan.cpus),
        program=plan.program,
        ran=not reason,
        reason=reason,
        stressors=[_stressor(plan, name, ended.figures) for name in plan.names],
        said=list(map(cut_line, ended.said[-_MOST_WORDS:])) if reason else [],
    )


def _stressor(plan: Plan, name: str, figures: Mapping[str, Figures]) -> Stressor:
    stressor = LOADS[name].stressor
    did = figures.get(stressor, _NOTHING)
    return Stressor(name, stressor, instances(name, len(plan.cpus)), *did, proves=LOADS[name].proves)


def quiet_then_loaded(
    plan: Plan,
    count: int,
    pause_s: float,
    duration_s: float,
    measured: Callable[[Tell], Jitter],
    refused: Callable[[], str],
    tell: Tell,
) -> JitterLoaded:
    """`count` runs of each kind, not yet compared.

    `refused` says why no load may run now, and is asked before each: an engine may have been started meanwhile. Ctrl-C,
    and a load that cannot be started, leave the quiet runs. TunectlError where there is none.
    """

    def loaded_run(said: Tell) -> Jitter:
        if why := refused():
            raise TunectlError(f"refused: {why}")
        return under(plan, duration_s, said, measured)

    again_s = count * (duration_s + pause_s) - pause_s
    quiet = several(count, pause_s, duration_s, measured, lambda work: tell(work.within("quiet: ", again_s)))
    warnings, loaded = [f"quiet: {text}" for text in quiet.warnings], list[Jitter]()
    if quiet.runs[-1].interrupted or warnings:
        warnings.append(f"not measured under {plan.named}: interrupted before")
    else:
        try:
            jitter_runs = several(count, pause_s, duration_s, loaded_run, tell)
            loaded = jitter_runs.runs
            warnings += [f"under load: {text}" for text in jitter_runs.warnings]
        except (KeyboardInterrupt, TunectlError) as error:
            if ENDING.is_urgent:
                said = f"interrupted again: the run at hand and {plural(len(quiet.runs), 'whole run')} are lost"
                raise TunectlError(said) from error
            warnings.append(f"not measured under {plan.named}: {error or 'interrupted'}")
    return JitterLoaded(
        tunectl_version=quiet.tunectl_version,
        host=quiet.host,
        at=quiet.at,
        pause_s=quiet.pause_s,
        warnings=warnings,
        quiet=quiet.runs,
        loaded=loaded,
    )
