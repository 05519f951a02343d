"""Do the figures of a document say what its own histogram and list say? Pure.

A file that somebody edited, or that was put together from two, is no result. A figure was made of the very gaps that
the histogram counts, so it lies within what the ends of the buckets allow. The ends are whole nanoseconds, rounded
down.
"""

from __future__ import annotations

from collections.abc import Iterator

from tunectl.probe.explain import ARRIVALS
from tunectl.probe.lengths import Lengths
from tunectl.shapes import AnyCase, Cpu, FeedCase, HedgeCase

_WHOLE_PERCENT = 100
_ROUNDED_NS = 2  # figures are rounded down, and so is the length of the run


def disagreement(cpu: Cpu) -> str:
    """The first figure of a CPU that its gaps contradict: key, what it says, what is possible; "" where none is.

    But for the percentiles of gaps, which each table of figures has.
    """
    return next(_disagreements(cpu), "")


def _disagreements(cpu: Cpu) -> Iterator[str]:
    if (listed := len(cpu.events)) + cpu.events_lost != cpu.interruptions:
        yield f"events: {listed:,} and {cpu.events_lost:,} lost are not the {cpu.interruptions:,} interruptions"
    least = Lengths((float(low), count) for low, _, count in cpu.histogram)
    most = Lengths((float(high + 1), count) for _, high, count in cpu.histogram)
    yield from _outside("max_ns", cpu.max_ns, least.longest, most.longest)
    yield from _outside("stolen_ns", cpu.stolen_ns, least.sums[0], most.sums[0])
    run_ns = cpu.duration_ns
    if not run_ns:
        return
    if abs(cpu.stolen_ppm * run_ns / 1e6 - cpu.stolen_ns) > _ROUNDED_NS + run_ns * 1e-9:  # three decimals of a ppm
        yield f"stolen_ppm: {cpu.stolen_ppm:g}, and stolen_ns of duration_ns is {cpu.stolen_ns * 1e6 / run_ns:g}"
    for name in filter(cpu.arrival_ns.__contains__, ARRIVALS):
        of = (side.arrival_percentile(ARRIVALS[name], run_ns) for side in (least, most))
        yield from _outside(f"arrival_ns[{name}]", cpu.arrival_ns[name], *of)


def _outside(key: str, said: float, least: float, most: float) -> Iterator[str]:
    if not least - _ROUNDED_NS <= said <= most + _ROUNDED_NS:
        yield f"{key}: {said:,.12g}, and the histogram allows {least:,.12g} to {most:,.12g}"


def case_disagreement(case: AnyCase) -> str:
    """The first count of a case that its others contradict; "" where none is, and where there is no result."""
    if not case.n:
        return ""
    match case:
        case FeedCase():
            return next(_of_messages(case), "")
        case HedgeCase():
            return next(_of_requests(case), "")
    return ""


def _of_messages(case: FeedCase) -> Iterator[str]:
    yield from _unequal("due", case.due, "n", case.n)
    if case.sent is not None:
        yield from _unequal("sent + unsent", case.sent + case.unsent, "n", case.n)
        if case.lost > case.sent:
            yield f"lost: {case.lost:,}, and {case.sent:,} were sent"
    if (percent := case.receiver_cpu_percent) is not None and percent > _WHOLE_PERCENT:
        yield f"receiver_cpu_percent: {percent:g}, and no thread has more than one CPU"


def _of_requests(case: HedgeCase) -> Iterator[str]:
    yield from _unequal("answered + shed + unanswered", case.answered + case.shed + case.unanswered, "n", case.n)
    ends = (case.lost, case.hedge_cancelled, case.hedge_unfinished)
    yield from _unequal("won + lost + hedge_cancelled + hedge_unfinished", _sum(case.won, *ends), "hedged", case.hedged)
    fates = (case.wasted, case.cancelled_unstarted, case.unfinished)
    copies = "answered + wasted + cancelled_unstarted + unfinished"
    yield from _unequal(copies, _sum(case.answered, *fates), "n - shed + hedged", case.n - case.shed + case.hedged)
    longest = case.max_ns
    if case.won and case.floor_ns is not None and longest is not None and case.floor_ns > longest + _ROUNDED_NS:
        yield f"floor_ns: {case.floor_ns:,.12g}, and hedges won, though no answer took longer than {longest:,.12g} ns"


def _sum(*counts: int | None) -> int | None:
    """None where a count is not in the document."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _unequal(key: str, found: int | None, other: str, expected: int) -> Iterator[str]:
    if found is not None and found != expected:
        yield f"{key}: {found:,}, and {other} is {expected:,}"
