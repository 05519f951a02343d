"""The log of this host: an entry of the journal for each alert, or a line of syslog. Each is one datagram.

journald: NAME=value lines; a value that holds a newline is sent as NAME, newline, its length as 64 bits little endian,
the value, newline. Source: systemd, docs/JOURNAL_NATIVE_PROTOCOL.md. `journalctl MESSAGE_ID=...` or `journalctl
TUNECTL_RULE=FrequencyDrop` finds them.

syslog, for hosts whose log is no journal: the line is for people; what follows it, in RFC 5424's own form of structured
data, is for programs. Local daemons read the older header from /dev/log (as syslog(3) writes it), so the structured
part stands in the message. Not the standard library's handler: it has no time limit, and prints what it cannot send
instead of saying so.
"""

import errno
import os
import socket
from collections.abc import Callable, Mapping, Sequence

from tunectl.address import DeliveryError
from tunectl.model import HostId
from tunectl.monitor.model import Alert, AlertState
from tunectl.monitor.receivers import Receiver
from tunectl.monitor.receivers.message import fields, level, line

JOURNAL = "/run/systemd/journal/socket"
SYSLOG = "/dev/log"
MESSAGE_IDS = {
    AlertState.FIRING: "b2f8d6c1f1a54e0c9a0c1d7e5a3b6f04",
    AlertState.RESOLVED: "3d7c0e9b8f4a4b7fa4c5e2d1960f8ab7",
}
_LONGEST_FIELD = 16_384  # bytes: a datagram larger than the socket's buffer would need a memfd
_LONGEST_LINE = 8192  # bytes: what daemons of syslog take without cutting it (rsyslog's default)
_DAEMON = 3 << 3  # the facility, syslog(3)
_UNSAFE = str.maketrans({"\\": "\\\\", '"': '\\"', "]": "\\]"})  # RFC 5424, section 6.3.3
_TIMEOUT_S = 2.0  # a daemon that does not read must not hold the thread for ever


def open_journal(host: HostId, path: str = JOURNAL) -> Receiver:
    """The receiver of the journal whose socket is `path`."""
    return _receiver("journal", path, "journald", lambda alert: encode(entry(alert, host)))


def entry(alert: Alert, host: HostId) -> dict[str, str]:
    """The fields of one journal entry."""
    own = {f"TUNECTL_{name.upper()}": text for name, text in fields(alert, host).items()}
    return {
        "MESSAGE": line(alert),
        "MESSAGE_ID": MESSAGE_IDS[alert.status],
        "PRIORITY": str(level(alert)),
        "SYSLOG_IDENTIFIER": "tunectl",
        **own,
    }


def encode(entry: Mapping[str, str]) -> bytes:
    """One datagram."""
    parts: list[bytes] = []
    for name, text in entry.items():
        value = text.encode("utf-8", "backslashreplace")[:_LONGEST_FIELD]
        if b"\n" in value:
            parts += [name.encode(), b"\n", len(value).to_bytes(8, "little"), value, b"\n"]
        else:
            parts += [name.encode(), b"=", value, b"\n"]
    return b"".join(parts)


def open_syslog(host: HostId, path: str = SYSLOG) -> Receiver:
    """The receiver of the syslog daemon that listens at `path`."""

    def message(alert: Alert) -> bytes:
        text = f"<{_DAEMON | level(alert)}>tunectl[{os.getpid()}]: {line_with_fields(alert, host)}"
        return text.encode("utf-8", "backslashreplace")[:_LONGEST_LINE]

    return _receiver("syslog", path, "syslog", message)


def line_with_fields(alert: Alert, host: HostId) -> str:
    """`FrequencyDrop[package0] firing: ... [tunectl rule="FrequencyDrop" ...]`, on one line."""
    pairs = " ".join(f'{name}="{value.translate(_UNSAFE)}"' for name, value in fields(alert, host).items())
    return f"{line(alert)} [tunectl {pairs}]"


def _receiver(name: str, path: str, daemon: str, message: Callable[[Alert], bytes]) -> Receiver:
    def deliver(alerts: Sequence[Alert]) -> None:
        for alert in alerts:
            send(path, message(alert), daemon)

    return Receiver(name, deliver)


def send(path: str, message: bytes, daemon: str) -> None:
    """DeliveryError, with `daemon` in it, where the message was not taken."""
    try:
        try:
            _send(path, message, socket.SOCK_DGRAM)
        except OSError as error:
            if error.errno != errno.EPROTOTYPE:
                raise
            _send(path, message + b"\0", socket.SOCK_STREAM)  # some syslog daemons; a NUL ends a message there
    except OSError as error:
        raise DeliveryError(f"{daemon} takes nothing at {path}: {error.strerror or 'no answer'}") from None


def _send(path: str, message: bytes, kind: socket.SocketKind) -> None:
    with socket.socket(socket.AF_UNIX, kind) as to:
        to.settimeout(_TIMEOUT_S)
        to.connect(path)
        to.sendall(message)
