"""desired minus observed, as a pure function: no I/O, no clock. verify is "the plan is empty"."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tunectl.fix import APPLY, NOTHING, to_decide
from tunectl.host.refusals import AS_ROOT, DENIED
from tunectl.knobs import KNOBS, in_order
from tunectl.knobs.row import Facts, Judgement, Knob, judge_value
from tunectl.model import (
    NEXT_BOOT,
    Change,
    Finding,
    Lifetime,
    Match,
    NextBoot,
    Outcome,
    Plan,
    Reading,
    Setting,
    Severity,
    State,
    Target,
    Waiver,
)
from tunectl.tuning.loss import judge_absent, judge_next
from tunectl.wording import plural

_MAY_BE_WRITTEN = (Outcome.DRIFTED, Outcome.UNREADABLE)  # of the second what a write alone tells
_MAY_BE_WAIVED = (Outcome.DRIFTED, Outcome.REFUSED, Outcome.UNREADABLE)


def diff(
    settings: Sequence[Setting], readings: Iterable[Reading], facts: Facts, waivers: Sequence[Waiver], today: str
) -> Plan:
    """The plan: every target judged, and a change for each that `apply` can correct.

    `today` is an ISO date, for the waivers. Boot knobs are judged first, because what waits for the
    next boot explains some of what stands now.
    """
    by_knob: dict[str, list[Reading]] = {setting.knob: [] for setting in settings}
    for reading in readings:
        by_knob[reading.knob].append(reading)
    findings: dict[str, list[Finding]] = {}
    changes: dict[str, list[Change]] = {}
    for setting in sorted(settings, key=lambda setting: KNOBS[setting.knob].facility != "boot"):
        knob = KNOBS[setting.knob]
        found = findings.setdefault(knob.name, [])
        for reading, judgement in _judged(knob, setting, by_knob[knob.name], facts):
            finding = _finding(knob, reading, judgement)
            if waivers:
                finding = _waive(finding, waivers, today)
            found.append(finding)
            if finding.outcome in _MAY_BE_WRITTEN and judgement.changeable:
                changes.setdefault(knob.name, []).append(_change(knob, setting, reading, judgement))
        if knob.name == "boot.isolcpus":
            pending = any(finding.outcome is Outcome.PENDING_REBOOT for finding in found)
            facts = facts._replace(managed_pending=pending and "managed_irq" in setting.value.flags)
    ordered = tuple(change for name in in_order(list(changes)) for change in changes[name])
    reported = tuple(finding for setting in settings for finding in findings[setting.knob])
    reported = _with_next_boot(reported, waivers, today)
    reported += tuple(idle_waivers([waiver for waiver in waivers if waiver.knob in (*KNOBS, NEXT_BOOT)], reported))
    return _plan(ordered, reported)


def _with_next_boot(findings: tuple[Finding, ...], waivers: Sequence[Waiver], today: str) -> tuple[Finding, ...]:
    """The findings, and one for all arguments in force of which nobody knows whether the next boot has them.

    What is in force now is no worse for it, and what would tell is that one finding's fix.
    """
    unknown = [
        finding for finding in findings if finding.next is NextBoot.UNKNOWN and finding.outcome is Outcome.COMPLIANT
    ]
    if not unknown:
        return findings
    why = "; ".join(dict.fromkeys(finding.next_from for finding in unknown if finding.next_from))
    reason = f"the next boot is not known for {plural(len(unknown), 'argument')}" + (f": {why}" if why else "")
    fix = next((finding.fix for finding in unknown if finding.fix), NOTHING)
    whole = Finding(NEXT_BOOT, "", Outcome.UNREADABLE, None, None, reason, fix, severity=Severity.HYGIENE)
    left = tuple(finding._replace(fix=NOTHING) if finding in unknown else finding for finding in findings)
    return (*left, _waive(whole, waivers, today))


def runtime_part(plan: Plan) -> Plan:
    """The same without what the boot loader is to be given."""
    return _plan(tuple(change for change in plan.changes if change.lifetime is Lifetime.RUNTIME), plan.findings)


def _plan(changes: tuple[Change, ...], findings: tuple[Finding, ...]) -> Plan:
    written = any(change.lifetime is Lifetime.BOOT for change in changes)
    return Plan(changes, findings, written or any(finding.outcome is Outcome.PENDING_REBOOT for finding in findings))


def _judged(
    knob: Knob, setting: Setting, readings: Iterable[Reading], facts: Facts
) -> Iterator[tuple[Reading, Judgement]]:
    """Each reading and its judgement: where thousands of targets show the same, it is judged once."""
    alike: dict[tuple[Any, ...], Judgement] = {}
    for reading in readings:
        if reading.facts is not None or reading.state is State.ABSENT or knob.absence.with_cpu:
            yield reading, _judge(knob, setting, reading, facts)
            continue
        shown = reading[2:]  # everything except which target it is
        if shown not in alike:
            alike[shown] = _judge(knob, setting, reading, facts)
        yield reading, alike[shown]


def _judge(knob: Knob, setting: Setting, reading: Reading, facts: Facts) -> Judgement:
    if setting.value is None:  # the setting is no longer wanted: only the row's own judge knows what that means
        assert knob.judge
        return knob.judge(knob, None, reading, facts)
    show = knob.codec.show
    desired = setting.value if reading.wanted is None else reading.wanted
    if reading.state in (State.ABSENT, State.MOOT):
        return judge_absent(knob, reading, show(desired), facts)
    if reading.state is State.UNREADABLE:
        fix = AS_ROOT if reading.errno in DENIED else reading.fix
        return Judgement(Outcome.UNREADABLE, None, show(desired), reading.reason, fix, changeable=False)
    judged = knob.judge(knob, desired, reading, facts) if knob.judge else judge_value(knob, desired, reading)
    return judge_next(knob, reading, judged, facts) if facts.next_words else judged


def _finding(knob: Knob, reading: Reading, judged: Judgement) -> Finding:
    fix = judged.fix or (APPLY if judged.outcome is Outcome.DRIFTED else NOTHING)
    return Finding(
        knob.name,
        reading.instance,
        judged.outcome,
        judged.observed,
        judged.desired,
        judged.reason,
        fix,
        judged.harmful,
        judged.points,
        knob.severity,
        Match.EQUAL if judged.desired is None else knob.match,
        judged.next,
        judged.next_from,
    )


def _change(knob: Knob, setting: Setting, reading: Reading, judged: Judgement) -> Change:
    desired = setting.value if reading.wanted is None else reading.wanted
    value = desired if reading.write is None else reading.write
    if judged.desired is None:  # it is to go, though the host file may ask for it
        value = None
    return Change(
        knob.name,
        reading.instance,
        judged.observed,
        None if value is None else knob.codec.show(value),
        knob.lifetime,
        setting.reason,
        value,
    )


def waive(findings: Iterable[Finding], waivers: Sequence[Waiver], today: str, *, whole: str = "") -> list[Finding]:
    """The findings; those that a waiver covers become waived.

    `whole` begins the names of which these are all (`check.`): a waiver for another such name covers nothing.
    """
    judged = [_waive(finding, waivers, today) for finding in findings]
    others = [waiver._replace(instance=None) for waiver in waivers if whole and waiver.knob.startswith(whole)]
    return [*judged, *idle_waivers(others, judged)]


def idle_waivers(waivers: Iterable[Waiver], findings: Sequence[Finding]) -> Iterator[Finding]:
    """A finding for each waiver that covers nothing here: a mistyped target permits something else than was meant."""
    for waiver in waivers:
        mine = [finding for finding in findings if finding.knob == waiver.knob and waiver.covers(finding.instance)]
        if any(finding.outcome is not Outcome.UNSUPPORTED for finding in mine):
            continue
        name = str(Target(waiver.knob, waiver.instance or ""))
        why = f"this host has no {name} now"
        if not any(finding.knob == waiver.knob for finding in findings):
            why = f"{waiver.knob} is neither asked for nor looked at here"
        elif mine:
            why = mine[0].reason
        reason = f"{waiver.origin}: the waiver for {name} covers nothing: {why}"
        fix = to_decide(f"take {waiver.origin} out, or have it name a target that `tunectl verify -v` shows")
        yield Finding("waiver", name, Outcome.UNSUPPORTED, None, None, reason, fix, severity=Severity.HYGIENE)


def _waive(finding: Finding, waivers: Sequence[Waiver], today: str) -> Finding:
    if finding.outcome not in _MAY_BE_WAIVED:
        return finding
    for waiver in waivers:
        if waiver.knob != finding.knob or not waiver.covers(finding.instance):
            continue
        if waiver.until < today:
            expired = f"{finding.reason} (its waiver expired on {waiver.until})"
            finding = finding._replace(reason=expired, until=waiver.until)
            continue
        why = f"{waiver.reason} (until {waiver.until})"
        return finding._replace(outcome=Outcome.WAIVED, reason=why, fix=NOTHING, until=waiver.until)
    return finding
