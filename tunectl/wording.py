"""What stands and what should stand there, as the end of a sentence that begins with a target's name. Pure."""

from __future__ import annotations

from tunectl.model import Finding, Match, Outcome, Scalar

_BOUNDS = {Match.AT_MOST: "at most ", Match.AT_LEAST: "at least "}


def value_of(value: Scalar) -> str:
    """A value for a sentence: what is not there is `not set`."""
    return "not set" if value is None else "empty" if value == "" else str(value)


def seconds_of(seconds: float) -> str:
    """A time in a sentence: `2.0 s`, `0.01 s`."""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds:.2g} s"


def standing(finding: Finding, match: Match = Match.EQUAL) -> str:
    """`is 5, should be at most 2`; "" where the finding has neither value, or nothing that could have one.

    A wish for nothing (what an earlier host file asked for) is `should not be there`; a value that is compared with
    none is only told.
    """
    observed, desired = finding.observed, finding.desired
    unread = finding.outcome is Outcome.UNREADABLE and observed is None
    if finding.outcome is Outcome.UNSUPPORTED:  # the reason says what is not there
        return ""
    if observed is None and desired is None:
        return "could not be read" if unread else ""
    stands = "could not be read" if unread else f"is {value_of(observed)}"
    if desired is not None:
        return f"{stands}, should be {_BOUNDS.get(match, '')}{value_of(desired)}"
    return f"{stands}, should not be there" if finding.outcome is Outcome.DRIFTED and _is_set(finding) else stands


def _is_set(finding: Finding) -> bool:
    """Is it something that `apply` sets, and not what a check or a sensor saw?"""
    return not finding.knob.startswith(("check.", "thermal."))
