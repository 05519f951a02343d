"""Who else tunes this host, and which of our knobs each could overwrite. The table is the knowledge.

Evidence, none of it a command: a unit's control group and processes (runs now), the links that start
it at boot (enabled), its unit file or configuration (installed).
"""

from __future__ import annotations

from dataclasses import dataclass

from tunectl.host.irqbalance import Ban, read_configured_ban, read_running_ban
from tunectl.host.sysctld import Setting
from tunectl.host.sysroot import Sysroot

CGROUPS = ("sys/fs/cgroup/system.slice", "sys/fs/cgroup/systemd/system.slice", "sys/fs/cgroup/unified/system.slice")
_UNITS = ("etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system", "lib/systemd/system")
_COMM_LENGTH = 15  # the kernel keeps no more of a process's name


@dataclass(frozen=True)
class Tool:
    """One program that tunes: its units, its processes' names, and the knobs it writes, as patterns of names."""

    name: str
    units: tuple[str, ...]
    overwrites: tuple[str, ...]
    comms: tuple[str, ...] = ()


@dataclass(frozen=True)
class Manager:
    """One of them, found on this host. `overwrites` are patterns as fnmatch reads them."""

    name: str
    active: bool
    enabled: bool
    installed: bool
    overwrites: tuple[str, ...]
    evidence: tuple[str, ...]  # paths, with a leading slash
    detail: str = ""
    ban: Ban | None = None  # irqbalance: configured
    running_bans: tuple[Ban, ...] = ()  # irqbalance: of each daemon that runs
    profile: str = ""  # TuneD
    settings: tuple[Setting, ...] = ()  # what its configuration says it writes (rivals/table.py)
    when: str = ""  # at what moments it writes
    answer: str = ""  # what `apply` does about that
    once: bool = False  # it writes at boot only, and is gone
    program: bool = True  # not files that something else reads


_FREQUENCY = ("cpufreq.governor", "cpufreq.min_khz", "cpufreq.max_khz")
TOOLS = (
    # What TuneD writes depends on its profile; these are its cpu, sysctl, vm, scheduler, irq and bootloader plugins.
    Tool(
        "tuned",
        ("tuned.service", "tuned-ppd.service"),
        (
            "boot.*",
            "cpufreq.*",
            "cpuidle.*",
            "irq.*",
            "kernel.*",
            "mm.*",
            "net.busy_*",
            "uncore.*",
            "workqueue.cpumask",
        ),
    ),
    Tool("irqbalance", ("irqbalance.service",), ("irq.affinity", "net.queue_irqs")),
    Tool(
        "power-profiles-daemon",
        ("power-profiles-daemon.service",),
        (
            "cpufreq.governor",
            "cpufreq.energy_performance_preference",
            "cpufreq.energy_perf_bias",
            "cpufreq.boost",
        ),
    ),
    Tool("thermald", ("thermald.service",), ("cpufreq.max_khz", "cpufreq.max_perf_pct", "cpufreq.boost")),
    Tool("tlp", ("tlp.service",), ("cpufreq.*", "kernel.nmi_watchdog", "pcie.aspm_policy")),
    Tool("auto-cpufreq", ("auto-cpufreq.service",), ("cpufreq.*",)),
    Tool("system76-power", ("com.system76.PowerDaemon.service",), ("cpufreq.*",), ("system76-power",)),
    Tool("cpupower", ("cpupower.service", "cpupower-service.service"), _FREQUENCY),
    Tool("cpufrequtils", ("cpufrequtils.service", "ondemand.service"), _FREQUENCY),
    Tool("ksmtuned", ("ksmtuned.service", "ksm.service"), ("mm.ksm",)),
)


def read_managers(root: Sysroot) -> list[Manager]:
    """Those found on this host, in the table's order. Never raises. What each writes is rivals/table.py's matter."""
    processes = _processes(root)
    wanted = _wanted_units(root)
    return [manager for tool in TOOLS if (manager := _find(root, tool, processes, wanted))]


def names_of(tool: Tool) -> tuple[str, ...]:
    """What its processes are called in /proc/PID/comm."""
    return tool.comms or (tool.name[:_COMM_LENGTH],)


def _processes(root: Sysroot) -> dict[str, list[int]]:
    """{name: pids}. Only names: a recorded host may hold nothing else of a process."""
    found: dict[str, list[int]] = {}
    for pid in sorted(int(name) for name in root.listdir("proc") if name.isdecimal()):
        found.setdefault(root.get(f"proc/{pid}/comm"), []).append(pid)
    return found


def _wanted_units(root: Sysroot) -> dict[str, str]:
    """{unit: the link that starts it at boot}."""
    found: dict[str, str] = {}
    for directory in _UNITS:
        for name in root.listdir(directory):
            if name.endswith((".wants", ".requires")):
                for unit in root.listdir(f"{directory}/{name}"):
                    found.setdefault(unit, f"{directory}/{name}/{unit}")
    return found


def _find(root: Sysroot, tool: Tool, processes: dict[str, list[int]], wanted: dict[str, str]) -> Manager | None:
    running = [f"{slice_}/{unit}" for slice_ in CGROUPS for unit in tool.units if root.exists(f"{slice_}/{unit}")]
    pids = [pid for comm in names_of(tool) for pid in processes.get(comm, ())]
    running += [f"proc/{pid}/comm" for pid in pids]
    masked = {unit for unit in tool.units if root.readlink(f"etc/systemd/system/{unit}") == "/dev/null"}
    enabled = [wanted[unit] for unit in tool.units if unit in wanted and unit not in masked]
    files = [f"{where}/{unit}" for where in _UNITS for unit in tool.units if unit not in masked]
    installed = [path for path in files if root.exists(path)]
    if not (running or enabled or installed):
        return None
    extra = _irqbalance(root, pids) if tool.name == "irqbalance" else _tuned(root) if tool.name == "tuned" else {}
    return Manager(
        tool.name,
        active=bool(running),
        enabled=bool(enabled),
        installed=bool(installed or running),
        overwrites=tool.overwrites,
        evidence=tuple("/" + path for path in [*running, *enabled, *installed]),
        **extra,  # type: ignore[arg-type]
    )


def _irqbalance(root: Sysroot, pids: list[int]) -> dict[str, object]:
    configured = read_configured_ban(root)
    running = tuple(ban for pid in pids if (ban := read_running_ban(root, pid)))
    detail = "; ".join(ban.describe() for ban in running or (configured,))
    if any(ban.cpus != configured.cpus for ban in running):
        detail += f"; configured, after a restart: {configured.describe()}"
    return {"ban": configured, "running_bans": running, "detail": detail}


def _tuned(root: Sysroot) -> dict[str, object]:
    profile = " ".join(root.get("etc/tuned/active_profile").split())
    return {"profile": profile, "detail": f"profile {profile}" if profile else "no profile chosen"}
