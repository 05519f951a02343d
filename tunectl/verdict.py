"""From findings to one verdict: what fails a gate, and what a whole report amounts to. Pure.

The rules are those of docs/interface.md, "Outcomes". A skipped or unknown item never improves a verdict,
and a knob that is absent never fails one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Literal

from tunectl.model import Finding, Outcome

Verdict = Literal["compliant", "drifted", "pending-reboot", "unreadable"]

# Outcomes of targets that were read and judged. Without one of them, all that a report knows is "could not find out",
# strict or not.
_DECIDED = frozenset({Outcome.COMPLIANT, Outcome.WAIVED, Outcome.PENDING_REBOOT})


def fails_gate(finding: Finding, strict: bool = False) -> bool:
    """Does this finding alone fail a gate: drifted, refused with a harmful effect, or (strict) unreadable?"""
    if finding.outcome is Outcome.REFUSED:
        return finding.harmful
    return finding.outcome is Outcome.DRIFTED or (strict and finding.outcome is Outcome.UNREADABLE)


def _next_boot_unknown(finding: Finding) -> bool:
    """Is it a boot argument of which nobody can say whether the next boot has it? That is never compliant."""
    return finding.outcome is Outcome.UNREADABLE and finding.points is not None


def verdict_of(findings: Iterable[Finding], strict: bool = False) -> Verdict:
    """The verdict of all findings together; `strict` lets a single unreadable one decide it."""
    judged = tuple(findings)
    if any(fails_gate(finding) for finding in judged):
        return "drifted"
    outcomes = {finding.outcome for finding in judged}
    if Outcome.UNREADABLE in outcomes and (strict or outcomes.isdisjoint(_DECIDED)):
        return "unreadable"
    if any(map(_next_boot_unknown, judged)):
        return "unreadable"
    return "pending-reboot" if Outcome.PENDING_REBOOT in outcomes else "compliant"


# ---- may a reader of a document repeat its GO?

# The verdicts beside which GO can stand. `check` is "unreadable" where only the engine's own threads were to be judged.
_SECTIONS = {
    "verify": ("its settings", ("compliant",)),
    "check": ("its checks", ("compliant", "unreadable")),
}
_FOUND_IN = (*_SECTIONS, "thermal")


def doubt_of_go(document: Mapping[str, Any]) -> str:
    """Why the GO of a tunectl.preflight/1 document cannot be repeated, after "it says GO, and"; "" where it can.

    Only where nothing else in the document contradicts it. Earlier versions said GO with less, and a document may have
    been edited or put together from two.
    The document's types were checked when it was read. When it was made is for the reader to judge.
    """
    return next(chain(_probe(document.get("probe")), _reasons(document), _sections(document), _findings(document)), "")


def _probe(probe: Mapping[str, Any] | None) -> Iterator[str]:
    """Did it run to its end, and keep within limits that exist?"""
    if not probe:
        yield "measured nothing"
        return
    budget = probe.get("budget") or {}
    verdict, reason, short = (budget.get(key) or "" for key in ("verdict", "reason", "not_judged"))
    if probe.get("interrupted"):
        yield "its probe was interrupted"
    for text in budget.get("broken") or ():
        yield f"its probe broke a limit: {text}"
    if verdict == "broken":
        yield "its probe broke a limit"
    if all(limit is None for limit in (budget.get("limits") or {}).values()):
        yield "judged nothing: its probe was held to no limit"
    if short:
        yield f"its probe was not judged by a limit: {short[0]}"
    if verdict != "within":
        yield f"its probe was not judged: {reason or 'no reason is given'}"


def _reasons(document: Mapping[str, Any]) -> Iterator[str]:
    for reason in document.get("reasons") or ():
        yield f"gives a reason against it: {reason}"


def _sections(document: Mapping[str, Any]) -> Iterator[str]:
    for name, (what, allowed) in _SECTIONS.items():
        section = document.get(name) or {}
        if not section.get("findings"):
            yield f"judged none of {what}: {name} is empty"
        elif section.get("verdict") not in allowed:
            yield f"its {name} says {section.get('verdict') or 'nothing'}"


def _findings(document: Mapping[str, Any]) -> Iterator[str]:
    for one in chain.from_iterable((document.get(name) or {}).get("findings") or () for name in _FOUND_IN):
        outcome = one.get("outcome")
        is_harmful = outcome == Outcome.REFUSED and one.get("harmful", True)
        if is_harmful or outcome in (Outcome.DRIFTED, Outcome.PENDING_REBOOT):
            yield f"{one.get('target')} in it is {outcome}"
