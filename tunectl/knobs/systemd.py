"""What systemd is told: which CPUs its units may use, and what makes runtime values survive a reboot."""

from collections.abc import Iterable
from typing import Any

from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.fix import APPLY, REBOOT, in_turn
from tunectl.host.systemdunit import Said, taking_out
from tunectl.knobs.codecs import CPULIST, WORD
from tunectl.knobs.codecs import satisfies as matches
from tunectl.knobs.drivers.cpuset import SLICE
from tunectl.knobs.drivers.hotplug import ReapplyRule
from tunectl.knobs.drivers.systemdcpus import KEPT, Overriding, Place, SystemdCpus, UnitFacts, kept, united_of
from tunectl.knobs.drivers.unitfile import ApplyService, judge_service
from tunectl.knobs.row import Absence, Facts, Judgement, Knob
from tunectl.model import Match, Outcome, Reading, Severity

_RESOURCES = "systemd.resource-control(5), AllowedCPUs="


def judge_unit(knob: Knob, desired: Any, reading: Reading, facts: Facts) -> Judgement:
    """Right when it is configured and, where the kernel shows the result, in force."""
    found = reading.of_facts(UnitFacts)
    observed = format_cpulist(reading.value)
    if desired is None:
        return Judgement(Outcome.DRIFTED, observed, None, f"/{found.file} stands, and the host file no longer asks")
    shown = format_cpulist(desired)
    if found.word and (judged := _by_the_line(knob, found.word, reading.value, desired)):
        return judged
    if not matches(knob.match, reading.value, desired):
        return _misconfigured(found, observed, desired)
    if not facts.live or not found.shows:
        return Judgement(Outcome.COMPLIANT, observed, shown)
    if not found.group:
        reason = f"nothing runs in {found.unit} now: what first starts there begins on these CPUs"
        return Judgement(Outcome.COMPLIANT, observed, shown, reason)
    if found.effective is not None and found.effective <= desired:
        return Judgement(Outcome.COMPLIANT, observed, shown)
    effective = "" if found.effective is None else format_cpulist(found.effective)
    stands = f"is {effective}" if effective else "is not there, so its processes may use every CPU"
    wider = [one for one in found.at_once if not united_of([one]) <= desired]
    cause = f"systemctl set-property took effect at once ({_quoted(wider)})" if wider else _NOT_GIVEN
    reason = f"configured, and yet /{found.shows} {stands}: {cause}"
    return Judgement(Outcome.DRIFTED, effective, shown, reason)


def _by_the_line(knob: Knob, word: Overriding, configured: CpuSet, desired: CpuSet) -> Judgement | None:
    """What a word of the kernel's line makes of it in this boot and the next; None where the files decide in the next.

    In a boot without the word the files decide, so that both of its answers are those of one of the two.
    """

    def right(cpus: CpuSet | None) -> bool:
        return matches(knob.match, configured if cpus is None else cpus, desired)

    now, later = right(word.this), right(word.next) if word.next_known else right(word.this)
    if not later and word.next is None and word.next_known:
        return None
    observed = format_cpulist(configured if word.this is None else word.this)
    shown, place = format_cpulist(desired), f" ({word.place})" if word.place else ""
    if now and later:
        reason = f"{word.word} on the kernel's line counts more than a file"
        return Judgement(Outcome.COMPLIANT, observed, shown, reason)
    if later:
        reason = f"this boot had {word.word}, and the next will not"
        return Judgement(Outcome.PENDING_REBOOT, observed, shown, reason, REBOOT, changeable=False)
    when = "in force now, but the next boot will have" if now else "the kernel's line has"
    reason = f"{when} {word.word}{place}, which counts more than CPUAffinity= in any file"
    return Judgement(Outcome.DRIFTED, observed, shown, reason, word.fix, changeable=False)


_NOT_GIVEN = "systemd has not given that to the kernel yet"


def _misconfigured(unit_facts: UnitFacts, observed: str, desired: Any) -> Judgement:
    """Ours is not what counts: who says otherwise, and who has to take that back."""
    shown = format_cpulist(desired)
    guilty = [one for one in unit_facts.later if not one.value or not united_of([one]) <= desired]
    if guilty:
        reason = f"{unit_facts.unit} has CPUs {observed or 'none'}: {_quoted(guilty)}, read after /{unit_facts.file}"
        mending = taking_out(guilty, unit_facts.unit)
        fix = in_turn(mending, APPLY) if mending.is_typed else mending
        return Judgement(Outcome.DRIFTED, observed, shown, reason, fix, changeable=unit_facts.own != desired)
    configured = f"it is configured for CPUs {observed} ({_quoted(unit_facts.said)})"
    reason = configured if observed else "no CPUs are configured"
    return Judgement(Outcome.DRIFTED, observed, shown, reason)


def _quoted(said: Iterable[Said]) -> str:
    return "; ".join(f"{one} says {one.key}={one.value}" for one in said)


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
        Severity.STALL,
        judge=judge_unit,
        why=f"The slice that trading units are put into (Slice={SLICE}): its control group is the isolated partition, "
        "and systemd keeps its CPUs whenever it reads its files again.",
        source=_RESOURCES,
    ),
    Knob(
        "systemd.allowed_cpus",
        SystemdCpus(tuple(kept(name) for name in KEPT)),
        CPULIST,
        Severity.STALL,
        match=Match.WITHIN,
        judge=judge_unit,
        why="Services, logins and virtual machines are kept to these CPUs by the kernel, whatever affinity they ask "
        "for; also while there is no valid partition, as early in a boot.",
        source=_RESOURCES,
        risk="a service that pins itself to an isolated CPU fails to, unless it is moved to the isolated slice",
        absence=Absence(("cgroup_disable=cpuset",), with_cgroup2=True),
    ),
    Knob(
        "systemd.cpu_affinity",
        SystemdCpus((_MANAGER,)),
        CPULIST,
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
        Severity.HYGIENE,
        judge=judge_service,
        why="Values in /proc and /sys die with the boot; this service writes them again, early, at every boot.",
        source="systemd.service(5)",
    ),
    Knob(
        "systemd.apply_on_hotplug",
        ReapplyRule(),
        WORD,
        Severity.HYGIENE,
        judge=judge_service,
        why="A NIC that is plugged in, or whose driver is loaded again, comes up with the driver's own queues, "
        "moderation and interrupts; a udev rule has everything applied again.",
        source="systemd.device(5), SYSTEMD_WANTS=; udev(7)",
    ),
)
