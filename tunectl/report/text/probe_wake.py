"""`tunectl probe wake`: the matrix of mechanisms, wait methods and idle times, and what spinning gains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tunectl.report.figures import wake_conditions as conditions
from tunectl.report.text.charts import histogram
from tunectl.report.text.page import TextPage, columns, heading, notes, prose
from tunectl.wording import nanoseconds

Case = Mapping[str, Any]
MAX_WARNINGS = 12  # of single cases; JSON has them all
_IDLES = 5  # columns of a table that fits 80 cells
_GAINS = 3
# title, and the figure of a measured case
_FIGURES: Sequence[tuple[str, Callable[[Case], float | None]]] = (
    ("Median", lambda case: case["percentiles_ns"].get("50")),
    ("P99", lambda case: case["percentiles_ns"].get("99")),
    ("Longest", lambda case: case.get("max_ns")),
)


def wake(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.probe.wake/1 body."""
    cases = body["cells"]
    measured = [case for case in cases if case["n"]]
    prose(page, _summary(body, cases), style="bold")
    prose(page, _legend(body), style="dim")
    for text in conditions(body):
        prose(page, text, style="dim")
    for title, figure in _FIGURES:
        _matrix(page, title, [case for case in cases if case["n"] or case.get("is_void")], figure)
    _receiver(page, measured)
    _gains(page, body.get("speedups") or ())
    if page.verbose:
        _histograms(page, measured)
    _left_out(page, [case for case in cases if not case.get("is_void")])
    _void(page, cases)
    notes(page, body.get("warnings", ()), "Warnings")
    _case_warnings(page, measured)


def _summary(body: Mapping[str, Any], cases: Sequence[Case]) -> str:
    sender, receiver = cases[0]["cpus"] if cases else ("-", "-")
    peer = body.get("peer")
    where = f" and back from {peer['address']}" if peer else ""
    messages = f"{body['messages']:,} messages a case"
    return f"from CPU {sender}{where} to CPU {receiver}, {messages}, {body['duration_s']:.3g} s"


def _legend(body: Mapping[str, Any]) -> str:
    what = "from just before the send to just after the receive"
    if body.get("peer"):
        return f"{what}, there and back; by mechanism, wait method on both hosts, and idle time between messages"
    return f"{what}; by mechanism, wait method, and idle time between messages"


def _idles(cases: Iterable[Case]) -> list[float]:
    return sorted({case["idle_ms"] for case in cases})


def _rows_of(cases: Iterable[Case]) -> list[tuple[str, str]]:
    """(mechanism, wait method) in the document's order."""
    return list(dict.fromkeys((case["mechanism"], case["way"]) for case in cases))


def _chunks(values: Sequence[float], size: int) -> Iterator[Sequence[float]]:
    for at in range(0, len(values), size):
        yield values[at : at + size]


def _table(page: TextPage, cases: Sequence[Case], size: int, shown: Callable[[Case], str]) -> None:
    """A row for each mechanism and wait method, a column for each idle time; several tables if one is too wide."""
    found = {(case["mechanism"], case["way"], case["idle_ms"]): shown(case) for case in cases}
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
        _table(page, cases, _IDLES, lambda case: nanoseconds(figure(case)) if case["n"] else "void")


def _receiver(page: TextPage, cases: Sequence[Case]) -> None:
    if cases:
        heading(page, "CPU use of the receiver")
        _table(page, cases, _IDLES, lambda case: f"{case.get('receiver_cpu_percent') or 0:.3g} %")


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}x" if value < 1000 else f"{value:.0f}x"


def _gains(page: TextPage, speedups: Sequence[Case]) -> None:
    if not speedups:
        return
    heading(page, "Speed-up of spinning over sleeping: median / P99")
    over = sorted({f"{one['mechanism']}: {one['over']}" for one in speedups if one["over"] != "block"})
    beside = f" ({', '.join(over)})" if over else ""
    prose(page, f"over the blocking call{beside}", indent=2, style="dim")
    _table(
        page,
        speedups,
        _GAINS if page.width < 84 and len(_idles(speedups)) > _GAINS + 1 else _GAINS + 1,
        lambda one: f"{_times(one['percentiles'].get('50'))} / {_times(one['percentiles'].get('99'))}",
    )


def _label(case: Case) -> str:
    return f"{case['mechanism']} {case['way']} {case['idle_ms']:g} ms"


def _histograms(page: TextPage, cases: Iterable[Case]) -> None:
    for case in cases:
        heading(page, _label(case))
        histogram(page, [case["histogram"]], 2, "messages", "all time waited")


def _left_out(page: TextPage, cases: Iterable[Case]) -> None:
    """Each reason once, with the cases it is about."""
    by_reason: dict[str, list[str]] = {}
    for case in cases:
        if not case["n"]:
            names = by_reason.setdefault(str(case["reason"]), [])
            name = f"{case['mechanism']} {case['way']}"
            if name not in names:
                names.append(name)
    notes(page, (f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()), "Not measured")


def _void(page: TextPage, cases: Iterable[Case]) -> None:
    """What was measured, and is no result."""
    texts = [f"{_label(case)}: {str(case['reason']).removeprefix('void: ')}" for case in cases if case.get("is_void")]
    notes(page, _first(texts), "Void: measured, and no result")


def _first(texts: list[str]) -> list[str]:
    more = [f"and {len(texts) - MAX_WARNINGS} more; --format json has them all"] if len(texts) > MAX_WARNINGS else []
    return texts[:MAX_WARNINGS] + more


def _case_warnings(page: TextPage, cases: Iterable[Case]) -> None:
    texts = [f"{_label(case)}: {text}" for case in cases for text in case.get("warnings", ())]
    notes(page, _first(texts), "Warnings of single cells")
