"""Frequency: governor, limits, boost, and the hardware's own energy preference."""

from __future__ import annotations

from tunectl.knobs.codecs import CHOICE, INVERTED, KHZ, SWITCH
from tunectl.knobs.drivers.pseudofile import FirstOf, PseudoFile
from tunectl.knobs.row import Knob
from tunectl.model import Lifetime

_POLICY = "sys/devices/system/cpu/cpu{cpu}/cpufreq"
_LIMITS = (("hardware-max", f"{_POLICY}/cpuinfo_max_freq"), ("hardware-min", f"{_POLICY}/cpuinfo_min_freq"))

KNOBS = (
    Knob(
        "cpufreq.governor",
        PseudoFile(f"{_POLICY}/scaling_governor", choices=f"{_POLICY}/scaling_available_governors"),
        CHOICE,
        Lifetime.RUNTIME,
        why="A governor that follows the load lowers the clock of a CPU that waits, and learns of load from the tick, "
        "which is off on nohz_full CPUs.",
        source="Documentation/admin-guide/pm/cpufreq.rst",
        risk="more power and heat, also when idle",
    ),
    Knob(
        "cpufreq.max_khz",
        PseudoFile(f"{_POLICY}/scaling_max_freq", words=_LIMITS),
        KHZ,
        Lifetime.RUNTIME,
        why="Whoever lowers this cap (a power daemon, a thermal daemon) slows the CPU without any other trace.",
        source="Documentation/admin-guide/pm/cpufreq.rst",
        risk="more power and heat under load",
        after=("cpufreq.governor", "cpufreq.boost"),
    ),
    Knob(
        "cpufreq.min_khz",
        PseudoFile(f"{_POLICY}/scaling_min_freq", words=_LIMITS),
        KHZ,
        Lifetime.RUNTIME,
        why="Every change of frequency stops the core for microseconds; a floor at the top leaves nothing to change.",
        source="Documentation/admin-guide/pm/cpufreq.rst",
        risk="more power and heat, also when idle",
        after=("cpufreq.max_khz",),
    ),
    Knob(
        "cpufreq.boost",
        FirstOf(
            (
                (PseudoFile("sys/devices/system/cpu/intel_pstate/no_turbo"), INVERTED),
                (PseudoFile("sys/devices/system/cpu/cpufreq/boost"), SWITCH),
                (PseudoFile(f"{_POLICY}/boost"), SWITCH),
            )
        ),
        SWITCH,
        Lifetime.RUNTIME,
        why="Turbo is faster but its clock depends on temperature and on how many cores are busy; without it the "
        "clock is the same all day. A site's choice: no profile sets it.",
        source="Documentation/admin-guide/pm/intel_pstate.rst (no_turbo); Documentation/admin-guide/pm/cpufreq.rst",
        risk="off: a lower peak clock; on: a clock that varies",
    ),
    Knob(
        "cpufreq.energy_performance_preference",
        PseudoFile(
            f"{_POLICY}/energy_performance_preference",
            choices=f"{_POLICY}/energy_performance_available_preferences",
            disturbs=True,
        ),
        CHOICE,
        Lifetime.RUNTIME,
        why="With hardware-managed P-states the CPU itself weighs speed against power, by this hint.",
        source="Documentation/admin-guide/pm/intel_pstate.rst; drivers/cpufreq/intel_pstate.c",
        risk="more power and heat; refused (EBUSY) while the governor already implies it",
        after=("cpufreq.governor",),
    ),
)
