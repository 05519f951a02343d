"""`tunectl probe wake`, `feed`, `hedge`, `contention`: tables of cases, and what is said of those that are void."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tunectl.report.contention import contention_conditions, parts
from tunectl.report.feed import DUE, OF_STAGES, due_row, feed_conditions, stage_rows
from tunectl.report.figures import wake_conditions
from tunectl.report.hedge import FATES, HEADER, fates, figures, findings, hedge_conditions, title_of
from tunectl.report.text.budget import judged
from tunectl.report.text.charts import histogram
from tunectl.report.text.page import TextPage, columns, heading, notes, prose
from tunectl.shapes import FEED_STAGES, Case, CaseTable, Contention, Feed, Hedge, Peer, Speedup, Wake, typed
from tunectl.wording import nanoseconds, percent, plain, plural, seconds_of

MAX_WARNINGS = 12  # of single cases; JSON has them all


def _opening(page: TextPage, result: CaseTable, where: str, legend: str, conditions: Iterable[str]) -> None:
    """What was measured where, and under what conditions."""
    prose(page, f"{where}, {seconds_of(result.duration_s)}", style="bold")
    for text in (legend, *conditions):
        prose(page, text, style="dim")


def _closing(
    page: TextPage, result: CaseTable, unit: str, left: str, silent: Callable[[Any], str] = lambda case: case.label
) -> None:
    """The distributions, the cases without figures (`silent` names those not measured), and all warnings.

    `left`: the tables that are for -v alone, as what is said of single cases is.
    """
    measured = [case for case in result.cases if case.n]
    for case in measured if page.verbose else ():
        _title(page, case.label)
        histogram(page, [case.histogram], 2, unit, "all time waited")
    unmeasured: dict[str, dict[str, None]] = {}  # each reason once, with the cases it is about
    for case in result.cases:
        if not case.n and not case.is_void:
            unmeasured.setdefault(case.reason, {})[silent(case)] = None
    notes(page, (f"{', '.join(names)}: {reason}" for reason, names in unmeasured.items()), "Not measured")
    void = [f"{case.label}: {case.reason.removeprefix('void: ')}" for case in result.cases if case.is_void]
    notes(page, _first(void, MAX_WARNINGS if measured or page.verbose else 1), "Void: measured, and no result")
    notes(page, result.warnings, "Warnings")
    single = [f"{case.label}: {text}" for case in measured for text in case.warnings]
    if page.verbose:
        notes(page, _first(single), "Warnings of single cases")
    counted = f"{plural(len(single), 'warning')} of single cases" if single else ""
    if more := ", ".join(filter(None, (left if measured else "", counted))) if not page.verbose else "":
        page.line()
        prose(page, f"{more}: -v", style="dim")


def _first(texts: list[str], most: int = MAX_WARNINGS) -> list[str]:
    more = [f"and {len(texts) - most} more; --format json has them all"] if len(texts) > most else []
    return texts[:most] + more


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
_GAINS = 3


def wake(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.probe.wake/1 body."""
    result = typed(body, Wake)
    trip, methods = (", there and back", "wait method on both hosts,") if result.peer else ("", "wait method,")
    legend = f"from just before the send to just after the receive{trip}; by mechanism, {methods}"
    where = f"{_from_to(result, result.peer)}, {result.messages:,} messages a case"
    conditions = wake_conditions(result) if page.verbose else ()
    _opening(page, result, where, f"{legend} and idle time between messages", conditions)
    measured = [case for case in result.cases if case.n]
    shown = [case for case in result.cases if case.n or (case.is_void and measured)]
    figures: Sequence[tuple[str, Callable[[Case], float | None]]] = (
        ("Median", lambda case: case.at("50")),
        ("P99", lambda case: case.at("99")),
        ("Longest", lambda case: case.max_ns),
    )
    for title, figure in figures if page.verbose else figures[1:]:
        texts = [nanoseconds(figure(case)) if case.n else "void" for case in shown]
        _by_idle_time(page, title, shown, _IDLES, texts)
    if page.verbose:
        use = [percent(case.receiver_cpu_percent or 0) for case in measured]
        _by_idle_time(page, "CPU use of the receiver", measured, _IDLES, use)
    _gains(page, result.speedups)
    left = "conditions, medians, the receiver's CPU"
    _closing(page, result, "messages", left, lambda case: f"{case.mechanism} {case.wait_method}")


def _gains(page: TextPage, speedups: Sequence[Speedup]) -> None:
    over = ", ".join(
        sorted({f"{speedup.mechanism}: {speedup.over}" for speedup in speedups if speedup.over != "block"})
    )
    legend = "over the blocking call" + (f" ({over})" if over else "")
    is_narrow = page.width < 84 and len({speedup.idle_ms for speedup in speedups}) > _GAINS + 1
    texts = [" / ".join(plain(speedup.percentiles.get(name)) for name in ("50", "99")) for speedup in speedups]
    size = _GAINS if is_narrow else _GAINS + 1
    _by_idle_time(page, "Spinning over sleeping, how many times shorter: median / P99", speedups, size, texts, legend)


def _by_idle_time(
    page: TextPage, title: str, cases: Sequence[Case | Speedup], size: int, texts: Sequence[str], legend: str = ""
) -> None:
    """A row for each mechanism and wait method in the document's order, a column for each idle time.

    `texts` has the text of each case; a table that is too wide becomes several, of `size` idle times.
    """
    if not cases:
        return
    heading(page, title)
    if legend:
        prose(page, legend, indent=2, style="dim")
    found = {(case.mechanism, case.wait_method, case.idle_ms): text for case, text in zip(cases, texts, strict=True)}
    methods = dict.fromkeys((case.mechanism, case.wait_method) for case in cases)
    every = sorted({case.idle_ms for case in cases})
    for at in range(0, len(every), size):
        idles, rows, last = every[at : at + size], [], ""
        for mechanism, method in methods:
            name = mechanism if mechanism != last else ""
            last = mechanism
            rows.append((name, method, *(found.get((mechanism, method, idle), "") for idle in idles)))
        header = ("", "", *(f"{idle:g} ms" for idle in idles))
        columns(page, rows, indent=2, right=range(2, len(header)), header=header)


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
    due = [(case.name, *due_row(case)) for case in result.cases if case.n or case.is_void]
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
    where = "simulated" if client is None else f"from CPU {client} to CPUs {' and '.join(map(str, servers))}"
    where += f", {plural(len(result.cases), 'case')}"
    _opening(page, result, where, _OF_REQUESTS, hedge_conditions(result) if page.verbose else ())
    notes(page, findings(result), "What a second copy gains")
    stalls = dict.fromkeys(case.stall for case in result.cases)
    for stall in stalls:
        cases = [case for case in result.cases if case.stall == stall and (case.n or case.is_void)]
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

_PARTS = 3  # tables without -v: the whole, and its first steps
_OF_BUFFERS = (
    "a buffer from when it was due, and its steps; a case is whence buffers come, and how they are handed over"
)


def contention(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.probe.contention/1 body."""
    result = typed(body, Contention)
    where = f"{_from_to(result, None)}, {plural(len(result.cases), 'case')}"
    _opening(page, result, where, _OF_BUFFERS, contention_conditions(result))
    every = parts(result)
    shown = every if page.verbose else every[:_PARTS]
    for part in shown:
        _figures(page, part.title, part.header, part.rows)
    left = ", ".join(part.title[0].lower() + part.title[1:] for part in every[len(shown) :])
    _closing(page, result, "buffers", left)
