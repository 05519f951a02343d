"""`tunectl probe wake`, `feed`, `hedge`, `contention`: how it ended, tables of cases, and what is said of void ones."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tunectl.report.cases import ended, shown
from tunectl.report.contention import contention_conditions, parts
from tunectl.report.feed import DUE, OF_STAGES, due_row, feed_conditions, stage_rows
from tunectl.report.figures import wake_conditions
from tunectl.report.hedge import FATES, HEADER, fates, figures, findings, hedge_conditions, title_of
from tunectl.report.text import screen
from tunectl.report.text.budget import judged
from tunectl.report.text.charts import histogram
from tunectl.report.text.page import TextPage, banner, columns, heading, notes, prose
from tunectl.shapes import FEED_STAGES, Case, CaseTable, Contention, Feed, Hedge, Peer, Speedup, Wake, typed
from tunectl.wording import nanoseconds, percent, plain, plural, seconds_of


def _opening(page: TextPage, result: CaseTable, where: str, legend: str, conditions: Iterable[str]) -> None:
    """How it ended; what was measured where, and under what conditions, or why there is nothing."""
    word, said, why = ended(result)
    banner(page, word, f"{said}: {where}, {seconds_of(result.duration_s)}")
    if why:
        prose(page, why, indent=2, style="magenta")
    for text in (legend, *conditions) if page.verbose or not why else ():
        prose(page, text, style="dim")


def _closing(
    page: TextPage, result: CaseTable, unit: str, left: str, silent: Callable[[Any], str] = lambda case: case.label
) -> None:
    """What limits the result in short, or with -v the distributions, the cases without figures, and all warnings.

    `silent` names those that were not measured; `left`: the tables that are for -v alone.
    """
    measured = [case for case in result.cases if case.n]
    unmeasured: dict[str, dict[str, None]] = {}  # each reason once, with the cases it is about
    for case in result.cases:
        if not case.n and not case.is_void:
            unmeasured.setdefault(case.reason, {})[silent(case)] = None
    void = [f"void: {case.label}: {case.reason.removeprefix('void: ')}" for case in result.cases if case.is_void]
    void = void if page.verbose else void[: bool(measured)]  # the first lines say why all are
    word, said, why = ended(result)
    page.last = word, said
    unmeasured.pop(why, None)  # the first lines say it
    missing = (f"not measured: {', '.join(names)}: {reason}" for reason, names in unmeasured.items())
    single = [f"{case.label}: {text}" for case in measured for text in case.warnings]
    for case in measured if page.verbose else ():
        _title(page, case.label)
        histogram(page, [case.histogram], 2, unit, "all time waited")
    screen.ending(page, [*void, *result.warnings, *missing])
    counted = f"{plural(len(single), 'warning')} of single cases" if single else ""
    if page.verbose:
        notes(page, single, "Warnings of single cases")
    elif more := ", ".join(filter(None, (left if measured else "", counted))):
        page.line()
        prose(page, f"{more}: -v", style="dim")


def _title(page: TextPage, text: str) -> None:
    """A heading with the name of a case, which may be long."""
    page.line()
    prose(page, text, style="bold")


def _figures(page: TextPage, title: str, header: Sequence[str], rows: Sequence[Sequence[str]], names: int = 1) -> None:
    """A table whose first `names` columns are words; nothing without rows."""
    if rows:
        heading(page, title)
        columns(page, rows, indent=2, right=range(names, len(header)), header=header)


def _from_to(result: CaseTable, peer: Peer | None) -> str:
    """From whose CPU to whose."""
    cpus = result.cases[0].cpus if result.cases else []
    sender, receiver = cpus if len(cpus) == 2 else ("-", "-")
    return f"from CPU {sender}{f' and back from {peer.address}' if peer else ''} to CPU {receiver}"


# ---- wake

_IDLES = 5  # columns of a table that fits 80 cells
_MOST = 2  # rows of the greatest figures, which stand for all beside that of the least
_FIGURES: Mapping[str, Callable[[Case], float | None]] = {
    "Median": lambda case: case.at("50"),
    "P99": lambda case: case.at("99"),
    "Longest": lambda case: case.max_ns,
    "CPU use of the receiver": lambda case: case.receiver_cpu_percent or 0.0,
}
_GAINS: Mapping[str, Callable[[Speedup], float | None]] = {
    "median": lambda speedup: speedup.percentiles.get("50"),
    "P99": lambda speedup: speedup.percentiles.get("99"),
}


def wake(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.probe.wake/1 body."""
    result = typed(body, Wake)
    trip, methods = (", there and back", "wait method on both hosts") if result.peer else ("", "wait method")
    legend = f"from before the send to after the receive{trip}; by mechanism, {methods}"
    where = f"{_from_to(result, result.peer)}, {result.messages:,} messages a case"
    conditions = wake_conditions(result) if page.verbose else ()
    _opening(page, result, where, f"{legend}, idle time", conditions)
    for title, figure in _FIGURES.items():
        if page.verbose or title in ("P99", "Longest"):
            write = percent if title.startswith("CPU") else nanoseconds
            _by_idle_time(page, title, shown(result), figure, write)
    others = {f"{speedup.mechanism}: {speedup.over}" for speedup in result.speedups if speedup.over != "block"}
    legend = "over the blocking call" + (f" ({', '.join(sorted(others))})" if others else "")
    for title, gain in _GAINS.items():
        if page.verbose or title == "P99":
            named = f"Spinning over sleeping, how many times shorter: {title}"
            _by_idle_time(page, named, result.speedups, gain, plain, legend)
    left = "conditions, medians, the receiver's CPU"
    _closing(page, result, "messages", left, lambda case: f"{case.mechanism} {case.wait_method}")


