"""Who else tunes this host, and whether that undoes what was asked for. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.host.irqbalance import Ban
from tunectl.host.managers import Manager
from tunectl.host.sysctld import Setting
from tunectl.host.topology import CpuFacts
from tunectl.knobs import KNOBS
from tunectl.knobs.codecs import satisfies

# These write their values once, at boot, and are gone: enabled is as good as running.
_ONCE_AT_BOOT = frozenset({"cpupower", "cpufrequtils", "tlp"})


class Complaint(NamedTuple):
    """What another tuner does against us, and what ends it."""

    reason: str
    fix: str
    observed: str
    desired: str


def contested(manager: Manager, settings: Mapping[str, Any]) -> list[str]:
    """The knobs with a desired value that a manager writes, too, by name."""
    return sorted(knob for knob in settings if any(fnmatchcase(knob, pattern) for pattern in manager.overwrites))


def complaint(manager: Manager, settings: Mapping[str, Any], isolated: CpuSet, facts: CpuFacts) -> Complaint | None:
    """What speaks against a manager on this host; None where it leaves our knobs alone, or does not run."""
    if manager.name == "sysctl.d":
        return _sysctl(manager, settings)
    if not manager.active and not (manager.enabled and manager.name in _ONCE_AT_BOOT):
        return None
    if manager.name == "irqbalance":
        return _irqbalance(manager, isolated, facts)
    if manager.name == "tuned" and not manager.profile:
        return None  # `tuned-adm off`: it runs and touches nothing
    knobs = contested(manager, settings)
    if not knobs:
        return None
    name, detail = manager.name, f" ({manager.detail})" if manager.detail else ""
    does = "runs" if manager.active else "writes at each boot"
    return Complaint(
        f"{name}{detail} {does} and overwrites knobs that tunectl sets: {', '.join(knobs)}",
        f"systemctl disable --now {name}; or leave those knobs to it, or waive check.other_tuners[{name}]",
        "active" if manager.active else "enabled",
        "inactive",
    )


def _irqbalance(manager: Manager, isolated: CpuSet, facts: CpuFacts) -> Complaint | None:
    """The ban of each process that runs counts: a file changed since its start changes nothing yet."""
    automatic = facts.kernel_isolated | facts.nohz_full

    def bans(ban: Ban | None) -> CpuSet:
        if ban is None or (ban.cpus is None and not ban.problem):
            return automatic
        return ban.cpus or frozenset()

    ban = min(manager.running_bans or (manager.ban,), key=lambda one: len(isolated & bans(one)))
    missing = isolated - bans(ban)
    if not missing:
        return None
    wanted = format_cpulist(isolated | bans(ban) | automatic)
    if ban and ban.stray_pid:
        fix = f"kill {ban.stray_pid}: its service did not start it; then systemctl restart irqbalance"
    elif isolated <= bans(manager.ban):
        fix = "systemctl restart irqbalance: its configuration has the ban, the running daemon has not"
    else:
        fix = f"tunectl apply; by hand: IRQBALANCE_BANNED_CPULIST={wanted} in its configuration, and restart it"
    return Complaint(
        f"irqbalance runs and may put interrupts on isolated CPUs {format_cpulist(missing)}: it "
        + (ban.describe() if ban else "bans the CPUs the kernel isolates"),
        fix,
        format_cpulist(bans(ban)),
        wanted,
    )


def _sysctl(manager: Manager, settings: Mapping[str, Any]) -> Complaint | None:
    against = [one for one in manager.settings if one.wins and _differs(one, settings)]
    if not against:
        return None
    lines = [f"{one.path}:{one.line} sets {one.key} = {one.value}" for one in against]
    wanted = [f"{one.key} = {KNOBS[one.knob].codec.encode(settings[one.knob])}" for one in against]
    return Complaint(
        f"at each boot {'; '.join(lines)}, another value than tunectl's",
        f"take {', '.join(f'{one.path}:{one.line}' for one in against)} out, or say {'; '.join(wanted)} there",
        "; ".join(f"{one.key} = {one.value}" for one in against),
        "; ".join(wanted),
    )


def _differs(setting: Setting, settings: Mapping[str, Any]) -> bool:
    if setting.knob not in settings:
        return False
    knob = KNOBS[setting.knob]
    try:
        value = knob.codec.decode(setting.value)
    except ValueError:
        return True  # kernel.watchdog = maybe: the kernel refuses it, and the operator should know
    return not satisfies(knob.match, value, settings[setting.knob])
