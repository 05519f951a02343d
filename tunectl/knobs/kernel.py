"""Kernel housekeeping: watchdogs, timers, statistics, real-time throttling."""

import errno
from typing import Any, NamedTuple

from tunectl.cpulist import format_cpulist
from tunectl.fix import APPLY, NOTHING, in_turn, to_decide
from tunectl.host.fairserver import RUNTIME, FairServer, read_fair_server
from tunectl.host.refusals import AS_ROOT
from tunectl.knobs.codecs import CPULIST, INT, NATURAL, SWITCH, satisfies
from tunectl.knobs.drivers.bootline import BootSwitch, judge_switch
from tunectl.knobs.drivers.pseudofile import PseudoFile
from tunectl.knobs.row import Absence, Facts, Judgement, Knob, View, once
from tunectl.model import Lifetime, Match, Outcome, Reading, Severity

_SYSCTL = "Documentation/admin-guide/sysctl/kernel.rst"
_FAIR_SERVER = "kernel.fair_server_runtime_ns"
_ASK_FOR_NONE = in_turn(to_decide(f'"{_FAIR_SERVER}" = 0 under [knobs] in the host file'), APPLY)


class RtFacts(NamedTuple):
    """What the judge of sched_rt_runtime_us needs beside its value."""

    server: FairServer
    asked: bool  # does the host file say what the fair server is to do? Then apply sees to it


@once
def _fair_server(view: View) -> FairServer:
    return read_fair_server(view.root, view.scope.isolated & view.scope.online)


def _behind_debugfs(view: View) -> tuple[str, int | None]:
    """Root has to look, or debugfs is not there: what stands in force then stays in force."""
    server = _fair_server(view)
    if server.remedy:
        return f"{server.problem}: {server.remedy}", None
    return server.problem, None if server.closed else errno.EACCES


def judge_rt_runtime(knob: Knob, desired: Any, reading: Reading, facts: Facts) -> Judgement:
    """By what this kernel does with it: without a limit here, a fair server may still stop a FIFO spinner."""
    found = reading.of_facts(RtFacts)
    server = found.server
    shown = knob.codec.show(reading.value), knob.codec.show(desired)
    if not satisfies(knob.match, reading.value, desired):
        return Judgement(Outcome.DRIFTED, *shown, knob.why)
    if desired >= 0 or server.exists is False:
        return Judgement(Outcome.COMPLIANT, *shown)
    if server.problem:
        if_any = "the fair server" if server.exists else "a fair server, if this kernel has one,"
        reason = f"{server.problem}: whether {if_any} stops a FIFO spinner in spite of this is not known"
        fix = server.remedy or (NOTHING if server.closed else AS_ROOT)
        return Judgement(Outcome.UNREADABLE, None, shown[1], reason, fix, changeable=False)
    stopped = {cpu: runtime for cpu, runtime in server.runtime_ns if runtime}
    if not stopped:
        return Judgement(Outcome.COMPLIANT, *shown, "the fair server is off on the isolated CPUs, too")
    reason = (
        f"on this kernel the fair server stops a FIFO spinner whatever stands here: for up to {max(stopped.values())} "
        f"ns of every period on CPUs {format_cpulist(stopped)}"
    )
    return Judgement(Outcome.DRIFTED, *shown, reason, NOTHING if found.asked else _ASK_FOR_NONE, changeable=False)


