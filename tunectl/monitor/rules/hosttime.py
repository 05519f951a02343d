"""The host's clock against [clock]: how far off its owner finds it, and whether it was set within the hour. Pure."""

from collections.abc import Iterator

from tunectl.fix import to_decide
from tunectl.model import Finding, Outcome
from tunectl.monitor.model import Condition, Freshness, Health
from tunectl.monitor.rules.history import History, number, unknown
from tunectl.wording import nanoseconds

NAME = "ClockOffset"
_HEALTH = {Outcome.COMPLIANT: Health.GOOD, Outcome.DRIFTED: Health.BAD}


def judge(history: History) -> Iterator[Condition]:
    """One condition: a step is bad for an hour, then the estimate and its bound decide; unproved is unknown."""
    limit = f"at most {nanoseconds(history.limits.clock_ns)}"
    for subject, sample in history.get("clock_error_ns").items():
        step = history.get("clock_step_ns").get(subject)
        moved = number(step)
        if step and moved is not None and abs(moved) > history.limits.clock_ns:
            way = "forward" if moved > 0 else "back"
            summary = f"the clock was set {way} by {nanoseconds(abs(moved))}, {step.reason}"
            who = to_decide("see who set it: the journal of the program that steers it at that time")
            yield Condition(NAME, subject, Health.BAD, nanoseconds(abs(moved)), limit, sample.source, summary, who)
        elif sample.freshness is Freshness.ABSENT:
            continue
        elif sample.freshness is not Freshness.FRESH or not isinstance(sample.seen, Finding):
            yield unknown(NAME, sample)
        else:
            seen = sample.seen
            health = _HEALTH.get(seen.outcome, Health.UNKNOWN)
            values = (seen.observed or "-", limit, sample.source, seen.reason or "not known", seen.fix)
            yield Condition(NAME, subject, health, *values)
