"""A tuner that was found, and which of the values asked for here it writes as well, with another value. Pure."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from tunectl import kinds
from tunectl.command import argv, as_data, as_place
from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.errors import UsageError
from tunectl.fix import NOTHING, Fix, apply, in_turn, noted, to_decide, to_type
from tunectl.host.cpusets import CpuFacts
from tunectl.host.irqbalance import Ban
from tunectl.host.refusals import AS_ROOT
from tunectl.host.sysctld import Setting
from tunectl.knobs import KNOBS
from tunectl.knobs.codecs import satisfies
from tunectl.tuners.places import normal_path, places
from tunectl.wording import few

# Several requests stand side by side, and the kernel goes by the strictest: nobody overwrites another's.
_SHARED = frozenset({"cpuidle.dma_latency_us"})
# Within the patterns of knobs that a tuner writes, and no tuner's to write.
_NO_TUNERS = frozenset({"mm.swap", "kernel.highres", "kernel.nohz"})
_MOST_KNOBS = 4  # that a sentence lists


class FoundTuner(NamedTuple):
    """One tuner on this host. `overwrites` are patterns of knobs, as fnmatch reads them."""

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
    settings: tuple[Setting, ...] = ()  # what its configuration says it writes
    when: str = ""  # at what moments it writes
    answer: str = ""  # what `apply` does about that
    once: bool = False  # it writes at boot and ends: enabled is as good as running
    does: str = "sets"  # "will write", or "may write" where a condition may keep it from that
    program: bool = True  # False: files that the boot or udev reads
    unread: str = ""  # what was not read, and why, so that it is not known whether there is more
    unread_fix: Fix = AS_ROOT  # what makes that known
    units: tuple[str, ...] = ()  # of its units those that run, or start at boot


def said_of(place: str, does: str, key: str, value: str) -> str:
    """`FILE:LINE sets KEY = VALUE`, without the value where only the writer knows it."""
    return f"{as_place(place)} {does} {_assigned(key, value)}"


def _assigned(key: str, value: str) -> str:
    return key + (f" = {as_data(value)}" if value else "")


def key_of(setting: Setting) -> str:
    """The name that a file has for a setting, and the card that it is for."""
    is_said = not setting.instance or setting.instance in setting.key
    return setting.key if is_said else f"{setting.key} of {setting.instance}"


def describe(setting: Setting) -> str:
    """One phrase for people: `KEY = VALUE (FILE:LINE)`, or the knob where it stands in no file."""
    if not setting.line:
        return _assigned(setting.knob, setting.value)
    return f"{_assigned(key_of(setting), setting.value)} ({as_place(setting.place)})"


def is_at_work(tuner: FoundTuner) -> bool:
    """Does it write on this host: does it run, or did it at boot? TuneD without a profile runs and writes nothing."""
    if tuner.name == "tuned" and not tuner.profile:
        return False
    return tuner.active or (tuner.enabled and tuner.once)


def conflicts(tuner: FoundTuner, settings: Mapping[str, Any]) -> list[Setting]:
    """What it sets of `settings` ({knob: value}) otherwise: "" where that shows only when it writes.

    One that agrees is no matter.
    """
    if not is_at_work(tuner):
        return []
    settings = {knob: value for knob, value in settings.items() if knob not in _SHARED}
    if tuner.settings or not tuner.overwrites:
        sure = [
            setting for setting in tuner.settings if setting.wins and not setting.named and setting.knob in settings
        ]
        return [setting for setting in sure if _differs(setting, settings[setting.knob])]
    asked = sorted(settings.keys() - _NO_TUNERS)
    matching = [knob for knob in asked if any(fnmatchcase(knob, pattern) for pattern in tuner.overwrites)]
    return [Setting(knob, knob, "", "", 0, wins=True) for knob in matching]


def _differs(setting: Setting, desired: Any) -> bool:
    knob = KNOBS[setting.knob]
    if setting.value == desired:  # a word that stands for a value of the machine, such as hardware-max
        return False
    codec = places().codecs.get(normal_path(setting.key), knob.codec)
    try:
        return not satisfies(knob.match, codec.decode(setting.value), desired)
    except (ValueError, TypeError, UsageError):
        return True  # not known, or a text that the kernel refuses: the operator should know


def notes_of(tuners: Iterable[FoundTuner], settings: Mapping[str, Any]) -> list[str]:
    """One sentence for each tuner that is against us: what it writes, when, and what `apply` does about it."""
    notes = []
    for tuner in tuners:
        if tuner.name == "irqbalance" and "irqbalance.banned_cpus" in settings:
            continue  # its ban list is in the plan itself
        if against := conflicts(tuner, settings):
            name = f"{tuner.name} (profile {tuner.profile})" if tuner.profile else tuner.name
            notes.append(f"{name} writes {few(map(describe, against), 2)}, {tuner.when}: {tuner.answer}")
    return notes


class Objection(NamedTuple):
    """What another tuner does against us, and what ends it."""

    reason: str
    fix: Fix
    observed: str
    desired: str


def unseen(tuner: FoundTuner, settings: Mapping[str, Any]) -> str:
    """What is not known of a tuner that may be against us, because it was not read or followed; "" where all is."""
    concerns = bool(settings) or tuner.name == "irqbalance"
    lines = []
    for (place, key), knobs in _unfollowed(tuner, settings).items():
        named = few(knobs, _MOST_KNOBS)
        lines.append(f"{as_place(place)} may write {named} ({as_data(key)}); whether it does is not known")
    if tuner.unread and concerns and is_at_work(tuner):
        lines.append(tuner.unread)
    return "; ".join(lines)


def unseen_fix(tuner: FoundTuner, settings: Mapping[str, Any]) -> Fix:
    """What makes that known, or ends it."""
    places = [place for place, _ in _unfollowed(tuner, settings)]
    unread = tuner.unread_fix if tuner.unread or not places else NOTHING
    if not places:
        return unread
    waiver = f"or waive check.other_tuners[{tuner.name}]"
    look = to_decide(f"look at {', '.join(map(as_place, dict.fromkeys(places)))} and take out what sets it, {waiver}")
    return in_turn(look, unread) if unread else look


def _unfollowed(tuner: FoundTuner, settings: Mapping[str, Any]) -> dict[tuple[str, str], list[str]]:
    """{(file:line, what names it there): the knobs}: they may be written, and no program is followed."""
    knobs: dict[tuple[str, str], list[str]] = {}
    for setting in tuner.settings:
        if setting.named and setting.knob in settings and setting.knob not in _SHARED:
            names = knobs.setdefault((setting.place if setting.line else "", key_of(setting)), [])
            names += [setting.knob] if setting.knob not in names else []
    return knobs


def unasked(tuner: FoundTuner) -> str:
    """Why nobody knows whether a balancer's list was changed since it started; "" where that is known."""
    return next((ban.unasked for ban in tuner.running_bans if ban.unasked), "") if is_at_work(tuner) else ""


