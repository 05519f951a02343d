"""syslog, for hosts whose log is no journal: one line an alert, to the local daemon.

The line is for people; what follows it, in RFC 5424's own form of structured data, is for programs. Local daemons
read the older header from /dev/log (as syslog(3) writes it), so the structured part stands in the message. Not the
standard library's handler: it has no time limit, and prints what it cannot send instead of saying so.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from tunectl.model import HostId
from tunectl.monitor.model import Alert
from tunectl.monitor.receivers.local_socket import send
from tunectl.monitor.receivers.message import fields, level, line
from tunectl.monitor.receivers.receiver import Receiver

SOCKET = "/dev/log"
_DAEMON = 3 << 3  # the facility, syslog(3)
_LONGEST = 8192  # bytes: what daemons take without cutting it (rsyslog's default)
_UNSAFE = str.maketrans({"\\": "\\\\", '"': '\\"', "]": "\\]"})  # RFC 5424, section 6.3.3


def open_syslog(host: HostId, path: str = SOCKET) -> Receiver:
    """The receiver of the syslog daemon that listens at `path`."""

    def deliver(alerts: Sequence[Alert]) -> None:
        for alert in alerts:
            head = f"<{_DAEMON | level(alert)}>tunectl[{os.getpid()}]: "
            send(path, f"{head}{text(alert, host)}".encode("utf-8", "backslashreplace")[:_LONGEST], "syslog")

    return Receiver("syslog", deliver)


def text(alert: Alert, host: HostId) -> str:
    """`FrequencyDrop[package0] firing: ... [tunectl rule="FrequencyDrop" ...]`, on one line."""
    pairs = " ".join(f'{name}="{value.translate(_UNSAFE)}"' for name, value in fields(alert, host).items())
    return f"{line(alert)} [tunectl {pairs}]"
