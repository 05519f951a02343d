"""`tunectl probe feed`: what a message takes from when it is due to the book, and of which stages that is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tunectl.report.feed import DUE, OF_STAGES, due_figure, signed_ns, stage_rows
from tunectl.report.feed import feed_conditions as conditions
from tunectl.report.text.budget import judged
from tunectl.report.text.cases import not_measured, void, warnings
from tunectl.report.text.charts import histogram
from tunectl.report.text.page import TextPage, columns, heading, notes, prose
from tunectl.shapes import FEED_STAGES, Feed, FeedCase, typed
from tunectl.wording import plural

_WHOLE = 2  # so many cases have a table of their stages each; of more, one table has the medians
_STAGES = "median and P99 are of each stage by itself; the rest are stages of messages about as long: they add up"


def feed(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.probe.feed/1 body."""
    feed_measured(typed(body, Feed), page)


def feed_measured(result: Feed, page: TextPage) -> None:
    """All that a result has."""
    measured = [case for case in result.cases if case.n]
    prose(page, _summary(result), style="bold")
    prose(page, "a message from when it was due to the book; n: messages that were due", style="dim")
    for text in conditions(result):
        prose(page, text, style="dim")
    if result.budget.limits:
        judged(page, result.budget)
    _due(page, [case for case in result.cases if case.n or case.is_void])
    if len(measured) > _WHOLE:
        _medians(page, measured)
    for case in measured if len(measured) <= _WHOLE or page.verbose else ():
        _stages(page, case)
    if page.verbose:
        _histograms(page, measured)
    not_measured(page, ((case.name, case.reason) for case in result.cases if not case.n and not case.is_void))
    void(page, ((case.name, case.reason) for case in result.cases if case.is_void))
    notes(page, result.warnings, "Warnings")
    warnings(page, ((case.name, text) for case in measured for text in case.warnings))


def _summary(result: Feed) -> str:
    cpus = result.cases[0].cpus if result.cases else []
    sender, receiver = cpus if len(cpus) == 2 else ("-", "-")
    where = f" and back from {result.peer.address}" if result.peer else ""
    return f"from CPU {sender}{where} to CPU {receiver}, {plural(len(result.cases), 'case')}, {result.duration_s:.3g} s"


def _due(page: TextPage, cases: Sequence[FeedCase]) -> None:
    if not cases:
        return
    heading(page, "Due to book")
    rows = [(case.name, *_figures(case)) for case in cases]
    header = ("", "n", *(name for _, name in DUE), "CPU")
    columns(page, rows, indent=2, right=range(1, len(header)), header=header)


def _figures(case: FeedCase) -> list[str]:
    if not case.n:
        return ["void", *[""] * (len(DUE) + 1)]
    return [f"{case.n:,}", *(due_figure(case, key) for key, _ in DUE), f"{case.receiver_cpu_percent or 0:.3g} %"]


def _medians(page: TextPage, cases: Sequence[FeedCase]) -> None:
    heading(page, "Stages: median of each")
    rows = [(case.name, *(signed_ns(case.stage(stage, "50")) for stage in FEED_STAGES)) for case in cases]
    header = ("", *FEED_STAGES)
    columns(page, rows, indent=2, right=range(1, len(header)), header=header)


def _stages(page: TextPage, case: FeedCase) -> None:
    _title(page, f"Stages: {case.name}")
    prose(page, _STAGES, indent=2, style="dim")
    header = ("", *OF_STAGES)
    columns(page, stage_rows(case), indent=2, right=range(1, len(header)), header=header)


def _title(page: TextPage, text: str) -> None:
    """A heading with the name of a case, which may be long."""
    page.line()
    prose(page, text, style="bold")


def _histograms(page: TextPage, cases: Sequence[FeedCase]) -> None:
    for case in cases:
        _title(page, case.name)
        histogram(page, [case.histogram], 2, "messages", "all time waited")
