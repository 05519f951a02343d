"""The time that the host's clock tells, and who keeps it right."""

from tunectl.checking import Severity, costs
from tunectl.checking.outcomes import settle
from tunectl.checking.subject import Subject
from tunectl.host.hosttime import finding_of, judge, read_host_time


@costs(Severity.HYGIENE)
def test_clock_sync(subject: Subject) -> None:
    """A time stamp is worth as much as the clock that it is taken from: each venue and regulator compares it with UTC.

    Asked: chronyd, ptp4l or systemd-timesyncd, whichever steers the clock; the kernel; a card's own clock. What may
    differ from UTC is [clock] of the host file.
    Source: Commission Delegated Regulation (EU) 2017/574 (RTS 25), Articles 1 to 4; chronyc(1); adjtimex(2).
    """
    limit_ns = subject.clock_limit_ns
    settle(finding_of(judge(read_host_time(subject.root), limit_ns), limit_ns))
