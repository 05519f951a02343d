"""What the page of `tunectl report` shows of `probe feed`. Pure."""

from __future__ import annotations

from typing import Any

from tunectl.report.feed import DUE, OF_STAGES, due_figure, feed_conditions, stage_rows
from tunectl.report.html.charts import MAX_CURVES, series_plot, share_plot, stacked_bars
from tunectl.shapes import FEED_STAGES, Feed, FeedCase


def feed_view(result: Feed) -> dict[str, Any]:
    """The figures of each case, all distributions in one plot, and of each case its stages and its course."""
    measured = [case for case in result.cases if case.n]
    unmeasured = [case for case in result.cases if not case.n]
    return {
        "names": [name for _, name in DUE],
        "rows": [_due(case) for case in result.cases if case.n or case.is_void],
        "conditions": feed_conditions(result),
        "shares": share_plot(measured[:MAX_CURVES]),
        "left_out": len(measured[MAX_CURVES:]),
        "stages": FEED_STAGES,
        "of_stages": OF_STAGES,
        "cases": [
            {
                "name": case.name,
                "bars": stacked_bars(case),
                "stages": stage_rows(case),
                "series": series_plot(case),
                "warnings": case.warnings,
            }
            for case in measured
        ],
        "void": [f"{case.name}: {case.reason}" for case in unmeasured if case.is_void],
        "reasons": [f"{case.name}: {case.reason}" for case in unmeasured if not case.is_void],
    }


def _due(case: FeedCase) -> dict[str, Any]:
    return {
        "name": case.name,
        "n": case.n,
        "is_void": case.is_void,
        "figures": [due_figure(case, key) for key, _ in DUE],
        "busy": case.receiver_cpu_percent,
    }
