"""What systemd-timesyncd heard from its server, by its properties on the system bus; the question starts nothing.

Source: org.freedesktop.timesync1(5); systemd's src/timesync/timesyncd-bus.c (NTPMessage: uuuuittayttttbtt, in µs);
busctl(1), --auto-start; RFC 5905, 7.3 and 11.2 (offset, delay, and 15 ppm of drift while nobody is asked).
"""

import errno
import json
from typing import Any, NamedTuple

from tunectl.host.ask import SYSTEMD, Question, ask
from tunectl.host.sysroot import Sysroot

_CALL = "org.freedesktop.timesync1 /org/freedesktop/timesync1 org.freedesktop.DBus.Properties GetAll s"
_ARGV = ("/usr/bin/busctl", "--json=short", "--auto-start=no", "call", *_CALL.split())
_PROPERTIES = Question("timesync", (*_ARGV, "org.freedesktop.timesync1.Manager"), SYSTEMD)
_DRIFT = 15e-6
_LEAPS, _STRATA = range(3), range(1, 16)  # RFC 5905, 7.3: of a server that is synchronised
_LONGEST_S = 2.0**17  # RFC 5905, 7.2: MAXPOLL
_FIELDS = 15


class Synced(NamedTuple):
    """The last answer: how far off it found the clock, and how far off that may be."""

    server: str
    is_synced: bool  # the server, by its own word
    packets: int
    interval_s: float
    at_s: float  # when the answer came, as a time of the epoch
    offset_s: float
    distance_s: float  # half of all delays, and the servers' own dispersion

    def bound_s(self, now_s: float) -> float:
        """How far off the clock may be by now."""
        return abs(self.offset_s) + self.distance_s + _DRIFT * max(now_s - self.at_s, 0.0)


def read_synced(root: Sysroot) -> Synced:
    """Asks the one that runs. OSError, whose text says what failed."""
    if not all(root.exists(path.lstrip("/")) for path in (SYSTEMD, _ARGV[0])):
        raise OSError(errno.ENOENT, "there is no systemd, or no busctl, to ask it by")
    text = ask(root, _PROPERTIES)
    if text is None:
        raise TimeoutError(errno.ETIMEDOUT, "it gave no answer at the system bus")
    if (said := parse_synced(text)) is None:
        raise OSError(errno.EPROTO, "its answer is none that is known here, or cannot be true")
    return said


def parse_synced(text: str) -> Synced | None:
    """What `busctl --json=short call` prints; None for anything else. Pure."""
    try:
        properties: dict[str, Any] = {name: each["data"] for name, each in json.loads(text)["data"][0].items()}
        message = properties["NTPMessage"]
        leap, stratum, delay, dispersion = (int(message[at]) for at in (0, 3, 5, 6))
        origin, receive, transmit, arrived = (int(message[at]) for at in (8, 9, 10, 11))
        interval_s = int(properties["PollIntervalUSec"]) / 1e6
        if min(delay, dispersion, interval_s) < 0 or interval_s > _LONGEST_S:
            return None
        trip = (arrived - origin) - (transmit - receive)
        return Synced(
            str(properties["ServerName"]),
            leap in _LEAPS and stratum in _STRATA,
            int(message[13]) if len(message) == _FIELDS else 0,
            interval_s,
            arrived / 1e6,
            ((receive - origin) + (transmit - arrived)) / 2e6,
            (abs(trip) / 2 + delay / 2 + dispersion) / 1e6,
        )
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
        return None
