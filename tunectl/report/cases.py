"""How an experiment ended, in words: it has no verdict of its own, only cases that are results or are not. Pure."""

from typing import Any

from tunectl.shapes import CaseTable, Feed, Hedge
from tunectl.wording import plural


def ended(result: CaseTable) -> tuple[str, str, str]:
    """`measured`, "36 cases, 2 void", and where none is a result why, and what would help; by its budget, if it has."""
    cases, results = result.cases, sum(case.n > 0 and not case.is_void for case in result.cases)
    void = sum(case.is_void for case in cases)
    counted = ((void, "void"), (len(cases) - results - void, "not measured"))
    said = ", ".join([plural(len(cases), "case"), *(f"{count:,} {word}" for count, word in counted if count)])
    if not results:
        reasons = [case.reason.removeprefix("void: ") for case in cases if case.is_void >= bool(void)]
        return "no result", said, result.no_result or "".join(reasons[:1])
    if isinstance(result, Feed) and result.budget.limits:
        return {"broken": "over"}.get(result.budget.verdict, result.budget.verdict.replace("-", " ")), said, ""
    return "simulated" if isinstance(result, Hedge) and result.simulated else "measured", said, ""


def shown(result: CaseTable) -> list[Any]:
    """The cases that a table has: results, and void ones beside them. Of void ones alone nothing is to be seen."""
    is_result = any(case.n for case in result.cases)
    return [case for case in result.cases if case.n or (case.is_void and is_result)]
