"""Who else tunes this host, and whether that undoes what was asked for. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.host.cpusets import CpuFacts
from tunectl.host.irqbalance import Ban
from tunectl.host.managers import Manager
from tunectl.knobs import KNOBS
from tunectl.rivals.conflicts import Conflict, conflicts, is_at_work


class Complaint(NamedTuple):
    """What another tuner does against us, and what ends it."""

    reason: str
    fix: str
    observed: str
    desired: str


def complaint(manager: Manager, settings: Mapping[str, Any], isolated: CpuSet, facts: CpuFacts) -> Complaint | None:
    """What speaks against a manager on this host; None where it leaves our knobs alone, or does not run."""
    if manager.name == "irqbalance":
        return _irqbalance(manager, isolated, facts) if is_at_work(manager) else None
    against = conflicts(manager, settings)
    if not against:
        return None
    if not manager.program:
        return _lines(manager, against, settings)
    name, detail = manager.name, f" ({manager.detail})" if manager.detail else ""
    does = "runs" if manager.active else "writes at each boot"
    return Complaint(
        f"{name}{detail} {does} and overwrites knobs that tunectl sets, {manager.when}: "
        + ", ".join(map(str, against)),
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


def _lines(manager: Manager, against: list[Conflict], settings: Mapping[str, Any]) -> Complaint:
    """Lines of files: each can be taken out, or made to agree."""
    lines = [f"{one.place} sets {one.key} = {one.value}".removesuffix(" = ") for one in against]
    wanted = [f"{one.key} = {KNOBS[one.knob].codec.encode(settings[one.knob])}" for one in against]
    return Complaint(
        f"{'; '.join(lines)}, {manager.when}: another value than tunectl's",
        f"take {', '.join(one.place for one in against)} out, or say {'; '.join(wanted)} there",
        "; ".join(f"{one.key} = {one.value}" for one in against),
        "; ".join(wanted),
    )
