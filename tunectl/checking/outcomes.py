"""How a check ends: functions each of which leaves the check. Pure."""

from collections.abc import Sequence
from typing import NamedTuple, NoReturn

import pytest

from tunectl.checking.window import some
from tunectl.fix import NOTHING, Fix, in_turn, of_text
from tunectl.model import Finding, Match, Outcome, Scalar, Severity

# Decorates a check that concludes from threads it does not find: they prove something only where all can be seen.
needs_sight = pytest.mark.needs_sight
# Of a check that does not say what it costs: most of them look at what runs on an isolated CPU.
OF_CHECKS = Severity.INTERRUPT

# What the kernel's isolation settles by itself, where the host file asks for it and this boot has it not yet.
ISOLATION = ("boot.isolcpus", "domain")
# How long a command holds that is typed now; what a knob asks for, tunectl does again at each boot.
THREAD_HOLDS = "it holds until the thread is started anew"
IRQ_HOLDS = "it holds until the next boot; the knob irq.affinity in the host file does it at each"
WORK_HOLDS = "it holds until the next boot; the knob workqueue.cpumask in the host file does it at each"


class Settled(Exception):  # noqa: N818 - an answer, not an error
    """A check has its answer. Raised by the functions below, read by the plugin."""

    def __init__(
        self,
        outcome: Outcome,
        reason: str,
        fix: Fix = NOTHING,
        observed: Scalar = None,
        desired: Scalar = None,
        match: Match = Match.EQUAL,
    ) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason
        # An operator's own check may say it as a text.
        self.fix = fix if isinstance(fix, Fix) else of_text(fix)
        self.observed = observed
        self.desired = desired
        self.match = match


def failing(
    reason: str, fix: Fix = NOTHING, *, observed: Scalar = None, desired: Scalar = None, match: Match = Match.EQUAL
) -> NoReturn:
    """The host does not behave as it should: what was seen, and what to do about it. `match`: is `desired` a bound?"""
    raise Settled(Outcome.DRIFTED, reason, fix, observed, desired, match)


class Fault(NamedTuple):
    """One of several things that are wrong with a subject, in words, and what mends it."""

    what: str
    fix: Fix


def settle(found: Finding) -> NoReturn:
    """As somebody else has judged it."""
    raise Settled(found.outcome, found.reason, found.fix, found.observed, found.desired, found.match)


def failing_of(subject: str, faults: Sequence[Fault]) -> NoReturn:
    """All that is wrong with one subject, where nothing should be."""
    reason = f"{subject}: {some(fault.what for fault in faults)}"
    failing(reason, in_turn(*(fault.fix for fault in faults)), observed=len(faults), desired=0)


def unsupported(reason: str) -> NoReturn:
    """This kernel or machine has nothing to check here; never fails a gate."""
    raise Settled(Outcome.UNSUPPORTED, reason)


def unknown(reason: str, fix: Fix = NOTHING) -> NoReturn:
    """It could not be found out; fails a gate only with --strict."""
    raise Settled(Outcome.UNREADABLE, reason, fix)


def compliant(reason: str = "") -> NoReturn:
    """The host behaves, and there is nothing left to look at; a check that returns says the same."""
    raise Settled(Outcome.COMPLIANT, reason)


def costs(severity: Severity) -> pytest.MarkDecorator:
    """Decorates a check with what it costs while the host does not behave: the order in which findings are shown."""
    return pytest.mark.costs(severity)


def watches(least_s: float) -> pytest.MarkDecorator:
    """Decorates a check with the least seconds for which a host must be watched before silence says that it behaves."""
    return pytest.mark.watches(least_s)


def needs_sight_of(item: pytest.Item) -> bool:
    """Did the check say `needs_sight`?"""
    return item.get_closest_marker("needs_sight") is not None


def least_s_of(item: pytest.Item) -> float:
    """What the check said with `watches`; 0 where it said nothing."""
    mark = item.get_closest_marker("watches")
    return float(mark.args[0]) if mark else 0.0


def severity_of(item: pytest.Item) -> Severity:
    """What the check said with `costs`; OF_CHECKS where it said nothing."""
    mark = item.get_closest_marker("costs")
    return Severity(mark.args[0]) if mark else OF_CHECKS
