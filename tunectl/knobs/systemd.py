"""What systemd is told: which CPUs its units may use, and what makes runtime values survive a reboot."""

from __future__ import annotations

from typing import Any

from tunectl.cpulist import format_cpulist
from tunectl.knobs.codecs import CPULIST, WORD
from tunectl.knobs.codecs import satisfies as matches
from tunectl.knobs.drivers.cpuset import SLICE
from tunectl.knobs.drivers.hotplug import ReapplyRule
from tunectl.knobs.drivers.systemdcpus import Place, SystemdCpus, UnitFacts, dropin
from tunectl.knobs.drivers.unitfile import ApplyService, judge_service
from tunectl.knobs.row import Facts, Judgement, Knob
from tunectl.model import Lifetime, Match, Outcome, Reading, Severity

_RESOURCES = "systemd.resource-control(5), AllowedCPUs="


def judge_unit(knob: Knob, desired: Any, reading: Reading, facts: Facts) -> Judgement:
    """Right when it is configured and, where the kernel shows the result, in force."""
    found: UnitFacts = reading.facts
    observed = format_cpulist(reading.value)
    if desired is None:
        return Judgement(Outcome.DRIFTED, observed, None, f"/{found.file} stands, and the host file no longer asks")
    shown = format_cpulist(desired)
    if not matches(knob.match, reading.value, desired):
        later = f" (/{found.last} is read last)" if found.last > found.file else ""
        reason = f"it is configured for CPUs {observed}{later}" if observed else "no CPUs are configured"
        return Judgement(Outcome.DRIFTED, observed, shown, reason)
    if found.effective is not None and not found.effective <= desired and facts.live:
        effective = format_cpulist(found.effective)
        reason = f"configured, and yet /{found.shows} is {effective}: systemd has not given that to the kernel yet"
        # Once it has read its files, systemd writes a slice's control group when it next starts something there.
        starts = f" && sudo systemd-run --quiet --wait --slice={reading.instance} true"
        fix = "sudo systemctl daemon-reload" + (starts if reading.instance.endswith(".slice") else "")
        return Judgement(Outcome.DRIFTED, effective, shown, reason, fix, changeable=False)
    return Judgement(Outcome.COMPLIANT, observed, shown)


_ISOLATED = Place(
    SLICE,
    "Slice",
    "AllowedCPUs",
    f"etc/systemd/system/{SLICE}",
    unit="[Unit]\nDescription=Units whose threads run on the isolated CPUs\n\n",
)
_MANAGER = Place("system.conf", "Manager", "CPUAffinity", "etc/systemd/system.conf.d/zz-tunectl.conf")

KNOBS = (
    Knob(
        "systemd.isolated_slice",
        SystemdCpus((_ISOLATED,)),
        CPULIST,
        Lifetime.RUNTIME,
        Severity.STALL,
        judge=judge_unit,
        why=f"The slice that trading units are put into (Slice={SLICE}): its control group is the isolated partition, "
        "and systemd keeps its CPUs whenever it reads its files again.",
        source=_RESOURCES,
    ),
    Knob(
        "systemd.allowed_cpus",
        SystemdCpus(
            (
                dropin("init.scope", "Scope"),
                dropin("system.slice", "Slice"),
                dropin("user.slice", "Slice"),
                dropin("machine.slice", "Slice"),
            )
        ),
        CPULIST,
        Lifetime.RUNTIME,
        Severity.STALL,
        match=Match.WITHIN,
        judge=judge_unit,
        why="Services, logins and virtual machines are kept to these CPUs by the kernel, whatever affinity they ask "
        "for; also while there is no valid partition, as early in a boot.",
        source=_RESOURCES,
        risk="a service that pins itself to an isolated CPU fails to, unless it is moved to the isolated slice",
    ),
    Knob(
        "systemd.cpu_affinity",
        SystemdCpus((_MANAGER,)),
        CPULIST,
        Lifetime.RUNTIME,
        Severity.STALL,
        match=Match.WITHIN,
        judge=judge_unit,
        why="From its next start on, systemd itself and whatever it starts begin on these CPUs, on hosts without "
        "cpuset controllers too.",
        source="systemd-system.conf(5), CPUAffinity=",
    ),
    Knob(
        "systemd.apply_at_boot",
        ApplyService(),
        WORD,
        Lifetime.RUNTIME,
        Severity.HYGIENE,
        judge=judge_service,
        why="Values in /proc and /sys die with the boot; this service writes them again, early, at every boot.",
        source="systemd.service(5)",
    ),
    Knob(
        "systemd.apply_on_hotplug",
        ReapplyRule(),
        WORD,
        Lifetime.RUNTIME,
        Severity.HYGIENE,
        judge=judge_service,
        why="A NIC that is plugged in, or whose driver is loaded again, comes up with the driver's own queues, "
        "moderation and interrupts; a udev rule has everything applied again.",
        source="systemd.device(5), SYSTEMD_WANTS=; udev(7)",
    ),
)
