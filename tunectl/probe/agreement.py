"""Do the figures of a document say what its own histogram and list say? Pure.

A file that somebody edited, or that was put together from two, is no result. A figure was made of the very gaps that
the histogram counts, so it lies within what the ends of the buckets allow. The ends are whole nanoseconds, rounded
down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tunectl.experiments.feed_cells import SPINNING
from tunectl.experiments.pair import SPINNER_LEAST
from tunectl.probe.explain import ARRIVALS
from tunectl.probe.lengths import Lengths
from tunectl.shapes import AnyCase, Cpu, FeedCase, HedgeCase, Spread

_WHOLE_PERCENT = 100
_SPINNING_PERCENT = 100 * SPINNER_LEAST - 0.01  # as it is rounded
_WHOLE_SHARE = 0.01  # two clocks
_BAR_SHARE, _BAR_NS = 0.02, 10.0
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


def told_twice(cases: Sequence[FeedCase] | Sequence[HedgeCase]) -> str:
    """The name of the first case that is there twice; "" where none is: each is measured once."""
    seen: set[tuple[object, ...]] = set()
    for case in cases:
        if case.key in seen:
            return case.name
        seen.add(case.key)
    return ""


def _of_messages(case: FeedCase) -> Iterator[str]:
    yield from _unequal("due", case.due, "n", case.n)
    if case.sent is not None:
        yield from _unequal("sent + unsent", case.sent + case.unsent, "n", case.n)
        if case.lost > case.sent:
            yield f"lost: {case.lost:,}, and {case.sent:,} were sent"
    if (percent := case.receiver_cpu_percent) is not None and percent > _WHOLE_PERCENT:
        yield f"receiver_cpu_percent: {percent:g}, and no thread has more than one CPU"
    elif percent is not None and case.waiting == SPINNING and percent < _SPINNING_PERCENT:
        yield f"receiver_cpu_percent: {percent:g}, and a spinner with less than {_SPINNING_PERCENT:g} % is void"
    if case.series:
        arrived = sum(count for count, _, _ in case.series.intervals)
        yield from _unequal("series.intervals", arrived, "n - lost - unsent", case.n - case.lost - case.unsent)
    spreads = {"due_to_book_ns": case.due_to_book_ns, "late_ns": case.late_ns}
    spreads |= {f"stages_ns[{name}]": spread for name, spread in case.stages_ns.items()}
    for name, spread in spreads.items():
        yield from _unordered(name, spread)
    for name, bar in case.bars_ns.items():
        yield from _too_much_or_little(name, bar, case.at(name))


def _of_requests(case: HedgeCase) -> Iterator[str]:
    yield from _unequal("answered + shed + unanswered", case.answered + case.shed + case.unanswered, "n", case.n)
    ends = (case.lost, case.hedge_cancelled, case.hedge_unfinished)
    yield from _unequal("won + lost + hedge_cancelled + hedge_unfinished", _sum(case.won, *ends), "hedged", case.hedged)
    fates = (case.wasted, case.cancelled_unstarted, case.unfinished)
    copies = "answered + wasted + cancelled_unstarted + unfinished"
    yield from _unequal(copies, _sum(case.answered, *fates), "n - shed + hedged", case.n - case.shed + case.hedged)
    if case.hedged > (case.n if case.is_hedged else 0):
        yield f"hedged: {case.hedged:,}, of {case.n:,} requests" + ("" if case.is_hedged else ", and no second copy")
    if (used := case.utilisation) is not None and used > 1 + _WHOLE_SHARE:
        yield f"utilisation: {used:g}, and no server works more than all the time"
    if case.delay_ns is not None and case.delay.isascii() and case.delay.isdigit():
        fixed = int(case.delay)
        if abs(case.delay_ns - fixed) > _WHOLE_SHARE * fixed + _ROUNDED_NS:
            yield f"delay_ns: {case.delay_ns:,.12g}, and {fixed:,} was asked for"
    for name, spread in case.single_ns.items():
        yield from _unordered(f"single_ns[{name}]", spread)
    longest = case.max_ns
    if case.won and case.floor_ns is not None and longest is not None and case.floor_ns > longest + _ROUNDED_NS:
        yield f"floor_ns: {case.floor_ns:,.12g}, and hedges won, though no answer took longer than {longest:,.12g} ns"


def _unordered(key: str, spread: Spread | None) -> Iterator[str]:
    """Where the figures of one set of values do not ascend, or their mean lies outside."""
    if not spread:
        return
    ranked = sorted(filter(_is_percentile, spread), key=float)
    known = [(name, ns) for name in ("min", *ranked, "max") if (ns := spread.get(name)) is not None]
    for (name, ns), (other, more) in pairwise(known):
        if ns > more + _ROUNDED_NS:
            yield f"{key}: {name} is {ns:,.12g}, and {other} is {more:,.12g}"
    least, mean, most = (spread.get(name) for name in ("min", "mean", "max"))
    if None not in (least, mean, most) and not (least or 0) - _ROUNDED_NS <= (mean or 0) <= (most or 0) + _ROUNDED_NS:
        yield f"{key}: mean is {mean:,.12g}, and all are from {least:,.12g} to {most:,.12g}"


def _is_percentile(name: str) -> bool:
    return name.replace(".", "", 1).isdecimal()


def _too_much_or_little(name: str, bar: Mapping[str, float | None] | None, whole: float | None) -> Iterator[str]:
    """Where the stages of messages about as long as a percentile do not add up to it: a bucket is 1/128 wide."""
    if not bar or whole is None:
        return
    parts = sum(ns for ns in bar.values() if ns is not None)
    if abs(parts - whole) > _BAR_SHARE * abs(whole) + _BAR_NS:
        yield f"bars_ns[{name}]: adds up to {parts:,.6g}, and that percentile is {whole:,.6g}"


def _sum(*counts: int | None) -> int | None:
    """None where a count is not in the document."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _unequal(key: str, found: int | None, other: str, expected: int) -> Iterator[str]:
    if found is not None and found != expected:
        yield f"{key}: {found:,}, and {other} is {expected:,}"
