"""`tunectl probe hedge`: what requests take by load, with and without second copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tunectl.report.hedge import FATES, HEADER, fates, figures, findings, title_of
from tunectl.report.hedge import hedge_conditions as conditions
from tunectl.report.text.cases import not_measured, void, warnings
from tunectl.report.text.charts import histogram
from tunectl.report.text.page import TextPage, columns, heading, notes, prose
from tunectl.shapes import Hedge, HedgeCase, typed
from tunectl.wording import plural

_LEGEND = (
    "floor: no second copy answers sooner; unpaid: the budget had no token left; joint: how often both servers were "
    "slow at once, against chance"
)


def hedge(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.probe.hedge/1 body."""
    result = typed(body, Hedge)
    measured = [case for case in result.cases if case.n]
    prose(page, _summary(result), style="bold")
    prose(
        page,
        "a request from when it was due to its first answer; gain: P99.9, or P99 where there is no P99.9, against that "
        "without second copies",
        style="dim",
    )
    for text in conditions(result):
        prose(page, text, style="dim")
    notes(page, findings(result), "What a second copy gains")
    stalls = dict.fromkeys(case.stall for case in result.cases)
    for stall in stalls:
        _table(
            page,
            title_of(stall, stalls),
            [case for case in result.cases if case.stall == stall and (case.n or case.is_void)],
        )
    _delays(page, [case for case in measured if case.hedged])
    if page.verbose:
        _histograms(page, measured)
    not_measured(page, ((case.name, case.reason) for case in result.cases if not case.n and not case.is_void))
    void(page, ((case.name, case.reason) for case in result.cases if case.is_void))
    notes(page, result.warnings, "Warnings")
    warnings(page, ((case.name, text) for case in measured for text in case.warnings))


def _summary(result: Hedge) -> str:
    cpus = result.cases[0].cpus if result.cases else []
    client, *servers = cpus if len(cpus) == 3 else (None,)
    where = "simulated" if client is None else f"from CPU {client} to CPUs {' and '.join(map(str, servers))}"
    return f"{where}, {plural(len(result.cases), 'case')}, {result.duration_s:.3g} s"


def _table(page: TextPage, title: str, cases: Sequence[HedgeCase]) -> None:
    if not cases:
        return
    heading(page, title)
    rows = [(f"{case.load:g}", case.second, *(figures(case, cases) if case.n else _void())) for case in cases]
    columns(page, rows, indent=2, right=range(2, len(HEADER) + 2), header=("load", "second copy", *HEADER))


def _void() -> list[str]:
    return ["void", *[""] * (len(HEADER) - 1)]


def _delays(page: TextPage, cases: Sequence[HedgeCase]) -> None:
    """Of the cases with hedges: when they went out, and what became of them."""
    if not cases:
        return
    heading(page, "Second copies")
    has_stall = any(case.stall != "none" for case in cases)
    rows = [(f"{case.load:g}", case.second, *[case.stall] * has_stall, *fates(case)) for case in cases]
    header = ("load", "second copy", *["stall"] * has_stall, *FATES)
    columns(page, rows, indent=2, right=range(2 + has_stall, len(header)), header=header)
    prose(page, _LEGEND, indent=2, style="dim")


def _histograms(page: TextPage, cases: Sequence[HedgeCase]) -> None:
    for case in cases:
        page.line()
        prose(page, case.name, style="bold")
        histogram(page, [case.histogram], 2, "requests", "all time waited")