def objection(tuner: FoundTuner, settings: Mapping[str, Any], isolated: CpuSet, facts: CpuFacts) -> Objection | None:
    """What speaks against a tuner on this host; None where it leaves our knobs alone, or does not run."""
    if tuner.name == "irqbalance":
        found = _judge_balancer(tuner, isolated, facts) if is_at_work(tuner) else None
    elif against := conflicts(tuner, settings):
        found = _judge_program(tuner, against) if tuner.program else _judge_lines(tuner, against, settings)
    else:
        found = None
    hidden = unseen(tuner, settings) if found else ""
    if found and hidden:
        return found._replace(reason=f"{found.reason}; what else it does is not known: {hidden}")
    return found


def _judge_program(tuner: FoundTuner, against: list[Setting]) -> Objection:
    name, detail = tuner.name, f" ({tuner.detail})" if tuner.detail else ""
    does = "runs" if tuner.active else "writes at each boot"
    leave = f"or leave those knobs to it, or waive check.other_tuners[{name}]"
    return Objection(
        f"{name}{detail} {does} and overwrites knobs that tunectl sets, {tuner.when}: "
        + ", ".join(map(describe, against)),
        to_type(argv("sudo", "systemctl", "disable", "--now", of=tuner.units or [name]), leave),
        "active" if tuner.active else "enabled",
        "inactive",
    )


