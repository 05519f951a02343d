"""What systemd hears of the service: one datagram a message. sd_notify(3), sd_watchdog_enabled(3)."""

import os
import socket
import time
from collections.abc import MutableMapping
from typing import NamedTuple

from tunectl.report.escape import printable

_PATIENCE_S = 1.0  # a full socket buffer must not stop the loop: the next message says more than the lost one


class Notify(NamedTuple):
    """Where systemd listens, and how often it wants to hear from us. Without systemd nothing is sent."""

    address: str = ""  # a path, or "@name" for a socket of the abstract name space
    watchdog_s: float | None = None  # without a sign of life for so long, the service is killed
    is_service: bool = False  # systemd started this very process, whether or not it wants to hear from it

    @property
    def ping_s(self) -> float | None:
        """How often to ping: twice in the time systemd allows."""
        return self.watchdog_s / 2 if self.watchdog_s else None

    def send(self, **fields: object) -> bool:
        """READY=1, STATUS=..., in one datagram; False where nobody got it. Never raises."""
        if not self.address:
            return False
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        # A newline would end the field: what follows it would be a field of its own.
        lines = (f"{name}={printable(' '.join(str(value).split()))}" for name, value in fields.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.settimeout(_PATIENCE_S)
                sock.sendto("\n".join(lines).encode("utf-8", "backslashreplace"), address)
        except OSError:
            return False
        return True

    def ready(self, status: str) -> bool:
        """The first cycle is done, or a reload is."""
        return self.send(READY=1, STATUS=status)

    def reloading(self) -> bool:
        """The host file is read again; ready() ends it. The time lets systemd tell this reload from an earlier one."""
        return self.send(RELOADING=1, MONOTONIC_USEC=time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000)

    def stopping(self, why: str) -> bool:
        """From here on the service ends."""
        return self.send(STOPPING=1, STATUS=why)


def open_notify(environ: MutableMapping[str, str], pid: int | None = None) -> Notify:
    """From the environment that systemd gave this process; taken out of it, because it is not meant for children."""
    given = {name: environ.pop(name, "") for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")}
    address, own = given["NOTIFY_SOCKET"], str(os.getpid() if pid is None else pid)
    is_service = environ.get("SYSTEMD_EXEC_PID") == own
    if not address.startswith(("/", "@")):
        return Notify(is_service=is_service)
    is_watched = given["WATCHDOG_PID"] in ("", own) and given["WATCHDOG_USEC"].isdecimal()  # and no other process is
    return Notify(address, int(given["WATCHDOG_USEC"]) / 1e6 or None if is_watched else None, is_service=True)
