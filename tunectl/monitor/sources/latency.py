"""The application's own latencies, by window. [monitor.sla] socket"""

from __future__ import annotations

from collections.abc import Iterator

from tunectl.errors import TunectlError
from tunectl.monitor.eyes import Eyes
from tunectl.monitor.latency_socket import LatencySocket
from tunectl.monitor.model import Health, Sample
from tunectl.monitor.sources.source import Source
from tunectl.monitor.windows import Messages, Windows

_NAME = "latency"
_SUBJECT = "application"


class _Kept:
    def __init__(self, eyes: Eyes, address: str) -> None:
        self.socket = LatencySocket(address)
        self.windows = Windows(eyes.wishes.monitor.sla.window_s, Messages, eyes.look_at)
        self.bad = 0

    def close(self) -> None:
        self.socket.close()


def read(eyes: Eyes) -> Iterator[Sample]:
    """latency_p99_9_ns, latency_max_ns and latency_count of subject `application`: the last closed window's."""
    address = eyes.wishes.monitor.sla.socket
    if address is None or not eyes.root.live:
        why = "no socket is named ([monitor.sla])" if address is None else "a recorded host has no application"
        yield Sample("latency_max_ns", _SUBJECT, None, _NAME, Health.ABSENT, why)
        return
    try:
        kept = eyes.keep(_NAME, lambda: _Kept(eyes, address))
    except TunectlError as error:  # tried again with every look
        yield Sample("latency_max_ns", _SUBJECT, None, _NAME, Health.NO_DATA, error.message)
        return
    values, bad = kept.socket.read()
    kept.bad += bad
    kept.windows.open.add(values)
    kept.windows.turn(eyes.look_at)
    yield from kept.windows.samples(_SUBJECT, _NAME, note=_note(kept))
    if not (kept.windows.has_heard or kept.bad or kept.socket.dropped):
        return  # nothing ever came: there is nothing fresh to say
    yield Sample("latency_bad_input", _SUBJECT, kept.bad, _NAME)
    yield Sample("latency_dropped", _SUBJECT, kept.socket.dropped, _NAME)


def _note(kept: _Kept) -> str:
    parts = []
    if kept.bad:
        parts.append(f"{kept.bad} words so far were no latency in ns")
    if kept.socket.dropped:
        parts.append(f"{kept.socket.dropped} datagrams so far were dropped by the kernel")
    return "; ".join(parts)


SOURCE = Source(
    _NAME,
    ("the datagram socket of [monitor.sla]",),
    "nobody; an application that sends to a Unix socket does so with MSG_DONTWAIT",
    "the last window that is closed, until the next one is",
    read,
)
