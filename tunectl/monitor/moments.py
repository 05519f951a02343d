"""Moments of the wall clock, which somebody may set, told by the clock that nobody does."""

import time
from datetime import UTC, datetime, timedelta
from functools import cache

from msgspec.structs import replace

from tunectl.host.sysroot import Sysroot
from tunectl.monitor.model import Alert, Moment

_STEP = timedelta(seconds=1)  # by less a clock is slewed


def boottime() -> float:
    """Seconds that no clock step moves, and that go on while the host is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def moment_now() -> Moment:
    """Now, by both."""
    return Moment(timestamp(datetime.now(UTC)), boottime(), _boot())


def told(alert: Alert, now: Moment) -> Alert:
    """With moments of the wall clock as it is set now. None is still to come, and none ends before it began."""
    at = shown_by(now, alert.came) if alert.came else alert.at
    since = shown_by(now, alert.began) if alert.began else alert.since
    return replace(alert, since=min(since, at), at=at)


def is_moved(sent: Alert, now: Moment) -> bool:
    """Would it be sent with another end, or another beginning, than it was?"""
    again = told(sent, now)
    return _is_step(sent.at, again.at) or _is_step(sent.since, again.since)


def _is_step(one: str, other: str) -> bool:
    return one != other and abs(datetime.fromisoformat(one) - datetime.fromisoformat(other)) >= _STEP


def shown_by(now: Moment, moment: Moment) -> str:
    """What the wall clock, as it is set now, would have shown then; never what is still to come."""
    if moment.boot == now.boot != "":
        then = datetime.fromisoformat(now.at) - timedelta(seconds=now.up_s - moment.up_s)
        if abs(then - datetime.fromisoformat(moment.at)) >= _STEP:
            return min(timestamp(then), now.at)
    return min(moment.at, now.at) if moment.boot else moment.at


def timestamp(moment: datetime) -> str:
    """UTC, RFC 3339, to the millisecond: later moments are later texts."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@cache
def _boot() -> str:
    """Of this machine, also where a recorded host is watched: the clocks are its own."""
    return Sysroot().get("proc/sys/kernel/random/boot_id").strip()
