"""The recorded hosts that differ in who sets the clock: every driver and mode that the other hosts do not have."""

from tests.hosts.parts import INTEL_IDLE, platform
from tests.hosts.spec import Cpu, Frequency, HostSpec, Idle

_ALL = ("performance", "powersave", "ondemand", "schedutil")
_FOUR = tuple(Cpu(cpu, cpu) for cpu in range(4))


def _intel(name: str, frequency: Frequency) -> HostSpec:
    return HostSpec(
        name,
        _FOUR,
        kernel="6.12.3-amd64",
        frequency=frequency,
        idle=INTEL_IDLE,
        irqs=platform("timer", "rtc0"),
        uncore=("uncore00", "uncore01"),  # TPMI: memory-mapped, no CPU is asked
        energy_bias=6,
        throttle=True,
    )


def _amd(name: str, frequency: Frequency) -> HostSpec:
    return HostSpec(
        name,
        _FOUR,
        kernel="6.12.3-amd64",
        vendor="AuthenticAMD",
        model="AMD EPYC 9124 16-Core Processor",
        frequency=frequency,
        idle=(Idle("POLL", 0, 0), Idle("C1", 1, 2), Idle("C2", 100, 200)),
        irqs=platform("timer", "rtc0"),
    )


def intelpassive() -> HostSpec:
    """intel_pstate in passive mode with HWP; somebody capped it at four fifths."""
    return _intel(
        "intelpassive",
        Frequency("intel_cpufreq", _ALL, "schedutil", 800000, 4400000, 3500000, preferences=True, perf_pct=80),
    )


def intelnohwp() -> HostSpec:
    """intel_pstate in active mode on a CPU without HWP: no preference, no base frequency."""
    return _intel("intelnohwp", Frequency("intel_pstate", ("performance", "powersave"), "powersave", 1200000, 3600000))


def amdacpi() -> HostSpec:
    """acpi-cpufreq with three P-states and one boost switch for the host."""
    steps = (2850000, 2100000, 1500000)
    return _amd("amdacpi", Frequency("acpi-cpufreq", _ALL, "ondemand", 1500000, 2850000, steps_khz=steps, boost=True))


def amdpassive() -> HostSpec:
    """amd-pstate, passive: the kernel's governors, boost per policy."""
    return _amd(
        "amdpassive",
        Frequency("amd-pstate", _ALL, "schedutil", 400000, 3700000, nominal_mhz=2850, boost=True, policy_boost=True),
    )


def amdguided() -> HostSpec:
    """amd-pstate, guided: the CPU picks between the governor's limits."""
    return _amd(
        "amdguided",
        Frequency("amd-pstate", _ALL, "schedutil", 400000, 3700000, nominal_mhz=2850, boost=True, mode="guided"),
    )
