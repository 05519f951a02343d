"""`tunectl probe wake`, `feed`, `hedge`, `contention`: tables of cases, and what is said of those that are void."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tunectl.report.contention import contention_conditions, parts
from tunectl.report.feed import DUE, OF_STAGES, due_row, feed_conditions, signed_ns, stage_rows
from tunectl.report.figures import case_label, wake_conditions
from tunectl.report.hedge import FATES, HEADER, fates, figures, findings, hedge_conditions, title_of
from tunectl.report.text.budget import judged
from tunectl.report.text.charts import histogram
from tunectl.report.text.page import TextPage, columns, heading, notes, prose
from tunectl.shapes import (
    FEED_STAGES,
    Case,
    CaseTable,
    Contention,
    Feed,
    FeedCase,
    Hedge,
    HedgeCase,
    Peer,
    Speedup,
    Wake,
    typed,
)
from tunectl.wording import nanoseconds, plural

MAX_WARNINGS = 12  # of single cases; JSON has them all
Said = Iterable[tuple[str, str]]  # the name of a case, and what is said of it


def _opening(page: TextPage, result: CaseTable, where: str, legend: str, conditions: Iterable[str]) -> None:
    """What was measured where, and under what conditions."""
    prose(page, f"{where}, {result.duration_s:.3g} s", style="bold")
    for text in (legend, *conditions):
        prose(page, text, style="dim")


def _closing(page: TextPage, result: CaseTable, unit: str, silent: Callable[[Any], str] = case_label) -> None:
    """The distributions, the cases without figures (`silent` names those not measured), and all warnings."""
    measured = [case for case in result.cases if case.n]
    for case in measured if page.verbose else ():
        _title(page, case_label(case))
        histogram(page, [case.histogram], 2, unit, "all time waited")
    _not_measured(page, ((silent(case), case.reason) for case in result.cases if not case.n and not case.is_void))
    _void(page, ((case_label(case), case.reason) for case in result.cases if case.is_void))
    notes(page, result.warnings, "Warnings")
    _warnings(page, ((case_label(case), text) for case in measured for text in case.warnings))


def _title(page: TextPage, text: str) -> None:
    """A heading with the name of a case, which may be long."""
    page.line()
    prose(page, text, style="bold")


def _from_to(result: CaseTable, peer: Peer | None) -> str:
    """From whose CPU to whose."""
    cpus = result.cases[0].cpus if result.cases else []
    sender, receiver = cpus if len(cpus) == 2 else ("-", "-")
    return f"from CPU {sender}{f' and back from {peer.address}' if peer else ''} to CPU {receiver}"


def _not_measured(page: TextPage, said: Said) -> None:
    """Each reason once, with the cases it is about."""
    by_reason: dict[str, dict[str, None]] = {}
    for name, reason in said:
        by_reason.setdefault(reason, {})[name] = None
    notes(page, (f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()), "Not measured")


def _void(page: TextPage, said: Said) -> None:
    """What was measured, and is no result."""
    texts = [f"{name}: {reason.removeprefix('void: ')}" for name, reason in said]
    notes(page, _first(texts), "Void: measured, and no result")


def _warnings(page: TextPage, said: Said) -> None:
    """Of single cases."""
    notes(page, _first([f"{name}: {text}" for name, text in said]), "Warnings of single cases")


def _first(texts: list[str]) -> list[str]:
    more = [f"and {len(texts) - MAX_WARNINGS} more; --format json has them all"] if len(texts) > MAX_WARNINGS else []
    return texts[:MAX_WARNINGS] + more


# ---- wake

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
    measured = [case for case in result.cases if case.n]
    where = f"{_from_to(result, result.peer)}, {result.messages:,} messages a case"
    _opening(page, result, where, _legend(result), wake_conditions(result))
    for title, figure in _FIGURES:
        _matrix(page, title, [case for case in result.cases if case.n or case.is_void], figure)
    _receiver(page, measured)
    _gains(page, result.speedups)
    _closing(page, result, "messages", lambda case: f"{case.mechanism} {case.wait_method}")


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
    over = sorted({f"{speedup.mechanism}: {speedup.over}" for speedup in speedups if speedup.over != "block"})
    beside = f" ({', '.join(over)})" if over else ""
    prose(page, f"over the blocking call{beside}", indent=2, style="dim")
    _table(
        page,
        speedups,
        _GAINS if page.width < 84 and len(_idles(speedups)) > _GAINS + 1 else _GAINS + 1,
        (f"{_times(speedup.percentiles.get('50'))} / {_times(speedup.percentiles.get('99'))}" for speedup in speedups),
    )


# ---- feed

_OF_MESSAGES = "a message from when it was due to the book; n: messages that were due"
_WHOLE = 2  # so many cases have a table of their stages each; of more, one table has the medians
_STAGES = "median and P99 are of each stage by itself; the rest are stages of messages about as long: they add up"


def feed(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.probe.feed/1 body."""
    feed_measured(typed(body, Feed), page)


