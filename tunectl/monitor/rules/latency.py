"""The promise to the strategy: P99.9 and the longest of any window. One bad window fires; none is averaged. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from tunectl.fix import to_decide
from tunectl.monitor.model import Condition, Health
from tunectl.monitor.rules.history import History, number, why_unknown
from tunectl.wording import beside_limit, plural

NAME = "LatencySla"
_FIX = to_decide("look for the cause at that time: tunectl probe jitter --attribute, then tunectl preflight")


class Limit(NamedTuple):
    """One promise and the samples that are held against it."""

    said: str
    limit: float
    closed: str  # of the last whole window
    worst: str  # the highest of the last few
    open: str = ""  # of the window that is not over


def judge(history: History) -> Iterator[Condition]:
    """One condition a subject: the worst window since the look before, what is open, and the worst of the last few.

    The longest of a window that is still open can only grow, so it is bad at once. It is good again when the worst of
    the last windows is: bad windows with good ones between are one event.
    """
    limits = list(_limits(history))
    if not limits:
        return
    isolated = history.limits.isolated
    for subject, sample in history.get("latency_max_ns").items():
        if isolated and sample.cpus and not sample.cpus & isolated:
            continue  # what a housekeeping CPU does to its sentinel was promised to nobody
        held = [_hold(history, subject, limit) for limit in limits]
        # A window is not known to be good where a part of it was never read.
        count = number(history.get("latency_window_dropped").get(subject))
        dropped = f"the kernel dropped {plural(int(count), 'datagram')} of the window" if count else ""
        bad = [(value, limit) for health, value, limit in held if health is Health.BAD and value is not None]
        if bad:
            highest, broke = bad[0]
            both = [(limit, *beside_limit(limit.worst, value, limit.limit)) for value, limit in bad]
            broken = "; ".join(f"{limit.said} is {stands}, promised {promised}" for limit, stands, promised in both)
            broken += _missed(history, subject) + (f"; {dropped}" if dropped else "")
            summary = f"{subject}: {broken}"
            yield Condition(NAME, subject, Health.BAD, highest, broke.limit, sample.source, summary, _FIX, sample.cpus)
            continue
        order = (Health.UNKNOWN, Health.BETWEEN, Health.GOOD)
        health, value, first = min(held, key=lambda each: order.index(each[0]))
        why = sample.reason
        if health is Health.UNKNOWN:
            why = why_unknown(history.get(first.closed).get(subject, sample))
        if dropped and health is not Health.UNKNOWN:
            health, value, why = Health.UNKNOWN, None, f"{subject}: {dropped}"
        yield Condition(NAME, subject, health, value, first.limit, sample.source, why)


def _missed(history: History, subject: str) -> str:
    """How many messages were longer than the promised P99.9; of the sentinel's gaps nobody can count them."""
    names = ("latency_missed", "latency_allowed", "latency_missed_per_day")
    missed, allowed, per_day = (number(history.get(name).get(subject)) for name in names)
    if not missed or allowed is None or per_day is None:
        return ""
    return f"; {missed:.0f} messages missed the P99.9, {allowed:.0f} may; at this rate {per_day:,.0f} a day"


def _limits(history: History) -> Iterator[Limit]:
    promised = history.limits
    if promised.p99_9_ns is not None:
        yield Limit("P99.9 of a window", promised.p99_9_ns, "latency_p99_9_ns", "latency_worst_p99_9_ns")
    if promised.max_ns is not None:
        names = ("latency_max_ns", "latency_worst_max_ns", "latency_open_max_ns")
        yield Limit("the longest of a window", promised.max_ns, *names)


def _hold(history: History, subject: str, limit: Limit) -> tuple[Health, float | None, Limit]:
    names = (limit.closed, limit.open, limit.worst)
    closed, still, worst = (number(history.get(name).get(subject)) for name in names)
    highest = max((value for value in (closed, still) if value is not None), default=None)
    if highest is not None and highest > limit.limit:
        return Health.BAD, highest, limit
    if closed is None:
        return Health.UNKNOWN, None, limit
    return (Health.BETWEEN if worst is not None and worst > limit.limit else Health.GOOD), closed, limit
