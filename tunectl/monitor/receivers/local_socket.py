"""One message to a daemon of this host over its socket in the file system, with an end in time."""

from __future__ import annotations

import errno
import socket

from tunectl.monitor.receivers.receiver import DeliveryError

_TIMEOUT_S = 2.0  # a daemon that does not read must not hold the thread for ever


def send(path: str, message: bytes, daemon: str) -> None:
    """DeliveryError, with `daemon` in it, where the message was not taken."""
    failed = ""
    try:
        try:
            _send(path, message, socket.SOCK_DGRAM)
        except OSError as error:
            if error.errno != errno.EPROTOTYPE:
                raise
            _send(path, message + b"\0", socket.SOCK_STREAM)  # some syslog daemons; a NUL ends a message there
    except OSError as error:
        failed = error.strerror or "no answer"
    if failed:
        raise DeliveryError(f"{daemon} takes nothing at {path}: {failed}")


def _send(path: str, message: bytes, kind: socket.SocketKind) -> None:
    with socket.socket(socket.AF_UNIX, kind) as to:
        to.settimeout(_TIMEOUT_S)
        to.connect(path)
        to.sendall(message)