def feed_measured(result: Feed, page: TextPage) -> None:
    """All that a result has."""
    measured = [case for case in result.cases if case.n]
    where = f"{_from_to(result, result.peer)}, {plural(len(result.cases), 'case')}"
    _opening(page, result, where, _OF_MESSAGES, feed_conditions(result))
    if result.budget.limits:
        judged(page, result.budget)
    _due(page, [case for case in result.cases if case.n or case.is_void])
    if len(measured) > _WHOLE:
        _medians(page, measured)
    for case in measured if len(measured) <= _WHOLE or page.verbose else ():
        _stages(page, case)
    _closing(page, result, "messages")


def _due(page: TextPage, cases: Sequence[FeedCase]) -> None:
    if not cases:
        return
    heading(page, "Due to book")
    rows = [(case.name, *due_row(case)) for case in cases]
    header = ("", "n", *(name for _, name in DUE), "CPU")
    columns(page, rows, indent=2, right=range(1, len(header)), header=header)


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


# ---- hedge

_OF_REQUESTS = (
    "a request from when it was due to its first answer; gain: P99.9, or P99 where there is no P99.9, against that "
    "without second copies"
)
_LEGEND = (
    "floor: no second copy answers sooner; unpaid: the budget had no token left; joint: how often both servers were "
    "slow at once, against chance"
)


def hedge(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.probe.hedge/1 body."""
    result = typed(body, Hedge)
    _opening(page, result, _where(result), _OF_REQUESTS, hedge_conditions(result))
    notes(page, findings(result), "What a second copy gains")
    stalls = dict.fromkeys(case.stall for case in result.cases)
    for stall in stalls:
        _hedge_table(
            page,
            title_of(stall, stalls),
            [case for case in result.cases if case.stall == stall and (case.n or case.is_void)],
        )
    _delays(page, [case for case in result.cases if case.n and case.hedged])
    _closing(page, result, "requests")


def _where(result: Hedge) -> str:
    cpus = result.cases[0].cpus if result.cases else []
    client, *servers = cpus if len(cpus) == 3 else (None,)
    where = "simulated" if client is None else f"from CPU {client} to CPUs {' and '.join(map(str, servers))}"
    return f"{where}, {plural(len(result.cases), 'case')}"


def _hedge_table(page: TextPage, title: str, cases: Sequence[HedgeCase]) -> None:
    if not cases:
        return
    heading(page, title)
    rows = [(f"{case.load:g}", case.second, *figures(case, cases)) for case in cases]
    columns(page, rows, indent=2, right=range(2, len(HEADER) + 2), header=("load", "second copy", *HEADER))


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


# ---- contention

_OF_BUFFERS = (
    "a buffer from when it was due, and its steps; a case is whence buffers come, and how they are handed over"
)


def contention(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.probe.contention/1 body."""
    result = typed(body, Contention)
    where = f"{_from_to(result, None)}, {plural(len(result.cases), 'case')}"
    _opening(page, result, where, _OF_BUFFERS, contention_conditions(result))
    for part in parts(result):
        heading(page, part.title)
        columns(page, part.rows, indent=2, right=range(1, len(part.header)), header=part.header)
    _closing(page, result, "buffers")
