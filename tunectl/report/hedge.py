"""Figures of `probe hedge`, as its pages write them: what a second copy gains and costs, where it collapses. Pure."""

import math
from collections.abc import Collection, Iterator, Sequence

from tunectl.shapes import FEWEST_P99_9, Hedge, HedgeCase, bucket_at
from tunectl.wording import nanoseconds, percent, times

LATENCIES = (("50", "P50"), ("99", "P99"), ("99.9", "P99.9"))
HEADER = (*(name for _, name in LATENCIES), "gain", "hedged", "missed", "busy")
FATES = ("after", "floor", "won", "denied", "unpaid", "wasted", "joint")
HELPS = 1.1  # times shorter: less is no help
_SURE = 2.0  # standard deviations
_GAINED = ("99.9", "99")  # the first that both have


def hedge_conditions(result: Hedge) -> list[str]:
    """Under what conditions the cases were measured: sentences."""
    found = []
    if result.simulated:
        what = "two queues, random arrivals and this policy on simulated time"
        found.append(f"simulated: {what}; no measurement of this host")
    for case in result.cases[:1]:
        cancelled = "a copy that has not begun is cancelled once the answer is there"
        cancels = cancelled if case.cancel else "no copy is cancelled"
        budget = "no budget" if case.budget is None else f"a budget of {case.budget:g} second copies for each request"
        shed = "no queue refuses" if case.shed_at is None else f"a queue of {case.shed_at} refuses"
        found.append(f"{nanoseconds(case.service_ns)} of work a request; {cancels}; {budget}; {shed}")
    if any(case.n < FEWEST_P99_9 for case in result.cases if case.n):
        found.append(f"P99.9 needs {FEWEST_P99_9:,} requests")
    return found


def title_of(stall: str, stalls: Collection[str]) -> str:
    """The name of the table of a stall, beside the tables of others."""
    if stall != "none":
        return f"Due to answer, stall {stall}"
    return "Due to answer, no stall" if len(stalls) > 1 else "Due to answer"


def gain(case: HedgeCase, cases: Sequence[HedgeCase]) -> tuple[str, float] | None:
    """Which percentile, and how many times shorter it is than without second copies; None where that is not known.

    Infinite where only without them so many requests miss that there is no such percentile; 0 the other way round.
    """
    alone = baseline(case, cases)
    if not case.is_hedged or not alone:
        return None
    for name in _GAINED:
        with_, without = _length(case, name), _length(alone, name)
        if with_ is not None and without is not None and math.isfinite(min(with_, without)):
            return name, without / with_
    return None


def _length(case: HedgeCase, name: str) -> float | None:
    """A percentile in ns; endless where requests that missed decide it, None where there were too few."""
    beyond = 1 - float(name) / 100
    return math.inf if case.n and case.missed > beyond * case.n else case.at(name)


def baseline(case: HedgeCase, cases: Sequence[HedgeCase]) -> HedgeCase | None:
    """The same load and stall without second copies."""
    return next((alone for alone in cases if not alone.is_hedged and alone.place == case.place and alone.n), None)


def figures(case: HedgeCase, cases: Sequence[HedgeCase]) -> list[str]:
    """The cells of HEADER."""
    if not case.n:
        return ["void", *[""] * (len(HEADER) - 1)]
    gained = gain(case, cases)
    shorter = "" if not gained else times(gained[1]) if math.isfinite(gained[1]) else "answers"
    return [
        *(nanoseconds(case.at(key)) for key, _ in LATENCIES),
        "collapsed" if case.collapsed else shorter,
        percent(100 * case.hedged / case.n) if case.is_hedged else "",
        percent(100 * case.missed / case.n),
        "-" if case.utilisation is None else percent(100 * case.utilisation),
    ]


def fates(case: HedgeCase) -> list[str]:
    """The cells of FATES: when second copies went out, and what became of them."""
    return [
        nanoseconds(case.delay_ns),
        nanoseconds(case.floor_ns),
        f"{case.won:,}",
        f"{case.denied:,}",
        f"{case.over_budget:,}",
        nanoseconds(case.wasted_ns),
        "-" if case.joint_ratio is None else f"{case.joint_ratio:.2g}",
    ]


def findings(result: Hedge) -> list[str]:
    """Does a second copy help, at which delay, for how much, and where does it collapse: sentences."""
    measured = [case for case in result.cases if case.n]
    stalls = list(dict.fromkeys(case.stall for case in measured))
    said = []
    for stall in stalls:
        cases = [case for case in measured if case.stall == stall]
        where = f"stall {stall}: " if len(stalls) > 1 or stall != "none" else ""
        collapses = []  # from which load on, with each delay
        for second in dict.fromkeys(case.second for case in cases):
            if loads := sorted(case.load for case in cases if case.second == second and case.collapsed):
                copies = f"with a second copy {second}" if second != "none" else "without second copies"
                collapses.append(f"{copies} it collapses at load {_listed(loads)}")
        said += [where + text for text in (*_best(cases), *collapses)]
    return said


def _listed(loads: Sequence[float]) -> str:
    return ", ".join(f"{load:g}" for load in loads)


def _best(cases: Sequence[HedgeCase]) -> Iterator[str]:
    sent = [case for case in cases if case.hedged and not case.collapsed]
    gains = [(found[1], found[0], case) for case in sent if (found := gain(case, cases))]
    helping = [one for one in gains if one[0] >= HELPS and _is_more_than_chance(one[2], cases, one[1])]
    if gains and not helping:
        names = " or ".join(dict.fromkeys(f"P{name}" for _, name, _ in gains))
        yield f"no second copy helps: at no load and delay is {names} {times(HELPS)} shorter, beyond chance"
    if not helping:
        return
    factor, name, best = max(helping, key=lambda one: one[0])
    alone = baseline(best, cases)
    before = f"instead of {nanoseconds(alone.at(name) if alone else None)} ({times(factor)} shorter)"
    missing = f"and without it more than {percent(100 - float(name))} missed"
    fell = f"P{name} is {nanoseconds(best.at(name))} {before if math.isfinite(factor) else missing}"
    cost = f"for {percent(100 * best.hedged / best.n)} more copies"
    yield f"a second copy helps most at load {best.load:g}, {best.second}: {fell}, {cost}"
    helped = {case.load for _, _, case in helping}
    if rest := sorted({case.load for case in cases} - helped):
        yield f"it helps at no delay at load {_listed(rest)}"


def _is_more_than_chance(case: HedgeCase, cases: Sequence[HedgeCase], name: str) -> bool:
    """Would two other runs show it, too? The percentile's ranks, each two standard deviations to the worse side."""
    alone = baseline(case, cases)
    return alone is not None and _at_rank(case, name, _SURE) < _at_rank(alone, name, -_SURE)


def _at_rank(case: HedgeCase, name: str, deviations: float) -> float:
    """The upper end of the bucket in which the percentile is where chance moved its rank; endless among the missed."""
    share = float(name) / 100
    share += deviations * math.sqrt(share * (1 - share) / case.n)
    bucket = bucket_at(case.histogram, share, case.missed)
    return bucket[1] if bucket else math.inf
