"""What was in force and is gone, and what is in force and the next boot will not have. Pure."""

from collections.abc import Iterable, Mapping

from tunectl.bootloader.cmdline import Arg, same_key
from tunectl.command import argv, as_data
from tunectl.fix import APPLY, Fix, in_turn, to_decide, to_type
from tunectl.host.modprobe import Barred, taking_out_lines
from tunectl.host.refusals import AS_ROOT
from tunectl.knobs.row import JOURNAL_HIDDEN, Absence, Facts, Judgement, Knob, NextWord, with_unseen
from tunectl.model import Finding, Held, NextBoot, Outcome, Reading, Scalar, State

_LASTING = "boot."  # boot arguments: their files outlive the boot
_OFF = ("0", "n", "N", "off")
_BLOCKERS = ("module_blacklist", "modprobe.blacklist", "initcall_blacklist")  # the last names acpi_cpufreq_init


def judge_absent(knob: Knob, reading: Reading, desired: Scalar, facts: Facts) -> Judgement:
    """A knob that this host has not: unsupported, or drifted where the last apply had it in force."""
    observed = None if reading.value is None else knob.codec.show(reading.value)
    of_guest = facts.not_owned.get(knob.facility, "") if reading.state is State.ABSENT else ""
    reason = f"{reading.reason}; {of_guest}" if of_guest else reading.reason
    unsupported = Judgement(Outcome.UNSUPPORTED, observed, desired, reason, changeable=False)
    held = facts.held.get(knob.name)
    argument = _argument(knob.absence, facts.arguments, knob.absence.arguments)
    if facts.journal == JOURNAL_HIDDEN and _may_be_lost(knob, reading, argument):
        reason = f"{reading.reason}; whether tunectl had it in force is not known: the journal {facts.journal}"
        return unsupported._replace(outcome=Outcome.UNREADABLE, reason=reason, fix=AS_ROOT)
    if held is None or not held.covers(reading.instance):
        return unsupported
    since = f" since {held.at}" if held.at else ""
    was = f"{reading.reason}; tunectl had it in force{since}, as {held.value}"
    if knob.absence.harmless:
        return unsupported._replace(reason=f"{was}; nothing is lost: {knob.absence.harmless}")
    if reading.state is State.MOOT and not argument:
        return unsupported
    why, fix = _cause(knob, held, argument, facts)
    if not argument and (knob.absence.modules or knob.absence.drivers):
        why = with_unseen(why, facts.unseen)
    return unsupported._replace(outcome=Outcome.DRIFTED, reason=f"{was}: {why}", fix=fix)


def judge_next(knob: Knob, reading: Reading, judged: Judgement, facts: Facts) -> Judgement:
    """The judgement; of what is in force, or waits for a boot, a drift where a word of the next line takes it away."""
    if judged.outcome not in (Outcome.COMPLIANT, Outcome.PENDING_REBOOT) or not knob.absence.by_words:
        return judged
    there = knob.absence._replace(
        modules=tuple(name for name in knob.absence.modules if name in facts.modules),
        drivers=tuple(name for name in knob.absence.drivers if name in facts.modules),
    )
    for word in facts.next_words:
        what = _with_it(knob.absence, reading, word)
        if what or _argument(there, (word.arg,), (*there.arguments, *there.hiding)):
            place = f" ({word.place})" if word.place else ""
            now = "in force now, but the" if judged.outcome is Outcome.COMPLIANT else "the"
            reason = f"{now} next boot will have {word.arg}{place}: {what or 'with that it is not'}"
            return judged._replace(
                outcome=Outcome.DRIFTED,
                reason=reason,
                fix=word.fix,
                changeable=False,
                next=NextBoot.OTHER,
                next_from=word.place,
            )
    return judged


def _with_it(absence: Absence, reading: Reading, word: NextWord) -> str:
    """What goes along with the CPU or the clock that this word takes away; "" where it is neither's."""
    if absence.with_cpu and reading.instance.isdecimal() and int(reading.instance) in word.cpus:
        return f"CPU {reading.instance} is not there then"
    if absence.with_cgroup2 and word.version1:
        return "systemd mounts control groups version 1 then, or refuses to start"
    return "the TSC is not the clock then" if absence.with_tsc and word.clock else ""


def _may_be_lost(knob: Knob, reading: Reading, argument: Arg | None) -> bool:
    """Would it be a loss if the last apply had it in force?"""
    if knob.absence.harmless or knob.name.startswith(_LASTING):
        return False
    return reading.state is not State.MOOT or argument is not None


