"""Findings counted and grouped, so that 4,096 interrupts become a few lines. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tunectl.cpulist import format_cpulist, parse_shown
from tunectl.errors import UsageError
from tunectl.fix import of_text
from tunectl.model import (
    Finding,
    Match,
    NextBoot,
    Outcome,
    Proved,
    Scalar,
    Severity,
    cost,
    match_of,
    parse_target,
    severity_of,
)
from tunectl.report.escape import printable
from tunectl.wording import plural, standing

# The order on every page: what a person must act on comes first.
ORDER = (
    Outcome.DRIFTED,
    Outcome.REFUSED,
    Outcome.PENDING_REBOOT,
    Outcome.UNREADABLE,
    Outcome.COMPLIANT,
    Outcome.UNSUPPORTED,
    Outcome.WAIVED,
)
# What a person reads: one word for one state, on every page.
WORDS = {
    **{outcome: outcome.value.replace("-", " ") for outcome in Outcome},
    Outcome.UNSUPPORTED: "not on this host",
    Outcome.UNREADABLE: "unknown",
}
MAX_REASONS = 8  # for one knob and outcome; with more, all are grouped under the first
_NUMBERED = re.compile(r"(.*?)(0|[1-9][0-9]{0,8})", re.DOTALL)
# A number that stands alone: not part of a word, a list or a range.
_ALONE = re.compile(r"(?<![\w,.-])[0-9]+(?!\w|[-,.][0-9])")


class Row(NamedTuple):
    """Targets of one knob that show the same value and want the same."""

    instances: tuple[str, ...]
    observed: Scalar
    desired: Scalar
    reason: str = ""  # of one of them, where the group has more reasons than a page shows


class Group(NamedTuple):
    """Findings of one knob that a person would treat as one."""

    knob: str
    outcome: Outcome
    harmful: bool
    reason: str
    fix: str
    rows: tuple[Row, ...]
    points: Mapping[str, Scalar] | None
    severity: Severity | None = None
    match: Match = Match.EQUAL

    @property
    def instances(self) -> tuple[str, ...]:
        """Every target's instance, in the order found."""
        return tuple(instance for row in self.rows for instance in row.instances)

    def stands(self, row: Row) -> str:
        """`is 0-3, should be 0-1`: how the values of one of its rows stand."""
        values = row.observed, row.desired
        return standing(Finding(self.knob, "", self.outcome, *values, severity=self.severity, match=self.match))


def finding_body(finding: Finding) -> dict[str, Any]:
    """A finding as a document's body carries it; `harmful` only of a refusal, `points` only of a boot argument.

    The monitor's conditions have no `severity` of a row: their alerts have one of their own.
    """
    body: dict[str, Any] = {
        "knob": finding.knob,
        "target": finding.target,
        "outcome": finding.outcome.value,
        "observed": finding.observed,
        "desired": finding.desired,
        "reason": finding.reason,
        "fix": str(finding.fix),
    }
    if finding.severity is not None:
        body["severity"] = finding.severity.value
    if finding.outcome is Outcome.REFUSED:
        body["harmful"] = finding.harmful
    if finding.match is not Match.EQUAL:
        body["match"] = finding.match.value
    if finding.points is not None:
        body["points"] = dict(finding.points)
    if finding.next is not None:
        body["next"] = finding.next.value
        body["next_from"] = finding.next_from
        body["proved"] = finding.proved.value
    if finding.until:
        body["until"] = finding.until
    return body


def finding_of(body: Mapping[str, Any]) -> Finding:
    """The inverse of `finding_body`; the fix is its text alone."""
    known = {name: body[name] for name in Finding._fields if name in body}
    target = parse_target(body["target"], body["knob"])
    made = {
        "outcome": Outcome(body["outcome"]),
        "fix": of_text(body["fix"]),
        "severity": severity_of(body.get("severity")),
        "match": match_of(body.get("match")),
        "next": next((state for state in NextBoot if state.value == body.get("next")), None),
        "proved": next((state for state in Proved if state.value == body.get("proved")), Proved.DECLARED),
    }
    return Finding(**{**known, **target._asdict(), **made})


def counts(findings: Iterable[Finding]) -> dict[Outcome, int]:
    """How many findings there are of each outcome, zeros included, in the order of the enum."""
    return dict.fromkeys(Outcome, 0) | Counter(finding.outcome for finding in findings)


def brief(findings: Sequence[Finding]) -> str:
    """`3 drifted, 1 refused (harmless), 41 compliant`: the worst first, only outcomes that occur."""
    found = counts(findings)
    harmful = sum(finding.harmful for finding in findings if finding.outcome is Outcome.REFUSED)
    parts = []
    for outcome in ORDER:
        if outcome is Outcome.REFUSED:
            parts += [(harmful, "refused (harmful)"), (found[outcome] - harmful, "refused (harmless)")]
        else:
            parts.append((found[outcome], WORDS[outcome]))
    return ", ".join(f"{count:,} {word}" for count, word in parts if count) or "nothing was examined"


