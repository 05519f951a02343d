"""What needs attention, in short: severity by severity, and what could not be found out, by its reason. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from tunectl.model import Finding, Outcome, Severity, Target, cost
from tunectl.report.escape import shown
from tunectl.report.findings import WORDS, Group, Row, finding_of, name_of, spread
from tunectl.wording import beside, plural, wanted

COSTS = {
    Severity.STALL: "a trading thread stands still for milliseconds",
    Severity.INTERRUPT: "something runs on an isolated CPU for microseconds",
    Severity.SLOWER: "each step takes longer",
    Severity.HYGIENE: "nothing now, but the other settings are not safe",
}
MAX_ROWS = 8  # different values shown for one group: the most frequent ones
_ATTENTION = (Outcome.DRIFTED, Outcome.REFUSED, Outcome.PENDING_REBOOT, Outcome.UNREADABLE)


class Line(NamedTuple):
    """Targets of one knob with the same value; `why` is "" where the values and the list of what to do say enough."""

    name: str
    observed: str
    desired: str
    why: str


class Urgent(NamedTuple):
    """Everything of one severity. None: documents of an earlier version, and the monitor's conditions."""

    severity: Severity | None
    groups: tuple[Group, ...]

    @property
    def targets(self) -> int:
        """How many there are."""
        return sum(len(group.instances) for group in self.groups)

    def lines(self, mended: Set[str] = frozenset()) -> list[Line]:
        """One for each value; a group's reason stands at its last, but of targets that `apply` alone has `mended`."""
        return [line for group in self.groups for line in _lines(group, mended)]


def needs_attention(group: Group) -> bool:
    """Is there something to do about it, or to find out?"""
    return group.harmful if group.outcome is Outcome.REFUSED else group.outcome in _ATTENTION


def urgent_of(found: Iterable[Group]) -> list[Urgent]:
    """What needs attention and is known, the worst severity first; within one the worst outcome first."""
    gathered = [group for group in found if needs_attention(group) and group.outcome is not Outcome.UNREADABLE]
    severities = sorted(dict.fromkeys(group.severity for group in gathered), key=cost)
    return [
        Urgent(severity, tuple(group for group in gathered if group.severity is severity)) for severity in severities
    ]


def unknown(found: Iterable[Group]) -> list[tuple[str, str]]:
    """(the targets' names, the reason) of what could not be found out."""
    gathered: dict[str, list[str]] = {}
    for group in (group for group in found if group.outcome is Outcome.UNREADABLE):
        gathered.setdefault(group.reason or "no reason is given", []).append(name_of(group.knob, group.instances, 6))
    return [(", ".join(names), reason) for reason, names in gathered.items()]


def kept(group: Group) -> tuple[Sequence[Row], int]:
    """A group's most frequent values, and how many others there are; many CPU sets in one are one value."""
    rows = group.rows
    if len(rows) <= MAX_ROWS:
        return rows, 0
    if within := spread([row.observed for row in rows], [row.desired for row in rows]):
        return (Row(group.instances, within, rows[0].desired),), 0
    return sorted(rows, key=lambda row: -len(row.instances))[:MAX_ROWS], len(rows) - MAX_ROWS


def outcome_of(group: Group) -> str:
    """`pending reboot`; `refused, harmful`."""
    return WORDS[group.outcome] + (", harmful" if group.outcome is Outcome.REFUSED else "")


def _lines(group: Group, mended: Set[str]) -> Iterator[Line]:
    rows, left_out = kept(group)
    word = "" if group.outcome is Outcome.DRIFTED else f" ({outcome_of(group)})"
    more = f"and {plural(left_out, 'more value')}; --format json lists each" if left_out else ""
    why = "; ".join(filter(None, (more, "" if _says_enough(group, mended) else rows[-1].reason or group.reason)))
    for row in rows:
        observed, desired = ("not set" if value is None else shown(value) for value in (row.observed, row.desired))
        desired = f"should be {wanted(desired, group.match)}"
        if row.observed == row.desired:  # `why` says what is wrong then
            observed, desired = "" if row.observed is None else observed, ""
        yield Line(name_of(group.knob, row.instances, 6) + word, observed, desired, why if row is rows[-1] else "")


def _says_enough(group: Group, mended: Set[str]) -> bool:
    """Is it a setting with its values, which `apply` or a reboot mends?"""
    has_values = any(row.observed != row.desired for row in group.rows)  # otherwise the reason says what is wrong
    targets = {str(Target(group.knob, instance)) for instance in group.instances}
    is_setting = not group.knob.startswith(("check.", "thermal.")) and group.outcome is not Outcome.REFUSED
    return has_values and is_setting and targets <= mended


def findings_in(section: Mapping[str, Any] | None) -> tuple[Finding, ...]:
    """A section's findings, typed. A body that was just made holds them typed already."""
    found = (section or {}).get("findings", ())
    return tuple(finding if isinstance(finding, Finding) else finding_of(finding) for finding in found)


def other_reasons(body: Mapping[str, Any]) -> list[str]:
    """The reasons of a preflight that are neither a finding's nor a limit's: those stand elsewhere on its page."""
    reasons = beside(body.get("reasons") or (), body.get("reasons_about") or ())
    return [str(reason) for reason, about in reasons if reason and not about]
