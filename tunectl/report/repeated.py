"""May a reader of a preflight's document repeat its GO? Only where nothing else in the document contradicts it. Pure.

What GO needs is in docs/interface.md, "GO means measured and judged". Earlier versions said GO with less, and a
document may have been edited or put together from two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from tunectl.model import Outcome

# The verdicts beside which GO can stand. `check` is "unreadable" where only the engine's own threads were to be judged.
_SECTIONS = {
    "verify": ("its settings", ("compliant",)),
    "check": ("its checks", ("compliant", "unreadable")),
}
_FOUND_IN = (*_SECTIONS, "thermal")


def doubt_of_go(document: Mapping[str, Any]) -> str:
    """Why the GO of a tunectl.preflight/1 document cannot be repeated, after "it says GO, and"; "" where it can.

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