def _cause(knob: Knob, held: Held, argument: Arg | None, facts: Facts) -> tuple[str, Fix]:
    """What took it away, and what ends that. A decision of the operator's ends it in any case."""
    accept = f'or decide to do without it: "{knob.name}" = "unmanaged" under [knobs] in the host file'
    barred = _barred(knob.absence, facts)
    if argument is None and barred:
        why = f"{'; '.join(map(str, barred))}, so it is not loaded at boot"
        modules = sorted(name for name in _missing(knob.absence, facts) if any(one.bars(name) for one in barred))
        if len(modules) == 1:
            return why, in_turn(to_type(taking_out_lines(barred).then(argv("sudo", "modprobe", of=modules))), APPLY)
        return why, to_decide(f"load the one that this machine needs ({' or '.join(modules)}), {accept}")
    argument = argument or _argument(knob.absence, facts.arguments, knob.absence.of_drivers)
    if argument:
        fix = to_decide(f"take {as_data(argument)} out of the kernel's command line and boot again, {accept}")
        return f"this boot had the argument {argument}, which takes it away", fix
    missing = [name for name in knob.absence.modules if name not in facts.modules]
    if facts.modules and knob.absence.modules and len(missing) == len(knob.absence.modules):
        if len(missing) == 1:
            return f"the module {missing[0]} is not loaded", in_turn(
                to_type(argv("sudo", "modprobe", of=missing)), APPLY
            )
        names = " or ".join(missing)
        fix = to_decide(f"load the one that this machine needs ({names}), {accept}")
        return f"none of the modules {names} is loaded", fix
    if held.kernel and facts.kernel and held.kernel != facts.kernel:
        fix = to_decide(
            f"boot {as_data(held.kernel)} again, or load what offers it in {as_data(facts.kernel)}, {accept}"
        )
        return f"the kernel was {held.kernel} then, and is {facts.kernel} now", fix
    look = "look for what took it away (the kernel's messages, its modules, the firmware's settings)"
    of_guest = facts.not_owned.get(knob.facility)  # it may have had them on a larger type of the provider's
    why = "what took it away is not known" + (f"; {of_guest}" if of_guest else "")
    return why, to_decide(f"{look}, {accept}")


def _barred(absence: Absence, facts: Facts) -> list[Barred]:
    """The lines of modprobe.d that keep away what may provide it, and is not there."""
    wanted = _missing(absence, facts)
    return [barred for barred in facts.barred if any(map(barred.bars, wanted))]


def _missing(absence: Absence, facts: Facts) -> set[str]:
    return {*absence.modules, *absence.drivers} - facts.modules


def _argument(absence: Absence, arguments: Iterable[Arg], takers: Iterable[str]) -> Arg | None:
    """The argument of this boot that takes the knob away: one of these, or one that keeps its drivers from starting."""
    drivers = {*absence.modules, *absence.drivers}
    for arg in arguments:
        for known in takers:
            key, _, value = known.partition("=")
            wanted = value in (arg.value or "").split(",") if value else arg.value not in _OFF
            if same_key(arg.key, key) and wanted:
                return arg
        blocked = {name.replace("-", "_").removesuffix("_init") for name in (arg.value or "").split(",")}
        if any(same_key(arg.key, key) for key in _BLOCKERS) and blocked & drivers:
            return arg
    return None


def held_now(findings: Iterable[Finding], earlier: Mapping[str, Held], kernel: str, at: str) -> dict[str, Held]:
    """By knob what is in force now, and of what was in force before and is asked for still, what is not.

    What nobody asks for any more is forgotten. Boot arguments are left out.
    """
    found: dict[str, Held] = {}
    for finding in findings:
        knob, before = finding.knob, earlier.get(finding.knob)
        if knob.startswith(_LASTING):
            continue
        if finding.outcome is Outcome.COMPLIANT:
            now = Held(finding.observed, at, kernel, frozenset(), ())
            if before is not None and (before.value, before.kernel) == (now.value, kernel):
                now = now._replace(at=before.at)  # in force since then: a run that changes nothing writes nothing
            known = found.get(knob)
            found[knob] = (known or now).with_instances([finding.instance])
    for finding in findings:
        before = earlier.get(finding.knob)
        if before is not None and finding.outcome is not Outcome.COMPLIANT and before.covers(finding.instance):
            found[finding.knob] = (found.get(finding.knob) or before).with_instances([finding.instance])
    return found
