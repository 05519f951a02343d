"""Kernel housekeeping: watchdogs, timers, statistics, real-time throttling."""

from __future__ import annotations

from tunectl.knobs.codecs import CPULIST, INT, NATURAL, SWITCH
from tunectl.knobs.drivers.bootswitch import BootSwitch, judge_switch
from tunectl.knobs.drivers.pseudofile import PseudoFile
from tunectl.knobs.row import Knob
from tunectl.model import Lifetime, Match

_SYSCTL = "Documentation/admin-guide/sysctl/kernel.rst"

KNOBS = (
    Knob(
        "kernel.nmi_watchdog",
        PseudoFile("proc/sys/kernel/nmi_watchdog"),
        SWITCH,
        Lifetime.RUNTIME,
        why="The hard-lockup detector takes a performance counter and an NMI every few seconds on each CPU it watches.",
        source=_SYSCTL,
        risk="a hard lockup is no longer noticed by the kernel",
    ),
    Knob(
        "kernel.soft_watchdog",
        PseudoFile("proc/sys/kernel/soft_watchdog"),
        SWITCH,
        Lifetime.RUNTIME,
        why="The soft-lockup detector as a whole; kernel.watchdog_cpumask keeps it for the housekeeping CPUs. "
        "boot.nosoftlockup starts the kernel with it off.",
        source=_SYSCTL,
        risk="a soft lockup is no longer noticed by the kernel, on any CPU",
    ),
    Knob(
        "kernel.watchdog_cpumask",
        PseudoFile("proc/sys/kernel/watchdog_cpumask"),
        CPULIST,
        Lifetime.RUNTIME,
        match=Match.WITHIN,
        why="The soft-lockup detector wakes a high-priority thread and a timer on each CPU of this list.",
        source=_SYSCTL,
        risk="a lockup of an isolated CPU is no longer noticed by the kernel",
    ),
    Knob(
        "kernel.timer_migration",
        PseudoFile("proc/sys/kernel/timer_migration"),
        SWITCH,
        Lifetime.RUNTIME,
        why="With migration on, timers armed on an isolated CPU (TCP's among them) run on a housekeeping CPU; with it "
        "off they fire where they were armed.",
        source="Documentation/timers/no_hz.rst; kernel/sched/core.c, get_nohz_timer_target()",
    ),
    Knob(
        "kernel.stat_interval",
        PseudoFile("proc/sys/vm/stat_interval"),
        NATURAL,
        Lifetime.RUNTIME,
        match=Match.AT_LEAST,
        why="Every so many seconds each CPU with pending counters runs a worker that folds them.",
        source="Documentation/admin-guide/sysctl/vm.rst",
        risk="memory statistics are older",
    ),
    Knob(
        "kernel.sched_rt_runtime_us",
        PseudoFile("proc/sys/kernel/sched_rt_runtime_us"),
        INT,
        Lifetime.RUNTIME,
        why="By default a SCHED_FIFO spinner is stopped for 50 ms of every second, so that others may run. -1: no "
        "limit.",
        source="Documentation/scheduler/sched-rt-group.rst; kernel/sched/rt.c",
        risk="a runaway FIFO thread keeps its CPU for ever; kernel threads bound to that CPU starve",
    ),
    Knob(
        "kernel.highres",
        BootSwitch("highres"),
        SWITCH,
        Lifetime.BOOT,
        judge=judge_switch,
        why="Without high-resolution timers every sleep and timeout waits for the next tick, up to 10 ms.",
        source="Documentation/admin-guide/kernel-parameters.txt (highres); kernel/time/hrtimer.c",
    ),
)
