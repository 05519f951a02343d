"""`tunectl probe wake`: the matrix of mechanisms, wait methods and idle times, and what spinning gains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tunectl.report.figures import nanoseconds
from tunectl.report.text.charts import histogram
from tunectl.report.text.page import TextPage, columns, heading, notes, prose

Cell = Mapping[str, Any]
MAX_WARNINGS = 12  # of single cases; JSON has them all
_IDLES = 5  # columns of a table that fits 80 cells
_GAINS = 3
# title, and the figure of a measured case
_FIGURES: Sequence[tuple[str, Callable[[Cell], float | None]]] = (
    ("Median", lambda cell: cell["percentiles_ns"].get("50")),
    ("P99", lambda cell: cell["percentiles_ns"].get("99")),
    ("Longest", lambda cell: cell.get("max_ns")),
)


def wake(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.probe.wake/1 body."""
    cells = body["cells"]
    measured = [cell for cell in cells if cell["n"]]
    prose(page, _summary(body, cells), style="bold")
    prose(page, _legend(body), style="dim")
    for title, figure in _FIGURES:
        _matrix(page, title, measured, figure)
    _receiver(page, measured)
    _gains(page, body.get("speedups") or ())
    if page.verbose:
        _histograms(page, measured)
    _left_out(page, cells)
    notes(page, body.get("warnings", ()), "Warnings")
    _cell_warnings(page, measured)


def _summary(body: Mapping[str, Any], cells: Sequence[Cell]) -> str:
    sender, receiver = cells[0]["cpus"] if cells else ("-", "-")
    peer = body.get("peer")
    where = f" and back from {peer['address']}" if peer else ""
    messages = f"{body['messages']:,} messages a cell"
    return f"from CPU {sender}{where} to CPU {receiver}, {messages}, {body['duration_s']:.3g} s"


def _legend(body: Mapping[str, Any]) -> str:
    way = "from just before the send to just after the receive"
    if body.get("peer"):
        return f"{way}, there and back; by mechanism, way of waiting on both hosts, and idle time between messages"
    return f"{way}; by mechanism, way of waiting, and idle time between messages"


def _idles(cells: Iterable[Cell]) -> list[float]:
    return sorted({cell["idle_ms"] for cell in cells})


def _rows_of(cells: Iterable[Cell]) -> list[tuple[str, str]]:
    """(mechanism, way) in the document's order."""
    return list(dict.fromkeys((cell["mechanism"], cell["way"]) for cell in cells))


def _chunks(values: Sequence[float], size: int) -> Iterator[Sequence[float]]:
    for at in range(0, len(values), size):
        yield values[at : at + size]


def _table(page: TextPage, cells: Sequence[Cell], size: int, shown: Callable[[Cell], str]) -> None:
    """A row for each mechanism and wait method, a column for each idle time; several tables if one is too wide."""
    found = {(cell["mechanism"], cell["way"], cell["idle_ms"]): shown(cell) for cell in cells}
    for idles in _chunks(_idles(cells), size):
        rows = []
        last = ""
        for mechanism, way in _rows_of(cells):
            name = mechanism if mechanism != last else ""
            last = mechanism
            rows.append((name, way, *(found.get((mechanism, way, idle), "") for idle in idles)))
        header = ("", "", *(f"{idle:g} ms" for idle in idles))
        columns(page, rows, indent=2, right=range(2, len(header)), header=header)


def _matrix(page: TextPage, title: str, cells: Sequence[Cell], figure: Callable[[Cell], float | None]) -> None:
    if cells:
        heading(page, title)
        _table(page, cells, _IDLES, lambda cell: nanoseconds(figure(cell)))


def _receiver(page: TextPage, cells: Sequence[Cell]) -> None:
    if cells:
        heading(page, "CPU use of the receiver")
        _table(page, cells, _IDLES, lambda cell: f"{cell.get('receiver_cpu_percent') or 0:.3g} %")


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}x" if value < 1000 else f"{value:.0f}x"


def _gains(page: TextPage, speedups: Sequence[Cell]) -> None:
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


def _label(cell: Cell) -> str:
    return f"{cell['mechanism']} {cell['way']} {cell['idle_ms']:g} ms"


def _histograms(page: TextPage, cells: Iterable[Cell]) -> None:
    for cell in cells:
        heading(page, _label(cell))
        histogram(page, [cell], 2, "messages", "all time waited")


def _left_out(page: TextPage, cells: Iterable[Cell]) -> None:
    """Each reason once, with the cases it is about."""
    by_reason: dict[str, list[str]] = {}
    for cell in cells:
        if not cell["n"]:
            names = by_reason.setdefault(str(cell["reason"]), [])
            name = f"{cell['mechanism']} {cell['way']}"
            if name not in names:
                names.append(name)
    notes(page, (f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()), "Not measured")


def _cell_warnings(page: TextPage, cells: Iterable[Cell]) -> None:
    texts = [f"{_label(cell)}: {text}" for cell in cells for text in cell.get("warnings", ())]
    more = [f"and {len(texts) - MAX_WARNINGS} more; --format json has them all"] if len(texts) > MAX_WARNINGS else []
    notes(page, texts[:MAX_WARNINGS] + more, "Warnings of single cells")
