"""Moments of the wall clock, which somebody may set, told by the clock that nobody does."""

import time
from datetime import UTC, datetime, timedelta
from functools import cache

from msgspec.structs import replace

from tunectl.host.sysroot import Sysroot
from tunectl.monitor.model import Alert, Moment

_STEP = timedelta(seconds=1)  # by less a clock is slewed
_TRIES = 5


def boottime() -> float:
    """Seconds that no clock step moves, and that go on while the host is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def clocks_apart() -> tuple[int, int]:
    """CLOCK_REALTIME less CLOCK_BOOTTIME, and within how many ns both were read: the shortest of some tries."""
    tries = []
    for _ in range(_TRIES):
        before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        now = time.clock_gettime_ns(time.CLOCK_REALTIME)
        after = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        tries.append((after - before, now - before))
    within, apart = min(tries)
    return apart, within


def moment_now() -> Moment:
    """Now, by both: read together, for a pause between the two would look like a clock that was set."""
    apart_ns, _ = clocks_apart()
    up_s = boottime()
    return Moment(timestamp(datetime.fromtimestamp(up_s + apart_ns / 1e9, UTC)), up_s, _boot())


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
