"""The time that the host's clock tells, and who keeps it right."""

from tunectl.checking import Match, Severity, compliant, costs, failing, unknown
from tunectl.checking.subject import Subject
from tunectl.host.hosttime import judge, read_host_time
from tunectl.model import Outcome
from tunectl.wording import nanoseconds


@costs(Severity.HYGIENE)
def test_clock_sync(subject: Subject) -> None:
    """A time stamp is worth as much as the clock that it is taken from: each venue and regulator compares it with UTC.

    Asked: chronyd, ptp4l or systemd-timesyncd, whichever steers the clock; the kernel; a card's own clock. What may
    differ from UTC is [clock] of the host file.
    Source: Commission Delegated Regulation (EU) 2017/574 (RTS 25), Articles 1 to 4; chronyc(1); adjtimex(2).
    """
    found = judge(read_host_time(subject.root), subject.clock_limit_ns)
    if found.outcome is Outcome.UNREADABLE:
        unknown(found.reason, found.fix)
    if found.outcome is Outcome.COMPLIANT:
        compliant(found.reason)
    observed = nanoseconds(found.bound_ns) if found.bound_ns is not None else None
    desired = nanoseconds(subject.clock_limit_ns) if observed else None
    failing(found.reason, found.fix, observed=observed, desired=desired, match=Match.AT_MOST)
