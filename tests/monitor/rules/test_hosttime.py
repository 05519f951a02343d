"""ClockOffset: what its owner says, what nobody can say, and a clock that was set."""

import pytest

from tests.monitor.series import Watch, healths, sample
from tunectl.fix import to_decide
from tunectl.model import Finding, Match, Outcome
from tunectl.monitor.model import Freshness, Health, Sample
from tunectl.monitor.rules.history import Limits

REASON = "chronyd finds the clock off by 2 s"
FIX = to_decide("see which of its sources answer: chronyc -n sources")


def clock(outcome: Outcome) -> Sample:
    """As the source has it."""
    seen = Finding("check.clock_sync", "", outcome, "2 s", "100 µs", REASON, FIX, match=Match.AT_MOST)
    return sample("clock_error_ns", "host", 2e9, "time", seen=seen)


def step(ns: int) -> Sample:
    """The largest of the last hour."""
    return sample("clock_step_ns", "host", ns, "time", reason="12 s ago")


@pytest.mark.parametrize(
    ("outcome", "health"),
    [("compliant", Health.GOOD), ("drifted", Health.BAD), ("unreadable", Health.UNKNOWN)],
)
def test_it_is_judged_as_the_check_does(outcome: str, health: Health) -> None:
    assert healths("ClockOffset", [[clock(Outcome(outcome)), step(0)]]) == [{"host": health}]


def test_it_fires_with_both_figures_and_resolves() -> None:
    watch = Watch()
    (_, sign, alert), *_ = watch.see([clock(Outcome.DRIFTED)])
    assert sign == "+ClockOffset[host]"
    assert (alert.observed, alert.expected, alert.summary, alert.fix) == ("2 s", "at most 100 µs", REASON, str(FIX))
    good = [clock(Outcome.COMPLIANT)]
    assert [name for _, name in watch.names(good, good, good)] == ["-ClockOffset[host]"]


@pytest.mark.parametrize(("ns", "health"), [(100_000, Health.GOOD), (100_001, Health.BAD), (-100_001, Health.BAD)])
def test_a_step_beyond_the_limit_is_bad_though_the_clock_is_right_now(ns: int, health: Health) -> None:
    assert healths("ClockOffset", [[clock(Outcome.COMPLIANT), step(ns)]]) == [{"host": health}]


def test_a_step_says_which_way_how_far_and_when() -> None:
    watch = Watch(Limits(clock_ns=1e6))
    (_, _, alert), *_ = watch.see([clock(Outcome.COMPLIANT), step(-3_600_000_000_000)])
    assert alert.summary == "the clock was set back by 3,600 s, 12 s ago"


def test_a_source_that_said_something_before_is_lost() -> None:
    silent = clock(Outcome.COMPLIANT)._replace(value=None, seen=None, freshness=Freshness.NO_DATA, reason="it hangs")
    seen = Watch().see([clock(Outcome.COMPLIANT), step(0)], *[[silent, step(0)]] * 5)
    assert "+SourceLost[time]" in [name for _, name, _ in seen]


def test_a_host_without_such_a_word_has_no_condition() -> None:
    absent = sample("clock_error_ns", "host", None, "time", freshness=Freshness.ABSENT)
    assert healths("ClockOffset", [[absent, step(0)]]) == [{}]
