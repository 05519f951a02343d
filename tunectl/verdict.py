"""From findings to one verdict: what fails a gate, and what a whole report amounts to. Pure.

The rules are those of docs/interface.md, "Outcomes". A skipped or unknown item never improves a verdict,
and a knob that is absent never fails one.
"""

from collections.abc import Container, Iterable
from typing import Literal

from tunectl.model import NEXT_BOOT, Finding, Outcome
from tunectl.shapes import JudgedTarget

Verdict = Literal["compliant", "drifted", "pending-reboot", "unreadable"]
SECTIONS = ("verify", "check", "thermal")  # of a preflight, with findings of their own

# Outcomes of targets that were read and judged. Without one of them, all that a report knows is "could not find out",
# strict or not.
_DECIDED = frozenset({Outcome.COMPLIANT, Outcome.WAIVED, Outcome.PENDING_REBOOT})


def fails_gate(finding: Finding | JudgedTarget, strict: bool = False) -> bool:
    """Does this finding alone fail a gate: drifted, refused with a harmful effect, or (strict) unreadable?"""
    if finding.outcome is Outcome.REFUSED:
        return finding.harmful
    return finding.outcome is Outcome.DRIFTED or (strict and finding.outcome is Outcome.UNREADABLE)


def verdict_of(findings: Iterable[Finding], strict: bool = False) -> Verdict:
    """The verdict of all findings together; `strict` lets a single unreadable one decide it."""
    judged = tuple(findings)
    if any(fails_gate(finding) for finding in judged):
        return "drifted"
    outcomes = {finding.outcome for finding in judged}
    if Outcome.UNREADABLE in outcomes and (strict or outcomes.isdisjoint(_DECIDED)):
        return "unreadable"
    # A boot argument of which nobody can say whether this boot has it is never compliant.
    if any(finding.outcome is Outcome.UNREADABLE and finding.knob.startswith("boot.") for finding in judged):
        return "unreadable"
    return "pending-reboot" if Outcome.PENDING_REBOOT in outcomes else "compliant"


CLOCK = "check.clock_sync"
# They look at the engine, which has to stand still while the probe measures: what they could not find out now is no
# part of this proof.
_OF_THE_ENGINE = "check.trading_"


def is_proof(knob: str, spared: Container[str]) -> bool:
    """Does GO rest on a finding about this knob, so that nothing is proved where it is unreadable?

    It does on settings and checks. It does not on what is left unread in order not to interrupt an isolated CPU
    (`spared`), for which the clock that the probe measures there stands in; on the engine's own threads; on sensors;
    on what the next boot will have; on who can vouch for the time of day.
    """
    if knob in (NEXT_BOOT, CLOCK) or knob.startswith("thermal."):
        return False
    return not knob.startswith(_OF_THE_ENGINE) and knob not in spared
