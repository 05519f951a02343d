"""What the page of `tunectl report` shows of `probe wake`, `feed`, `hedge` and `contention`. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tunectl.report.cases import shown
from tunectl.report.charts import LogScale
from tunectl.report.contention import contention_conditions, parts
from tunectl.report.feed import DUE, OF_STAGES, due_row, feed_conditions, stage_rows
from tunectl.report.figures import wake_conditions
from tunectl.report.hedge import FATES, HEADER, fates, figures, findings, hedge_conditions, title_of
from tunectl.report.html.charts import MAX_CURVES, load_plot, range_marks, series_plot, share_plot, stacked_bars, warmth
from tunectl.shapes import FEED_STAGES, Case, CaseTable, Feed, FeedCase, Hedge, HedgeCase, Wake
from tunectl.wording import nanoseconds, plain


def cases_view(result: CaseTable) -> dict[str, Any]:
    """The tables and plots of an experiment, the cases that have none, and why."""
    silent = [case for case in result.cases if case.reason and not case.is_void]
    named = [(case.mechanism if isinstance(case, Case) else case.name, case.reason) for case in silent]
    measured = [case for case in result.cases if case.n]
    view, conditions = _VIEWS[result.kind]
    return {
        "kind": result.kind,
        "void": [f"{case.label}: {case.reason}" for case in result.cases if case.is_void],
        "reasons": list(dict.fromkeys(f"{name}: {reason}" for name, reason in named)),
        "conditions": conditions(result),
        "warnings": [f"{case.name}: {text}" for case in measured for text in case.warnings],
        "is_result": bool(measured),
        **view(result, measured, shown(result)),
    }


def _wake(result: Wake, *_: Any) -> dict[str, Any]:
    """The matrix: a row for each wait method, a column for each idle time."""
    cases = result.cases
    idles = sorted({case.idle_ms for case in cases})
    medians = [median for case in cases if (median := case.at("50"))] or [1.0]
    axis = LogScale.over(min(medians), max([case.max_ns or 0 for case in cases] + [10.0]), 1, 99)
    rows: dict[tuple[str, str], dict[float, dict[str, Any]]] = {}
    for case in cases:
        median = case.at("50")
        shade = warmth(median, min(medians), max(medians)) if median else 0
        method = f"{case.waiting} ({case.wait_method})" if case.wait_method else case.waiting
        rows.setdefault((case.mechanism, method), {})[case.idle_ms] = {
            "n": case.n,
            "is_void": case.is_void,
            "p50": median,
            "p99": case.at("99"),
            "max_ns": case.max_ns,
            "busy": case.receiver_cpu_percent,
            "range": range_marks(case, axis),
            "shade": shade,
        }
    return {
        "header": ("mechanism", "waiting", *(f"idle {plain(idle)} ms" for idle in idles)),
        "rows": [
            {"mechanism": mechanism, "waiting": waiting, "cells": [of.get(idle) for idle in idles]}
            for (mechanism, waiting), of in rows.items()
        ],
        "low": nanoseconds(axis.low),
        "high": nanoseconds(axis.high),
    }


def _feed(_: Feed, measured: Sequence[FeedCase], shown: Sequence[FeedCase]) -> dict[str, Any]:
    """The figures of each case, all distributions in one plot, and of each case its stages and its course."""
    return {
        "header": ["case", "n", *(name for _, name in DUE)],
        "rows": [{"name": case.name, "figures": due_row(case)} for case in shown],
        "shares": share_plot(measured[:MAX_CURVES]),
        "left_out": len(measured[MAX_CURVES:]),
        "stages": FEED_STAGES,
        "of_stages": ("stage", *OF_STAGES),
        "measured": [
            {
                "name": case.name,
                "bars": stacked_bars(case),
                "stages": stage_rows(case),
                "series": series_plot(case),
                "warnings": case.warnings,
            }
            for case in measured
        ],
    }


def _hedge(result: Hedge, measured: Sequence[HedgeCase], shown: Sequence[HedgeCase]) -> dict[str, Any]:
    """Of each stall a table, and a plot of percentiles by load, with second copies and without."""
    stalls = dict.fromkeys(case.stall for case in result.cases)
    return {
        "header": ("load", "second copy", *HEADER),
        "findings": findings(result),
        "tables": [
            _of_stall(title_of(stall, stalls), [case for case in shown if case.stall == stall]) for stall in stalls
        ],
        "fates": ("case", *FATES),
        "hedges": [{"name": case.name, "figures": fates(case)} for case in measured if case.hedged],
    }


def _of_stall(title: str, cases: Sequence[HedgeCase]) -> dict[str, Any]:
    delays = dict.fromkeys(case.delay for case in cases if case.n)
    return {
        "title": title,
        "rows": [{"load": case.load, "second": case.second, "figures": figures(case, cases)} for case in cases],
        "plot": load_plot(cases),
        "left_out": max(len(delays) - MAX_CURVES // 2, 0),
    }


_VIEWS: Mapping[str, tuple[Callable[..., dict[str, Any]], Callable[[Any], list[str]]]] = {
    "wake": (_wake, wake_conditions),
    "feed": (_feed, feed_conditions),
    "hedge": (_hedge, hedge_conditions),
    "contention": (lambda result, *_: {"parts": parts(result)}, contention_conditions),
}