def _by_idle_time(
    page: TextPage,
    title: str,
    cases: Sequence[Any],
    figure: Callable[[Any], float | None],
    write: Callable[[float | None], str],
    legend: str = "",
) -> None:
    """A row for each mechanism and wait method in the document's order, a column for each idle time.

    Without -v the row that has the least, and those that have the most, stand for all. A table that is too wide becomes
    several.
    """
    if not cases:
        return
    heading(page, title)
    if legend:
        prose(page, legend, indent=2, style="dim")
    found: dict[tuple[str, str, float], str] = {}
    weights: dict[tuple[str, str], float] = {}
    for case in cases:
        method, value = (case.mechanism, case.wait_method), figure(case)
        found[*method, case.idle_ms] = "void" if getattr(case, "is_void", False) else write(value)
        weights[method] = max(weights.get(method, 0.0), value or 0.0)
    ranked = sorted(filter(weights.get, weights), key=weights.__getitem__) or [*weights]
    kept = weights if page.verbose or len(weights) <= 2 * _MOST else {*ranked[:1], *ranked[-_MOST:]}
    methods = [method for method in weights if method in kept]
    every = sorted({case.idle_ms for case in cases})
    for at in range(0, len(every), _IDLES):
        idles, rows, last = every[at : at + _IDLES], [], ""
        for mechanism, way in methods:
            name = mechanism if mechanism != last else ""
            last = mechanism
            rows.append((name, way, *(found.get((mechanism, way, idle), "") for idle in idles)))
        header = ("", "", *(f"{idle:g} ms" for idle in idles))
        columns(page, rows, indent=2, right=range(2, len(header)), header=header)
    if len(weights) > len(methods):
        ends = "the least and the most; " if len(ranked) > len(methods) else ""
        prose(page, f"{ends}{len(weights) - len(methods)} more: -v", indent=2, style="dim")


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
    _opening(page, result, _from_to(result, result.peer), _OF_MESSAGES, feed_conditions(result))
    if result.budget.limits:
        judged(page, result.budget)
    due = [(case.name, *due_row(case)) for case in shown(result)]
    _figures(page, "Due to book", ("", "n", *(name for _, name in DUE), "CPU"), due)
    if len(measured) > _WHOLE and page.verbose:
        medians = [(case.name, *(nanoseconds(case.stage(stage, "50")) for stage in FEED_STAGES)) for case in measured]
        _figures(page, "Stages: median of each", ("", *FEED_STAGES), medians)
    for case in measured if len(measured) <= _WHOLE or page.verbose else ():
        _title(page, f"Stages: {case.name}")
        prose(page, _STAGES, indent=2, style="dim")
        columns(page, stage_rows(case), indent=2, right=range(1, len(OF_STAGES) + 1), header=("", *OF_STAGES))
    _closing(page, result, "messages", "the time of each stage" if len(measured) > _WHOLE else "")


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
    cpus = result.cases[0].cpus if result.cases else []
    client, *servers = cpus if len(cpus) == 3 else (None,)
    where = "two queues" if client is None else f"from CPU {client} to CPUs {' and '.join(map(str, servers))}"
    _opening(page, result, where, _OF_REQUESTS, hedge_conditions(result) if page.verbose else ())
    notes(page, findings(result), "What a second copy gains")
    stalls = dict.fromkeys(case.stall for case in result.cases)
    for stall in stalls:
        cases = [case for case in shown(result) if case.stall == stall]
        rows = [(f"{case.load:g}", case.second, *figures(case, cases)) for case in cases]
        _figures(page, title_of(stall, stalls), ("load", "second copy", *HEADER), rows, names=2)
    # When second copies went, and what they became.
    hedged = [case for case in result.cases if case.n and case.hedged and page.verbose]
    has_stall = any(case.stall != "none" for case in hedged)
    sent = [(f"{case.load:g}", case.second, *[case.stall] * has_stall, *fates(case)) for case in hedged]
    header = ("load", "second copy", *["stall"] * has_stall, *FATES)
    _figures(page, "Second copies", header, sent, names=2 + has_stall)
    if hedged:
        prose(page, _LEGEND, indent=2, style="dim")
    _closing(page, result, "requests", "conditions, what became of second copies")


# ---- contention

_PARTS = 2  # tables without -v: the whole, and its first step
_OF_BUFFERS = (
    "a buffer from when it was due, and its steps; a case is whence buffers come, and how they are handed over"
)


def contention(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.probe.contention/1 body."""
    result = typed(body, Contention)
    _opening(page, result, _from_to(result, None), _OF_BUFFERS, contention_conditions(result))
    every = parts(result)
    drawn = every if page.verbose else every[:_PARTS]
    for part in drawn:
        _figures(page, part.title, part.header, part.rows)
    left = ", ".join(part.title[0].lower() + part.title[1:] for part in every[len(drawn) :])
    _closing(page, result, "buffers", left)
