"""Why hosts are not GO: by knob, kind of instance and cause, so that one cause on 52 hosts is one. Pure.

A reason is a sentence, with counters, numbers of interrupts and names of devices in it. What it is about stands in the
finding's fields: those are compared. Only a reason that no finding and no limit explains is compared as text, and then
without its numbers.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from tunectl.fix import of_text
from tunectl.model import Outcome, Scalar, cost, parse_target, severity_of
from tunectl.shapes import JudgedTarget, Preflight
from tunectl.verdict import fails_gate
from tunectl.wording import beside, broken_limits, sentence, standing

BROKEN = "broken"
_MOMENTS = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:Z|[+-][0-9]{2}:[0-9]{2})")
_NUMBERS = re.compile(r"[0-9]+(?:[-,.:][0-9]+)*")
_POINTS = ("next_boot", "this_boot", "kernel")
_NOT_NOW = (Outcome.PENDING_REBOOT, Outcome.UNREADABLE)
_OPEN = (Outcome.DRIFTED, Outcome.REFUSED, *_NOT_NOW)  # a document has a hundred findings, and few of these


class Cause(NamedTuple):
    """What hosts have in common. `knob` is "" for a reason that is known as text only; then `data` is that text."""

    knob: str
    instances: str  # what kind of: "" for the host's only one, N for a number, ethN for an interface
    outcome: str
    severity: str
    data: str  # what the finding says besides: a word observed, the point at which a boot argument fails, its fix
    own_words: bool = False  # a text that the host's document has, and not one of this tunectl's


class Told(NamedTuple):
    """A cause on one host: how many targets, one of its reasons, and what that finding has and should have."""

    cause: Cause
    targets: int
    text: str
    observed: Scalar = None
    desired: Scalar = None


def told_by(document: Preflight) -> tuple[tuple[Told, ...], tuple[str, ...]]:
    """The causes that a document's findings and broken limits show; the reasons that are neither's."""
    decisive = _decisive(document)
    broken = tuple(broken_limits(document.probe, document.loaded, document.feed))
    explained = {*(finding.knob for finding in decisive), *(one.what for one in broken)}
    reasons = beside(document.reasons, document.reasons_about)
    unexplained = tuple(reason for reason, about in reasons if about not in explained)
    found: dict[Cause, list[JudgedTarget]] = {}
    for one in decisive:
        found.setdefault(_cause(one), []).append(one)
    of_findings = [_told(cause, alike) for cause, alike in found.items()]
    limits: dict[Cause, list[str]] = {}
    for limit in broken:
        cause = Cause(limit.what, "", BROKEN, "", limit.limit or without_numbers(limit.sentence))
        limits.setdefault(cause, []).append(limit.reason)
    return (*of_findings, *(Told(cause, len(texts), texts[0]) for cause, texts in limits.items())), unexplained


def by_text(reasons: Iterable[str], *, own_words: bool = False) -> Iterator[Told]:
    """Each reason as a cause of its own; `own_words`: of the host's document."""
    for reason in reasons:
        yield Told(Cause("", "", "", "", without_numbers(reason), own_words), 1, reason)


def _decisive(document: Preflight) -> list[JudgedTarget]:
    """The findings that the document's reasons are about: what fails, or else what waits or is not known."""
    sections = (document.verify, document.check, document.thermal)
    findings = [finding for section in sections if section for finding in section.findings if finding.outcome in _OPEN]
    failing = [finding for finding in findings if fails_gate(finding)]
    spent = {finding.knob for finding in failing}
    told = set(document.reasons_about) - spent
    return failing + [finding for finding in findings if finding.outcome in _NOT_NOW and finding.knob in told]


def _told(cause: Cause, alike: Sequence[JudgedTarget]) -> Told:
    """What is said of them: the first one's sentence."""
    finding = alike[0]
    said = sentence(str(parse_target(finding.target, finding.knob)), standing(finding), finding.reason)
    return Told(cause, len(alike), said, finding.observed, finding.desired)


def _cause(finding: JudgedTarget) -> Cause:
    observed, points, lacks = finding.observed, finding.points, ""
    word = observed if isinstance(observed, str) and not _NUMBERS.search(observed) else ""
    if points:  # of a boot argument: at which of them it fails
        lacks = ", ".join(point for point in _POINTS if points.get(point) != points.get("asked")).replace("_", " ")
    return _cause_of(finding.knob, finding.target, finding.outcome, finding.severity, word, lacks, finding.fix)


# The same targets lack the same on host after host.
@lru_cache(1 << 13)
def _cause_of(knob: str, target: str, outcome: Outcome, severity: str, word: str, lacks: str, fix: str) -> Cause:
    known, instance = severity_of(severity), parse_target(target, knob).instance
    data = "; ".join(filter(None, (word, lacks and f"not in {lacks}", shape(str(of_text(fix))))))
    return Cause(knob, without_numbers(instance), outcome.value, known.value if known else "", data)


def without_numbers(text: str) -> str:
    """`N` in place of each number and each list of numbers, `TIME` in place of each moment."""
    return _NUMBERS.sub("N", _MOMENTS.sub("TIME", text))


@lru_cache(1024)
def shape(command: str) -> str:
    """A command without its numbers, and what it does to several things (`; `) once."""
    return "; ".join(dict.fromkeys(without_numbers(command).split("; ")))


def rank(cause: Cause) -> tuple[bool, int, bool]:
    """What was measured to be too long comes first, then the worst severity, then what is known as text only."""
    return cause.outcome != BROKEN, cost(severity_of(cause.severity)), not cause.knob
