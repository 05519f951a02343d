"""`tunectl probe wake`: the matrix of mechanisms, wait methods and idle times, and what spinning gains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tunectl.report.figures import wake_conditions as conditions
from tunectl.report.text.cases import not_measured, void, warnings
from tunectl.report.text.charts import histogram
from tunectl.report.text.page import TextPage, columns, heading, notes, prose
from tunectl.shapes import Case, Speedup, Wake, typed
from tunectl.wording import nanoseconds

_IDLES = 5  # columns of a table that fits 80 cells
_GAINS = 3
# title, and the figure of a measured case
_FIGURES: Sequence[tuple[str, Callable[[Case], float | None]]] = (
    ("Median", lambda case: case.at("50")),
    ("P99", lambda case: case.at("99")),
    ("Longest", lambda case: case.max_ns),
)


def wake(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.probe.wake/1 body."""
    result = typed(body, Wake)
    cases = result.cases
    measured = [case for case in cases if case.n]
    prose(page, _summary(result), style="bold")
    prose(page, _legend(result), style="dim")
    for text in conditions(result):
        prose(page, text, style="dim")
    for title, figure in _FIGURES:
        _matrix(page, title, [case for case in cases if case.n or case.is_void], figure)
    _receiver(page, measured)
    _gains(page, result.speedups)
    if page.verbose:
        _histograms(page, measured)
    unmeasured = [case for case in cases if not case.n and not case.is_void]
    not_measured(page, ((f"{case.mechanism} {case.wait_method}", case.reason) for case in unmeasured))
    void(page, ((case.label, case.reason) for case in cases if case.is_void))
    notes(page, result.warnings, "Warnings")
    warnings(page, ((case.label, text) for case in measured for text in case.warnings))


def _summary(result: Wake) -> str:
    cpus = result.cases[0].cpus if result.cases else []
    sender, receiver = cpus if len(cpus) == 2 else ("-", "-")
    where = f" and back from {result.peer.address}" if result.peer else ""
    messages = f"{result.messages:,} messages a case"
    return f"from CPU {sender}{where} to CPU {receiver}, {messages}, {result.duration_s:.3g} s"


def _legend(result: Wake) -> str:
    what = "from just before the send to just after the receive"
    if result.peer:
        return f"{what}, there and back; by mechanism, wait method on both hosts, and idle time between messages"
    return f"{what}; by mechanism, wait method, and idle time between messages"


def _idles(cases: Iterable[Case | Speedup]) -> list[float]:
    return sorted({case.idle_ms for case in cases})


def _rows_of(cases: Iterable[Case | Speedup]) -> list[tuple[str, str]]:
    """(mechanism, wait method) in the document's order."""
    return list(dict.fromkeys((case.mechanism, case.wait_method) for case in cases))


def _chunks(values: Sequence[float], size: int) -> Iterator[Sequence[float]]:
    for at in range(0, len(values), size):
        yield values[at : at + size]


def _table(page: TextPage, cases: Sequence[Case | Speedup], size: int, texts: Iterable[str]) -> None:
    """A row for each mechanism and wait method, a column for each idle time; several tables if one is too wide."""
    keys = [(case.mechanism, case.wait_method, case.idle_ms) for case in cases]
    found = dict(zip(keys, texts, strict=True))
    for idles in _chunks(_idles(cases), size):
        rows = []
        last = ""
        for mechanism, method in _rows_of(cases):
            name = mechanism if mechanism != last else ""
            last = mechanism
            rows.append((name, method, *(found.get((mechanism, method, idle), "") for idle in idles)))
        header = ("", "", *(f"{idle:g} ms" for idle in idles))
        columns(page, rows, indent=2, right=range(2, len(header)), header=header)


def _matrix(page: TextPage, title: str, cases: Sequence[Case], figure: Callable[[Case], float | None]) -> None:
    if cases:
        heading(page, title)
        _table(page, cases, _IDLES, (nanoseconds(figure(case)) if case.n else "void" for case in cases))


def _receiver(page: TextPage, cases: Sequence[Case]) -> None:
    if cases:
        heading(page, "CPU use of the receiver")
        _table(page, cases, _IDLES, (f"{case.receiver_cpu_percent or 0:.3g} %" for case in cases))


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}x" if value < 1000 else f"{value:.0f}x"


def _gains(page: TextPage, speedups: Sequence[Speedup]) -> None:
    if not speedups:
        return
    heading(page, "Speed-up of spinning over sleeping: median / P99")
    over = sorted({f"{one.mechanism}: {one.over}" for one in speedups if one.over != "block"})
    beside = f" ({', '.join(over)})" if over else ""
    prose(page, f"over the blocking call{beside}", indent=2, style="dim")
    _table(
        page,
        speedups,
        _GAINS if page.width < 84 and len(_idles(speedups)) > _GAINS + 1 else _GAINS + 1,
        (f"{_times(one.percentiles.get('50'))} / {_times(one.percentiles.get('99'))}" for one in speedups),
    )


def _histograms(page: TextPage, cases: Iterable[Case]) -> None:
    for case in cases:
        heading(page, case.label)
        histogram(page, [case.histogram], 2, "messages", "all time waited")
