"""The datagram socket to which an application sends its latencies: text, see datagram.py.

An address is a path (a Unix socket) or HOST:PORT (UDP; the host is meant to be this one). Sending to a Unix socket
whose reader is slow blocks the sender unless it says MSG_DONTWAIT; UDP never does. What the kernel dropped is counted.
A Unix socket holds ten datagrams (net.unix.max_dgram_qlen), so a thread takes them out as they come.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import stat
import struct
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from tunectl.errors import TunectlError
from tunectl.hostfile.monitor import check_socket
from tunectl.monitor.model import Freshness, Sample
from tunectl.monitor.moments import boottime
from tunectl.monitor.sources.datagram import parse
from tunectl.monitor.sources.windows import SLOTS, Messages, Windows, judge_messages
from tunectl.monitor.watched_host import ALONE, Source, WatchedHost

_BYTES = 65536  # no datagram is longer
_DATAGRAMS_A_TURN = 4096
_VALUES_A_LOOK = 200_000
_FULL_MS = 100  # no room before the next snapshot: then the kernel keeps what it can, and counts the rest
_BUFFER_BYTES = 1 << 20
# asm-generic/socket.h, linux/sock_diag.h (in 4.12): what the kernel counts of a socket, the dropped datagrams last.
# Read at each look: SO_RXQ_OVFL tells of a drop only with the next datagram, which may never come.
_SO_MEMINFO, _MEMINFO = 55, struct.Struct("=9I")
_STEPS = 1000  # of a window: so exactly is it kept when a latency came


class Arrived(NamedTuple):
    """What came since the last time."""

    batches: list[tuple[float, list[int]]]  # the moment (CLOCK_BOOTTIME, s), and latencies in ns that came then
    bad: int  # words that were no latency
    early: int  # pairs that were done before they were due


class LatencySocket:
    """Bound; reading never waits and is bounded."""

    def __init__(
        self, address: str, now: Callable[[], float] = boottime, step_s: float = 0.01, group: str | None = None
    ) -> None:
        """What comes within `step_s` came at the same moment. TunectlError where it cannot be bound.

        `group` may send to a path; without it, the group of this process.
        """
        self.address = address
        self.named_bad = ""  # a word of the last datagram with one that was no latency, or a pair out of order
        self._now, self._step_s = now, step_s
        self._file: tuple[int, int] | None = None  # of a path: its device and inode
        self._thread: threading.Thread | None = None
        where = check_socket(address)
        self._lock = threading.Lock()
        self._forget()
        of_network = socket.AF_INET6 if address.startswith("[") else socket.AF_INET
        self._socket = socket.socket(socket.AF_UNIX if where is None else of_network, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
            if where is None:
                self._bind_path(address, group)
            else:
                self._socket.bind(where)
        except OSError as error:
            self._socket.close()
            raise TunectlError(f"cannot receive latencies at {address}: {error.strerror or error}") from error
        self._end = os.eventfd(0, os.EFD_CLOEXEC)
        self._thread = threading.Thread(target=self._receive, name="tunectl-latency", daemon=True)
        self._thread.start()

    def _bind_path(self, path: str, group: str | None) -> None:
        _clear(path)
        self._socket.bind(path)
        self._file = _file(path)
        try:
            if group is not None:
                _give(path, group)
            os.chmod(path, 0o660)
        except OSError:
            os.unlink(path)  # nobody finds a socket that refuses those it is for
            raise

    @property
    def is_gone(self) -> bool:
        """Did somebody remove the path? Nobody can send there any more, and the kernel tells nobody."""
        return self._file is not None and _file(self.address) != self._file

    @property
    def dropped(self) -> int:
        """Datagrams that the kernel had no room for (UDP; a Unix socket refuses them instead)."""
        return int(_MEMINFO.unpack(self._socket.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size))[-1])

    def read(self) -> Arrived:
        """Every latency that came since the last time, up to a bound; the rest is there the next time."""
        with self._lock:
            self._take()
            arrived = Arrived(self._batches, self._bad, self._early)
            self._forget()
        return arrived

    def _forget(self) -> None:
        self._batches: list[tuple[float, list[int]]] = []
        self._held = self._bad = self._early = 0

    def _receive(self) -> None:
        """The thread: empties the socket whenever something is in it."""
        ready = select.poll()
        ready.register(self._end, select.POLLIN)
        ready.register(self._socket, select.POLLIN)
        ended = select.poll()  # not select(): it knows no descriptor above 1,023, and a large host's files are all open
        ended.register(self._end, select.POLLIN)
        while not any(fd == self._end for fd, _ in ready.poll()):
            with self._lock:
                self._take()
                full = self._held >= _VALUES_A_LOOK
            if full and ended.poll(_FULL_MS):
                return

    def _take(self) -> None:
        for _ in range(_DATAGRAMS_A_TURN):
            if self._held >= _VALUES_A_LOOK:
                return
            try:
                data, _, flags, _ = self._socket.recvmsg(_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:  # a pending error of the socket: taken by this call, and not of a datagram
                continue
            values, bad, early, named = parse(data, bool(flags & socket.MSG_TRUNC))
            self._bad += bad
            self._early += early
            self._held += len(values)
            self.named_bad = named or self.named_bad
            now = self._now()
            if values and self._batches and now < self._batches[-1][0] + self._step_s:
                self._batches[-1][1].extend(values)
            elif values:
                self._batches.append((now, values))

    def close(self) -> None:
        """Ends the thread, and removes the path where it is still this socket's."""
        if self._thread:
            os.eventfd_write(self._end, 1)
            self._thread.join()
            self._thread = None
            os.close(self._end)
        self._socket.close()
        if self._file is not None and not self.is_gone:
            with contextlib.suppress(OSError):
                os.unlink(self.address)
        self._file = None


