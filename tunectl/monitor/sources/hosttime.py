"""How far off the host's clock is, as check.clock_sync judges it, and whether somebody has set it.

Its owners are asked every ten seconds; one that keeps the monitor waiting is asked less often. That the clock was set
shows in each snapshot: no slewing changes what lies between it and a clock that counts from the boot.
"""

import time
from collections.abc import Iterator

from tunectl.host.hosttime import finding_of, judge, read_host_time
from tunectl.model import Outcome
from tunectl.monitor.model import Freshness, Sample
from tunectl.monitor.moments import clocks_apart
from tunectl.monitor.watched_host import Source, WatchedHost

_NAME, _HOST = "time", "host"
_AGAIN_S, _SHARE, _HOUR_S = 10.0, 0.02, 3600.0
_OLDEST_S = 600.0  # a pause of the machine may have been taken for theirs


class _Kept:
    """What was found last, and what lay between the two clocks."""

    def __init__(self) -> None:
        self.next_at = 0.0
        self.sample: Sample | None = None
        self.was_known = False
        self.apart_ns, self.within_ns = clocks_apart()
        self.steps: list[tuple[float, int]] = []

    def look(self, host: WatchedHost) -> None:
        """Notes a step, and asks the owners where it is time."""
        apart, within = clocks_apart()
        step = apart - self.apart_ns
        if abs(step) > within + self.within_ns:
            self.steps.append((host.taken_at, step))
            self.next_at = host.taken_at
        self.apart_ns, self.within_ns = apart, within
        self.steps = [each for each in self.steps if host.taken_at - each[0] < _HOUR_S][-100:]
        if host.taken_at >= self.next_at:
            begun = time.monotonic()
            self.sample = self._judge(host)
            self.next_at = host.taken_at + min(max(_AGAIN_S, (time.monotonic() - begun) / _SHARE), _OLDEST_S)

    def _judge(self, host: WatchedHost) -> Sample:
        limit = host.config.clock.limit_ns
        found = judge(read_host_time(host.root), limit)
        if found.outcome is Outcome.UNREADABLE and found.offset_ns is None:
            lost = Freshness.NO_DATA if self.was_known else Freshness.ABSENT
            return Sample("clock_error_ns", _HOST, None, _NAME, lost, found.reason)
        self.was_known = True
        seen = finding_of(found, limit)
        return Sample("clock_error_ns", _HOST, found.bound_ns, _NAME, reason=found.reason, seen=seen)


def read(host: WatchedHost) -> Iterator[Sample]:
    """clock_error_ns, the most that the clock can be off, and clock_step_ns, the largest step of the last hour."""
    if not host.root.live:
        why = judge(read_host_time(host.root), host.config.clock.limit_ns).reason
        yield Sample("clock_error_ns", _HOST, None, _NAME, Freshness.ABSENT, why)
        return
    kept = host.keep(_NAME, _Kept)
    kept.look(host)
    if kept.sample:
        yield kept.sample
    at, step = max(kept.steps, key=lambda each: abs(each[1]), default=(host.taken_at, 0))
    yield Sample("clock_step_ns", _HOST, step, _NAME, reason=f"{host.taken_at - at:.0f} s ago")


SOURCE = Source(
    _NAME,
    ("adjtimex(2)", "the sockets of chronyd and ptp4l", "systemd-timesyncd's properties", "/dev/ptpN"),
    "nobody: daemons on housekeeping CPUs answer, and a card's registers",
    "at most ten seconds old, a step at once; older where who is asked keeps us waiting",
    read,
)
