"""Alerts on disk until their receiver has acknowledged them: one file a notifier, one line an alert.

A line is a mark, a CRC-32, a JSON object. `+` waits, `-` is done. An acknowledgement is one byte written over another,
in place: it needs no space on a full disk, and a crash leaves the one or the other. When nothing waits, the file is
empty. A line is on disk before `append` returns; one that was cut off by a crash was never promised to anybody.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import suppress
from typing import Any, NamedTuple

from tunectl.durable import sync_directory
from tunectl.monitor.model import Alert, Severity, Status
from tunectl.tuning.records import decode, line_of

_WAITS, _DONE = b"+", b"-"
_LONGEST = 64 << 20  # bytes; what is larger is no spool of ours
_SLACK = 1 << 20  # bytes of done lines that are carried along before the file is written anew


class Found(NamedTuple):
    """What an earlier process left behind."""

    waiting: tuple[tuple[int, Alert], ...]  # where its line stands, and the alert; oldest first
    damaged: int  # lines that are not as they were written


class Spool:
    """The file of one notifier. Every method raises OSError; what is in memory is the caller's."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = -1
        self._size = 0
        self._waiting: dict[int, int] = {}  # offset: length

    def open(self) -> Found:
        """Makes what is missing, takes the lock (BlockingIOError: another monitor has it), reads what is there."""
        os.makedirs(os.path.dirname(self.path), mode=0o750, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(self.path, flags, 0o640)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(fd).st_size > _LONGEST:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
            data = _read(fd)
            found = Found(tuple(_waiting(data)), _damaged(data))
            sync_directory(os.path.dirname(self.path))
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        self._size = data.rfind(b"\n") + 1  # a line that was cut off is written over
        self._waiting = {offset: data.index(b"\n", offset) + 1 - offset for offset, _ in found.waiting}
        self._tidy()
        return found

    @property
    def is_open(self) -> bool:
        """Is there a file to write to?"""
        return self._fd >= 0

    def append(self, alerts: Sequence[Alert]) -> list[int]:
        """All of them in one write, on disk when this returns; where each stands. On OSError none of them is there."""
        lines = [_WAITS + b" " + line_of(alert._asdict()) for alert in alerts]
        data = b"".join(lines)
        try:
            if os.pwrite(self._fd, data, self._size) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._fd)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._fd, self._size)
            raise
        offsets = []
        for line in lines:
            offsets.append(self._size)
            self._waiting[self._size] = len(line)
            self._size += len(line)
        return offsets

    def done(self, offsets: Iterable[int]) -> None:
        """These need not be delivered any more."""
        for offset in offsets:
            os.pwrite(self._fd, _DONE, offset)
            self._waiting.pop(offset, None)
        os.fsync(self._fd)
        self._tidy()

    def _tidy(self) -> None:
        if not self._waiting:
            os.ftruncate(self._fd, 0)
            self._size = 0

    @property
    def untidy(self) -> bool:
        """Is there more done than is worth carrying along?"""
        return self._size > _SLACK + 2 * sum(self._waiting.values())

    def rewrite(self) -> dict[int, int]:
        """Writes a new file of what waits, atomically; where each line stood and where it stands now."""
        moved: dict[int, int] = {}
        data = bytearray()
        for offset, length in self._waiting.items():
            moved[offset] = len(data)
            data += os.pread(self._fd, length, offset)
        new = f"{self.path}.new"
        fd = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.pwrite(fd, data, 0) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(fd)
            os.rename(new, self.path)
        except BaseException:
            os.close(fd)
            with suppress(OSError):
                os.unlink(new)
            raise
        os.close(self._fd)
        self._fd, self._size = fd, len(data)
        self._waiting = {moved[offset]: length for offset, length in self._waiting.items()}
        with suppress(OSError):  # the new file stands; what is lost with the power is only its tidiness
            sync_directory(os.path.dirname(self.path))
        return moved

    def close(self) -> None:
        """Gives the lock back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def orphans(directory: str, names: Set[str]) -> list[str]:
    """The spools in `directory` in which something waits, and that belong to none of these notifiers."""
    try:
        with os.scandir(directory) as found:
            files = [file.name for file in found if file.name.endswith(".spool") and file.stat().st_size]
    except OSError:
        return []
    return sorted(name for name in files if name.removesuffix(".spool") not in names)


def _read(fd: int) -> bytes:
    data = bytearray()
    while part := os.pread(fd, 1 << 20, len(data)):
        data += part
    return bytes(data)


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Each whole line with its offset; the last, where no newline ends it, was cut off and is none."""
    offset = 0
    for line in data.split(b"\n")[:-1]:
        yield offset, line
        offset += len(line) + 1


def _waiting(data: bytes) -> Iterator[tuple[int, Alert]]:
    for offset, line in _lines(data):
        alert = _alert(line)
        if alert is not None and line.startswith(_WAITS):
            yield offset, alert


def _damaged(data: bytes) -> int:
    return sum(not line.startswith(_DONE + b" ") and _alert(line) is None for _, line in _lines(data))


def _alert(line: bytes) -> Alert | None:
    """The alert of a line; None where the line is not as it was written."""
    if line[:2] not in (_WAITS + b" ", _DONE + b" "):
        return None
    record: dict[str, Any] | None = decode(line[2:])
    if record is None:
        return None
    try:
        return Alert(**{**record, "status": Status(record["status"]), "severity": Severity(record["severity"])})
    except (KeyError, TypeError, ValueError):  # another version's
        return None