def stranger(tuner: FoundTuner) -> Objection | None:
    """A balancer that its service did not start and whose list only root may see: no finding, but worth an alert."""
    stray = next((ban for ban in tuner.running_bans if ban.unread and ban.stray_pid), None)
    return Objection(f"irqbalance runs, and {stray.describe()}", _end_of(stray), "", "") if stray else None


def _end_of(ban: Ban) -> Fix:
    start = to_type(kinds.restart_irqbalance(), "its service did not start that process")
    return in_turn(to_type(argv("sudo", "kill", str(ban.stray_pid))), start)


def _judge_balancer(tuner: FoundTuner, isolated: CpuSet, facts: CpuFacts) -> Objection | None:
    """The ban of each process that runs counts: a file changed since its start changes nothing yet.

    A ban that is not known speaks neither for nor against it.
    """
    automatic = facts.kernel_isolated | facts.nohz_full

    def bans(ban: Ban | None) -> CpuSet:
        if ban is None or (ban.cpus is None and not ban.problem and not ban.unread):
            return automatic
        return ban.cpus or frozenset()

    known = [ban for ban in tuner.running_bans or (tuner.ban,) if ban is None or not ban.unread]
    ban = min(known, key=lambda candidate: len(isolated & bans(candidate)), default=None)
    missing = isolated - bans(ban)
    if not known or not missing:
        return None
    wanted = format_cpulist(isolated | bans(ban) | automatic)
    if ban and ban.stray_pid:
        fix = _end_of(ban)
    elif tuner.ban and tuner.ban.dropped:
        fix = tuner.ban.ends
    elif isolated <= bans(tuner.ban):
        fix = to_type(kinds.restart_irqbalance(), "its configuration has the ban, the running daemon has not")
    else:
        fix = apply(f"by hand: IRQBALANCE_BANNED_CPULIST={wanted} in its configuration, and restart it")
    reason = f"irqbalance runs and may put interrupts on isolated CPUs {format_cpulist(missing)}: it "
    reason += ban.describe() if ban else "bans the CPUs the kernel isolates"
    if tuner.ban and tuner.ban.dropped:
        reason += f"; {tuner.ban.dropped}, so the configured list does not reach it"
    return Objection(reason, fix, format_cpulist(bans(ban)), wanted)


def _judge_lines(tuner: FoundTuner, against: list[Setting], settings: Mapping[str, Any]) -> Objection:
    """Lines of files: each can be taken out, or made to agree."""
    lines = [said_of(setting.place, tuner.does, key_of(setting), setting.value) for setting in against]
    texts = [f"{key_of(setting)} = {KNOBS[setting.knob].codec.encode(settings[setting.knob])}" for setting in against]
    wanted = list(dict.fromkeys(texts))  # several lines may need the same value
    assignments = [text for text in wanted if " " not in text.partition(" = ")[0]]  # a program's is no assignment
    ends = dict.fromkeys(setting.ends for setting in against if setting.ends)
    takes = list(dict.fromkeys(setting.place for setting in against if not setting.ends))
    agree = f"or say {'; '.join(assignments)} there"
    take = f"take {', '.join(map(as_place, takes))} out"
    if takes:
        line = takes[0] if len(takes) == 1 else ""
        fix = in_turn(*ends, to_decide(f"{take}, {agree}" if assignments else take, line=line))
    else:
        fix = noted(in_turn(*ends), agree if assignments else "")
    return Objection(
        f"{'; '.join(lines)}, {tuner.when}: another value than tunectl's",
        fix,
        "; ".join(_assigned(key_of(setting), setting.value) for setting in against),
        "; ".join(wanted),
    )
