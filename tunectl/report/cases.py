"""How an experiment ended, in words: it has no verdict of its own, only cases that are results or are not. Pure."""

from typing import Any, NamedTuple

from tunectl.shapes import CaseTable, Feed, Hedge
from tunectl.wording import plural

_OF_BUDGET = {"within": "within", "broken": "over", "not-judged": "not judged"}


class Ended(NamedTuple):
    """The word of a page's headline, what it rests on, and where no case is a result why, and what would help."""

    word: str
    said: str
    why: str


def ended(result: CaseTable) -> Ended:
    """`measured`, "36 cases, 2 void"; a feed that has a budget is judged by it."""
    cases, results = result.cases, sum(case.n > 0 for case in result.cases)
    void = sum(case.is_void for case in cases)
    left = [f"{void:,} void"] if void else []
    left += [f"{silent:,} not measured"] if (silent := len(cases) - results - void) else []
    said = ", ".join([plural(len(cases), "case"), *left])
    if not results:
        first = next((case.reason.removeprefix("void: ") for case in cases if case.is_void), "")
        return Ended("no result", said, result.no_result or first)
    if isinstance(result, Feed) and result.budget.limits:
        return Ended(_OF_BUDGET[result.budget.verdict], said, "")
    return Ended("simulated" if isinstance(result, Hedge) and result.simulated else "measured", said, "")


def shown(result: CaseTable) -> list[Any]:
    """The cases that a table has: results, and void ones beside them. Of void ones alone nothing is to be seen."""
    is_result = any(case.n for case in result.cases)
    return [case for case in result.cases if case.n or (case.is_void and is_result)]
