"""Frequency: the driver's mode, governor, limits, boost, and the hardware's own weighing of speed and power."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tunectl.host.thermal import Capping, cooling_advice, package_of, read_capping
from tunectl.knobs.codecs import CHOICE, INVERTED, KHZ, PERCENT, SWITCH, Codec, integer, mapped
from tunectl.knobs.drivers.pseudofile import FirstOf, PseudoFile
from tunectl.knobs.row import Absence, Facts, Judgement, Knob, View, judge_value, once
from tunectl.model import Match, Outcome, Reading, Scope, Severity

_POLICY = "sys/devices/system/cpu/cpu{cpu}/cpufreq"
_LIMITS = (("hardware-max", f"{_POLICY}/cpuinfo_max_freq"), ("hardware-min", f"{_POLICY}/cpuinfo_min_freq"))

_PSTATE = "sys/devices/system/cpu/intel_pstate"
_INTEL = "Documentation/admin-guide/pm/intel_pstate.rst"
_AMD = "Documentation/admin-guide/pm/amd-pstate.rst"
_HEAT = "more power and heat"
# Source: drivers/cpufreq/cpufreq.c; Documentation/admin-guide/pm/intel_pstate.rst, "Kernel Command Line Options".
_NO_CPUFREQ = Absence(
    ("cpufreq.off", "acpi=off"),
    drivers=("acpi_cpufreq", "cppc_cpufreq", "pcc_cpufreq", "powernow_k8", "intel_pstate", "amd_pstate"),
    of_drivers=("intel_pstate=disable", "amd_pstate=disable"),
)
_NO_PSTATE = Absence(("cpufreq.off", "intel_pstate=disable"))
_NO_HWP = Absence((*_NO_PSTATE.arguments, "intel_pstate=passive", "intel_pstate=no_hwp"))
# The words stand for these five of the sixteen values (arch/x86/kernel/cpu/intel_epb.c).
BIASES = {"performance": 0, "balance-performance": 4, "normal": 6, "balance-power": 8, "power": 15}


def _want_bias(value: Any, scope: Scope) -> int:
    number = BIASES.get(value, value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= 15:
        raise ValueError("neither one of the words nor from 0 to 15")
    return number


_BIAS = Codec(
    "energy bias",
    ", ".join(BIASES) + ", or 0 to 15",
    lambda text: BIASES[text.strip()] if text.strip() in BIASES else integer(text),
    str,
    lambda value: next((word for word, number in BIASES.items() if number == value), value),
    _want_bias,
)


class CapFacts(NamedTuple):
    """The cooling devices that hold clocks down, and the package of each CPU."""

    capping: tuple[Capping, ...]
    packages: Mapping[str, int | None]  # by the CPU's number as text


@once
def _caps(view: View) -> CapFacts | None:
    """None where no cooling device is at work: then the value alone says all."""
    capping = read_capping(view.root)
    packages = {str(cpu): package_of(view.root, str(cpu)) for cpu in view.scope.present} if capping else {}
    return CapFacts(capping, packages) if capping else None


_HEAT_OR_NOT = {
    True: "it is hot",
    False: "no zone is hot enough for that, so somebody wrote its cur_state",
    None: "whether it is hot is not known",
}


def judge_max(knob: Knob, desired: Any, reading: Reading, facts: Facts) -> Judgement:
    """By the value; of a cap that a cooling device holds, by that device: to write the limit would change nothing."""
    judged = judge_value(knob, desired, reading)
    if reading.facts is None or judged.outcome is Outcome.COMPLIANT or reading.blocked or reading.value > desired:
        return judged
    found = reading.of_facts(CapFacts)
    package = found.packages.get(reading.instance)
    mine = [capping for capping in found.capping if capping.package is None or capping.package == package]
    if not mine:
        return judged
    hot = mine[0].hot  # of the host: the same for each
    named = " and ".join(
        f"the cooling device {capping.name} ({capping.kind}) is at state {capping.state}" for capping in mine
    )
    holds = ", and they hold" if len(mine) > 1 else " and holds"
    reason = f"{named}{holds} the clock down; {_HEAT_OR_NOT[hot]}"
    fix = cooling_advice({capping.name: capping.kind for capping in mine}, hot=hot)
    return judged._replace(reason=reason, fix=fix, changeable=False)


def _modes(*words: str) -> Codec:
    same = {word: word for word in words}
    return mapped("driver mode", same, same)


KNOBS = (
    Knob(
        "cpufreq.intel_pstate",
        PseudoFile(f"{_PSTATE}/status"),
        _modes("active", "passive", "off"),
        Severity.SLOWER,
        why="Active: the driver, or the CPU itself, picks the clock and knows two governors only. Passive: the "
        "kernel's governors ask for one. Each mode has its own limits and files. A site's choice: no profile sets it.",
        source=_INTEL,
        risk="a new mode resets governor, limits and preferences; refused where the CPU manages P-states itself",
        absence=_NO_PSTATE,
    ),
    Knob(
        "cpufreq.amd_pstate",
        PseudoFile("sys/devices/system/cpu/amd_pstate/status"),
        _modes("active", "passive", "guided", "disable"),
        Severity.SLOWER,
        why="Active: the CPU picks the clock by a preference. Guided: it picks between limits. Passive: the kernel's "
        "governors ask for one. A site's choice: no profile sets it.",
        source=_AMD,
        risk="a new mode resets governor, limits and preferences",
        absence=_NO_CPUFREQ,
    ),
    Knob(
        "cpufreq.governor",
        PseudoFile(f"{_POLICY}/scaling_governor", choices=f"{_POLICY}/scaling_available_governors"),
        CHOICE,
        Severity.SLOWER,
        why="A governor that follows the load lowers the clock of a CPU that waits, and learns of load from the tick, "
        "which is off on nohz_full CPUs.",
        source="Documentation/admin-guide/pm/cpufreq.rst",
        risk="more power and heat, also when idle",
        after=("cpufreq.intel_pstate", "cpufreq.amd_pstate"),
        absence=_NO_CPUFREQ,
    ),
    Knob(
        "cpufreq.max_perf_pct",
        PseudoFile(f"{_PSTATE}/max_perf_pct"),
        PERCENT,
        Severity.SLOWER,
        match=Match.AT_LEAST,
        why="A cap for all CPUs at once, in percent of the highest clock, that no CPU's own limits show; thermal and "
        "power daemons lower it.",
        source=_INTEL,
        risk="more power and heat under load",
        after=("cpufreq.intel_pstate", "cpufreq.boost"),
        absence=_NO_PSTATE,
    ),
    Knob(
        "cpufreq.min_perf_pct",
        PseudoFile(f"{_PSTATE}/min_perf_pct"),
        PERCENT,
        Severity.SLOWER,
        match=Match.AT_LEAST,
        why="A floor for all CPUs at once, in percent of the highest clock; the higher of it and a CPU's own counts.",
        source=_INTEL,
        risk="more power and heat, also when idle",
        after=("cpufreq.max_perf_pct",),
        absence=_NO_PSTATE,
    ),
    Knob(
        "cpufreq.max_khz",
        PseudoFile(f"{_POLICY}/scaling_max_freq", words=_LIMITS, facts=_caps),
        KHZ,
        Severity.SLOWER,
        judge=judge_max,
        why="A power or thermal daemon that lowers this cap slows the CPU, and nothing else shows it.",
        source="Documentation/admin-guide/pm/cpufreq.rst",
        risk="more power and heat under load",
        after=("cpufreq.governor", "cpufreq.boost"),
        absence=_NO_CPUFREQ,
    ),
    Knob(
        "cpufreq.min_khz",
        PseudoFile(f"{_POLICY}/scaling_min_freq", words=_LIMITS),
        KHZ,
        Severity.SLOWER,
        why="Every change of frequency stops the core for microseconds; a floor at the top leaves nothing to change.",
        source="Documentation/admin-guide/pm/cpufreq.rst",
        risk="more power and heat, also when idle",
        after=("cpufreq.max_khz",),
        absence=_NO_CPUFREQ,
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
        Severity.SLOWER,
        why="Turbo is faster but its clock depends on temperature and on how many cores are busy; without it the "
        "clock is the same all day. A site's choice: no profile sets it.",
        source="Documentation/admin-guide/pm/intel_pstate.rst (no_turbo); Documentation/admin-guide/pm/cpufreq.rst",
        risk="off: a lower peak clock; on: a clock that varies",
        absence=_NO_CPUFREQ,
    ),
    Knob(
        "cpufreq.policy_boost",
        PseudoFile(f"{_POLICY}/boost"),
        SWITCH,
        Severity.SLOWER,
        why="Boost is on for the host, and may still be off for one policy: its CPUs then run slower than the others.",
        source="Documentation/ABI/testing/sysfs-devices-system-cpu; drivers/cpufreq/cpufreq.c, store_local_boost()",
        risk="off: a lower peak clock; on: a clock that varies; refused while boost is off for the host",
        after=("cpufreq.boost",),
        absence=_NO_CPUFREQ,
    ),
    Knob(
        "cpufreq.hwp_dynamic_boost",
        PseudoFile(f"{_PSTATE}/hwp_dynamic_boost"),
        SWITCH,
        Severity.SLOWER,
        why="With it on, a CPU whose thread wakes from I/O is asked to run faster for a while: two requests to the "
        "hardware for each such wake. It helps where the governor lets clocks fall, and is no use at a fixed one.",
        source=_INTEL,
        risk="off: a thread that sleeps in I/O starts at a lower clock",
        after=("cpufreq.intel_pstate",),
        absence=_NO_HWP,
    ),
    Knob(
        "cpufreq.energy_perf_bias",
        PseudoFile("sys/devices/system/cpu/cpu{cpu}/power/energy_perf_bias", disturbs=True),
        _BIAS,
        Severity.SLOWER,
        match=Match.AT_MOST,
        why="The CPU's hint for how hard to save power where it decides by itself: entering deep states, lowering the "
        "uncore clock, delaying turbo. Firmware often leaves it at normal.",
        source="Documentation/admin-guide/pm/intel_epb.rst; arch/x86/kernel/cpu/intel_epb.c",
        risk=f"{_HEAT}; reading it interrupts the CPU, an isolated one is read by the first apply of a boot only",
    ),
    Knob(
        "cpufreq.energy_performance_preference",
        PseudoFile(
            f"{_POLICY}/energy_performance_preference",
            choices=f"{_POLICY}/energy_performance_available_preferences",
            disturbs=True,
        ),
        CHOICE,
        Severity.SLOWER,
        why="With hardware-managed P-states the CPU itself weighs speed against power, by this hint.",
        source="Documentation/admin-guide/pm/intel_pstate.rst; drivers/cpufreq/intel_pstate.c",
        risk="more power and heat; refused (EBUSY) while the governor already implies it",
        after=("cpufreq.governor",),
        absence=_NO_HWP,
    ),
)