def summary(findings: Sequence[Finding]) -> str:
    """`43 drifted, 2 unreadable`; without any, how many are as they should be."""
    bad = counts(findings)
    words = [(bad[one], WORDS[one]) for one in (Outcome.DRIFTED, Outcome.PENDING_REBOOT)]
    harmful = sum(one.harmful for one in findings if one.outcome is Outcome.REFUSED)
    words += [(harmful, "refused (harmful)"), (bad[Outcome.UNREADABLE], WORDS[Outcome.UNREADABLE])]
    knobs = len({one.knob for one in findings if one.outcome is Outcome.COMPLIANT})
    good = f"{plural(bad[Outcome.COMPLIANT], 'target')} of {plural(knobs, 'knob')} as they should be"
    return ", ".join(f"{count:,} {word}" for count, word in words if count) or (good if knobs else "nothing to judge")


def compact(instances: Iterable[str], limit: int = 24) -> str:
    """`24,27,30-33`; `eth0-rx-{0-3}`; at most `limit` parts, then how many there are in all."""
    families: dict[tuple[str, str], list[str]] = {}
    for instance in dict.fromkeys(filter(None, instances)):
        numbered = _NUMBERED.fullmatch(instance)
        families.setdefault((numbered[1], "") if numbered else ("", instance), []).append(instance)
    parts: list[str] = []
    for (prefix, name), members in families.items():
        if name or len(members) == 1:
            parts.append(printable(members[0]))
            continue
        listed = format_cpulist(int(member.removeprefix(prefix)) for member in members)
        parts += [f"{printable(prefix)}{{{listed}}}"] if prefix else listed.split(",")
    if len(parts) <= limit:
        return ",".join(parts)
    return ",".join(parts[:limit]) + f",… ({sum(map(len, families.values())):,} in all)"


def name_of(knob: str, instances: Sequence[str], limit: int = 24) -> str:
    """`irq.affinity[24,27,30-33]`: the targets of one knob as one name."""
    inner = compact((instance for instance in instances if instance), limit)
    return f"{printable(knob)}[{inner}]" if inner else printable(knob)


def generalised(text: str, instance: str) -> str:
    """`text` with N in place of the instance, so that the same sentence about many targets becomes one."""
    if not instance or instance not in text:
        return text
    if instance.isascii() and instance.isdigit():
        return _ALONE.sub(lambda found: "N" if found[0] == instance else found[0], text)
    return text.replace(instance, "N") if len(instance) > 2 else text


def groups(findings: Iterable[Finding]) -> list[Group]:
    """The findings grouped by knob, outcome, reason and fix.

    The worst outcome comes first, of one outcome the worst severity, then the order found. Grouping costs most of a
    page, so that each groups its findings once and chooses among the groups.
    """
    classes: dict[tuple[str, Outcome, bool], dict[Any, list[Finding]]] = {}
    for finding in findings:
        said = generalised(finding.reason, finding.instance), generalised(str(finding.fix), finding.instance)
        points = tuple(finding.points.items()) if finding.points else None
        alike = classes.setdefault((finding.knob, finding.outcome, finding.harmful), {})
        alike.setdefault((*said, points), []).append(finding)
    return sorted((group for alike in classes.values() for group in _of_class(alike)), key=_rank)


def _rank(group: Group) -> tuple[int, bool, int]:
    costs = ORDER.index(group.outcome) < ORDER.index(Outcome.COMPLIANT)
    return ORDER.index(group.outcome), not group.harmful, cost(group.severity) if costs else 0


def _of_class(alike: Mapping[Any, list[Finding]]) -> list[Group]:
    """One group for each reason. With more than MAX_REASONS, one group with the first of them, and its rows' own."""
    if len(alike) <= MAX_REASONS:
        return [_group(members, said[0], said[1]) for said, members in alike.items()]
    members = [finding for each in alike.values() for finding in each]
    fixes = {said[1] for said in alike}
    fix = next(iter(fixes)) if len(fixes) == 1 else f"{members[0].fix} (one of {len(fixes):,}; --format json has each)"
    return [_group(members, _first_of(members), fix, mixed=True)._replace(points=None)]


def _first_of(members: Sequence[Finding]) -> str:
    """The first one's reason, and of how many it is the first."""
    count = len({generalised(finding.reason, finding.instance) for finding in members})
    several = f" (one of {count:,} different reasons; --format json has each)"
    return members[0].reason + (several if count > 1 else "")


def _group(members: Sequence[Finding], reason: str, fix: str, mixed: bool = False) -> Group:
    """`mixed`: the reason is not each member's, so that each row has one of its own."""
    first = members[0]
    if len(members) == 1:
        reason, fix = first.reason, str(first.fix)
    rows: dict[tuple[str, str], list[Finding]] = {}
    for finding in members:
        rows.setdefault((repr(finding.observed), repr(finding.desired)), []).append(finding)
    shown = [
        Row(tuple(each.instance for each in same), same[0].observed, same[0].desired, _first_of(same) if mixed else "")
        for same in rows.values()
    ]
    return Group(
        first.knob, first.outcome, first.harmful, reason, fix, tuple(shown), first.points, first.severity, first.match
    )


def spread(observed: Sequence[Scalar], desired: Sequence[Scalar]) -> str | None:
    """`256 CPU sets within 0-255`, where the desired CPU set is the same for all; None for anything else."""
    if len(set(desired)) != 1 or not all(isinstance(value, str) for value in (*observed, *desired)):
        return None
    try:
        *sets, _ = [parse_shown(str(value)) for value in (*observed, desired[0])]
    except UsageError:
        return None
    within = format_cpulist(set().union(*sets))
    return f"{len(set(observed)):,} CPU sets within {within}" if within.count(",") < MAX_REASONS else None
