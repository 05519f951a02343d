"""journald: each alert as one structured entry, over journald's own protocol.

A datagram of NAME=value lines; a value that holds a newline is sent as NAME, newline, its length as 64 bits little
endian, the value, newline. Source: systemd, docs/JOURNAL_NATIVE_PROTOCOL.md. `journalctl MESSAGE_ID=...` or
`journalctl TUNECTL_RULE=FrequencyDrop` finds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tunectl.model import HostId
from tunectl.monitor.model import Alert, AlertState
from tunectl.monitor.receivers.local_socket import send
from tunectl.monitor.receivers.message import fields, level, line
from tunectl.monitor.receivers.receiver import Receiver

SOCKET = "/run/systemd/journal/socket"
MESSAGE_IDS = {
    AlertState.FIRING: "b2f8d6c1f1a54e0c9a0c1d7e5a3b6f04",
    AlertState.RESOLVED: "3d7c0e9b8f4a4b7fa4c5e2d1960f8ab7",
}
_LONGEST = 16_384  # bytes of one field: a datagram larger than the socket's buffer would need a memfd


def open_journal(host: HostId, path: str = SOCKET) -> Receiver:
    """The receiver of the journal whose socket is `path`."""

    def deliver(alerts: Sequence[Alert]) -> None:
        for alert in alerts:
            send(path, encode(entry(alert, host)), "journald")

    return Receiver("journal", deliver)


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
        value = text.encode("utf-8", "backslashreplace")[:_LONGEST]
        if b"\n" in value:
            parts += [name.encode(), b"\n", len(value).to_bytes(8, "little"), value, b"\n"]
        else:
            parts += [name.encode(), b"=", value, b"\n"]
    return b"".join(parts)
