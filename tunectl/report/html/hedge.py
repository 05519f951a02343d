"""What the page of `tunectl report` shows of `probe hedge`. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tunectl.report.hedge import FATES, HEADER, fates, figures, findings, hedge_conditions, title_of
from tunectl.report.html.charts import MAX_CURVES, load_plot
from tunectl.shapes import Hedge, HedgeCase


def hedge_view(result: Hedge) -> dict[str, Any]:
    """Of each stall a table, and a plot of percentiles by load, with second copies and without."""
    measured = [case for case in result.cases if case.n]
    unmeasured = [case for case in result.cases if not case.n]
    stalls = dict.fromkeys(case.stall for case in result.cases)
    return {
        "header": HEADER,
        "conditions": hedge_conditions(result),
        "findings": findings(result),
        "tables": [
            _table(title_of(stall, stalls), [case for case in result.cases if case.stall == stall]) for stall in stalls
        ],
        "fates": FATES,
        "hedges": [{"name": case.name, "figures": fates(case)} for case in measured if case.hedged],
        "warnings": [f"{case.name}: {text}" for case in measured for text in case.warnings],
        "void": [f"{case.name}: {case.reason}" for case in unmeasured if case.is_void],
        "reasons": [f"{case.name}: {case.reason}" for case in unmeasured if not case.is_void],
    }


def _table(title: str, cases: Sequence[HedgeCase]) -> dict[str, Any]:
    shown = [case for case in cases if case.n or case.is_void]
    delays = dict.fromkeys(case.delay for case in shown if case.n)
    return {
        "title": title,
        "rows": [
            {"load": case.load, "second": case.second, "figures": figures(case, shown) if case.n else None}
            for case in shown
        ],
        "plot": load_plot(shown),
        "left_out": max(len(delays) - MAX_CURVES // 2, 0),
    }