def _give(path: str, group: str) -> None:
    """Whoever is in the group may send. OSError says what is missing."""
    from grp import getgrnam

    try:
        gid = getgrnam(group).gr_gid
    except KeyError:
        raise OSError(errno.ENOENT, f"there is no group {group}") from None
    if os.stat(path).st_gid == gid:
        return
    try:
        os.chown(path, -1, gid)
    except OSError as error:  # a group of somebody else's; EINVAL: one that the service's user namespace does not have
        why = f"it cannot be given to the group {group}: {error.strerror}; a service needs Group={group} in a drop-in"
        raise OSError(error.errno, why) from error


def _file(path: str) -> tuple[int, int] | None:
    """What stands there. No other file can have the inode of a socket that is open."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _clear(path: str) -> None:
    """Takes away a socket that nobody listens at any more; anything else there stays, and binding fails."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            if other.connect_ex(path) == errno.ECONNREFUSED:
                os.unlink(path)


_NAME = "latency"
_SUBJECT = "application"


class _Kept:
    """The socket and its windows. What came to an earlier one and was not looked at yet counts in the first slot."""

    def __init__(self, host: WatchedHost, address: str, earlier: _Kept | None) -> None:
        sla = host.config.monitor.sla
        self._open = partial(LatencySocket, address, host.now, sla.window_s / _STEPS, sla.socket_group)
        self.socket = self._open()
        self.windows = Windows(sla.window_s, partial(Messages, sla.p99_9_ns), judge_messages, host.taken_at)
        self.bad = self.early = self.dropped = 0
        self.drops: list[tuple[float, int]] = []  # in the slots that are judged: when, and how many more
        self._span_s = sla.window_s * (SLOTS + 1) / SLOTS
        self._left: Arrived | None = None  # when it was closed
        if earlier and earlier._left:
            self._add(earlier._left)

    def count(self, now: float) -> None:
        """What came since the look before goes into its windows."""
        self._add(self.socket.read())
        self.windows.turn(now)
        before, self.dropped = self.dropped, self.socket.dropped
        drops = (*self.drops, (now, self.dropped - before))
        self.drops = [(at, many) for at, many in drops if many > 0 and now - at < self._span_s]

    def _add(self, arrived: Arrived) -> None:
        self.bad += arrived.bad
        self.early += arrived.early
        for moment, values in arrived.batches:
            self.windows.at(moment).add(values)

    def heal(self) -> str:
        """Binds again where the path was removed; why that cannot be, or "". Tried again with every snapshot."""
        if not self.socket.is_gone:
            return ""
        try:
            fresh = self._open()
        except TunectlError as error:
            return error.message
        self.socket.close()
        self.socket = fresh
        import logging  # slow to import, and only for this message

        log = logging.getLogger("tunectl.monitor.latency")
        log.warning("somebody removed %s: it is there again; what was sent meanwhile is not known", fresh.address)
        return ""

    def close(self) -> None:
        self._left = self.socket.read()
        self.socket.close()


def read(host: WatchedHost) -> Iterator[Sample]:
    """latency_p99_9_ns and the like of subject `application`: the worst window since the look before."""
    sla = host.config.monitor.sla
    address = sla.socket
    if address is None or not host.root.live:
        host.let_go(_NAME)
        why = "no socket is named ([monitor.sla])" if address is None else "a recorded host has no application"
        yield Sample("latency_max_ns", _SUBJECT, None, _NAME, Freshness.ABSENT, why)
        return
    if host.beside:
        yield Sample("latency_max_ns", _SUBJECT, None, _NAME, Freshness.STALE, ALONE)
        return
    try:
        # The largest latency is judged by the rule: another limit for it needs no other windows.
        asked = (address, sla.socket_group, sla.window_s, sla.p99_9_ns)
        kept = host.keep_on(_NAME, asked, lambda old: _Kept(host, address, old))
    except TunectlError as error:  # tried again with every snapshot
        yield Sample("latency_max_ns", _SUBJECT, None, _NAME, Freshness.NO_DATA, error.message)
        return
    kept.count(host.taken_at)
    lost = kept.heal() or kept.windows.silence
    if lost:
        # Counters go on being fresh, and the source says nothing all the same.
        yield Sample("source", _NAME, None, _NAME, Freshness.NO_DATA, "; ".join(filter(None, (lost, _note(kept)))))
    yield from kept.windows.samples(_SUBJECT, _NAME, note=_note(kept))
    if not (kept.windows.has_heard or kept.bad or kept.early or kept.dropped):
        return  # nothing ever came: there is nothing fresh to say
    yield Sample("latency_bad_input", _SUBJECT, kept.bad, _NAME)
    yield Sample("latency_bad_pairs", _SUBJECT, kept.early, _NAME)
    yield Sample("latency_dropped", _SUBJECT, kept.dropped, _NAME)
    yield Sample("latency_window_dropped", _SUBJECT, sum(many for _, many in kept.drops), _NAME)


def _note(kept: _Kept) -> str:
    parts = []
    if kept.bad:
        parts.append(f"words that were no latency in ns, so far: {kept.bad}")
    if kept.early:
        parts.append(f"pairs that were done before they were due, so far: {kept.early}")
    if kept.socket.named_bad:
        parts.append(f'lately "{kept.socket.named_bad}"')
    if kept.dropped:
        parts.append(f"{kept.dropped} datagrams so far were dropped by the kernel")
    return "; ".join(parts)


SOURCE = Source(
    _NAME,
    ("the datagram socket of [monitor.sla]",),
    "nobody; an application that sends to a Unix socket does so with MSG_DONTWAIT",
    "the windows that ended since the snapshot before, wherever they began",
    read,
)