KNOBS = (
    Knob(
        "kernel.nmi_watchdog",
        PseudoFile("proc/sys/kernel/nmi_watchdog"),
        SWITCH,
        Severity.INTERRUPT,
        why="The hard-lockup detector takes a performance counter and an NMI every few seconds on each CPU it watches.",
        source=_SYSCTL,
        risk="a hard lockup is no longer noticed by the kernel",
        absence=Absence(harmless="a kernel without it has no such detector"),
    ),
    Knob(
        "kernel.soft_watchdog",
        PseudoFile("proc/sys/kernel/soft_watchdog"),
        SWITCH,
        Severity.INTERRUPT,
        why="The soft-lockup detector as a whole; kernel.watchdog_cpumask keeps it for the housekeeping CPUs. "
        "boot.nosoftlockup starts the kernel with it off.",
        source=_SYSCTL,
        risk="a soft lockup is no longer noticed by the kernel, on any CPU",
        absence=Absence(harmless="a kernel without it has no such detector"),
    ),
    Knob(
        "kernel.watchdog_cpumask",
        PseudoFile("proc/sys/kernel/watchdog_cpumask"),
        CPULIST,
        Severity.INTERRUPT,
        match=Match.WITHIN,
        why="The soft-lockup detector wakes a high-priority thread and a timer on each CPU of this list.",
        source=_SYSCTL,
        risk="a lockup of an isolated CPU is no longer noticed by the kernel",
        absence=Absence(harmless="a kernel without it has no such detector"),
    ),
    Knob(
        "kernel.timer_migration",
        PseudoFile("proc/sys/kernel/timer_migration"),
        SWITCH,
        Severity.INTERRUPT,
        why="With migration on, timers armed on an isolated CPU (TCP's among them) run on a housekeeping CPU; with it "
        "off they fire where they were armed.",
        source="Documentation/timers/no_hz.rst; kernel/sched/core.c, get_nohz_timer_target()",
        boots_with="on",
    ),
    Knob(
        "kernel.stat_interval",
        PseudoFile("proc/sys/vm/stat_interval"),
        NATURAL,
        Severity.INTERRUPT,
        match=Match.AT_LEAST,
        why="Every so many seconds each CPU with pending counters runs a worker that folds them.",
        source="Documentation/admin-guide/sysctl/vm.rst",
        risk="memory statistics are older",
        absence=Absence(harmless="a kernel without it folds no statistics"),
        boots_with=1,
    ),
    Knob(
        "kernel.sched_rt_runtime_us",
        PseudoFile(
            "proc/sys/kernel/sched_rt_runtime_us",
            facts=lambda view: RtFacts(_fair_server(view), _FAIR_SERVER in view.texts),
        ),
        INT,
        Severity.STALL,
        judge=judge_rt_runtime,
        why="By default a SCHED_FIFO spinner is stopped for 50 ms of every second, so that others may run. -1: no "
        "limit. From 6.12 on the fair server stops it, whatever stands here: kernel.fair_server_runtime_ns.",
        source="Documentation/scheduler/sched-rt-group.rst; kernel/sched/rt.c",
        risk="a runaway FIFO thread keeps its CPU for ever; kernel threads bound to that CPU starve",
        boots_with=950000,
    ),
    Knob(
        _FAIR_SERVER,
        PseudoFile(
            RUNTIME,
            cpus="isolated",
            idle=lambda view: "this kernel has no fair server" if _fair_server(view).exists is False else "",
            hidden=_behind_debugfs,
        ),
        NATURAL,
        Severity.STALL,
        match=Match.AT_MOST,
        why="Where a real-time thread keeps a CPU busy and an ordinary thread waits for it, the kernel runs the "
        "ordinary one for this long in every second (6.12 and later; 50 ms by default). 0: never.",
        source="kernel/sched/debug.c, sched_fair_server_write(); kernel/sched/deadline.c",
        risk="an ordinary thread that has to run on the CPU of a FIFO spinner hangs, kernel workers bound to it too, "
        "and with them whoever waits for them; the kernel warns of it in its log",
        after=("kernel.sched_rt_runtime_us",),
        absence=Absence(hiding=("debugfs=off", "debugfs=no-mount", "lockdown=integrity", "lockdown=confidentiality")),
        boots_with=50000000,
    ),
    Knob(
        "kernel.highres",
        BootSwitch("highres"),
        SWITCH,
        Severity.STALL,
        lifetime=Lifetime.BOOT,
        judge=judge_switch,
        why="Without high-resolution timers every sleep and timeout waits for the next tick, up to 10 ms.",
        source="Documentation/admin-guide/kernel-parameters.txt (highres); kernel/time/hrtimer.c",
        boots_with="on",
    ),
    Knob(
        "kernel.nohz",
        BootSwitch("nohz"),
        SWITCH,
        Severity.INTERRUPT,
        lifetime=Lifetime.BOOT,
        judge=judge_switch,
        why="With nohz=off no CPU ever stops its tick: nohz_full= does nothing, and the kernel still shows its CPUs.",
        source="Documentation/admin-guide/kernel-parameters.txt (nohz); kernel/time/tick-sched.c, "
        "tick_nohz_full_update_tick()",
        boots_with="on",
    ),
)
