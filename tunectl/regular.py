"""A file that somebody else may have put there or named, read whole: up to a size, and nobody waits for ever."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time

from tunectl.durable import require_regular

_CHUNK = 1 << 20
_FIRST_S, _ALL_S = 5.0, 3600.0  # a host that is asked through a pipe may measure for a while before it answers


def open_regular(path: str, *, follow: bool = True) -> int:
    """A file as a descriptor that the caller closes. OSError where it is not regular, or (not `follow`) is a link.

    A FIFO would keep its reader waiting for a writer, a device may have no end.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW))
    try:
        require_regular(fd)
    except OSError:
        os.close(fd)
        raise
    return fd


def read_regular(path: str, largest: int, *, follow: bool = True) -> bytes:
    """The bytes of a file that open_regular() opens. OSError also where it exceeds `largest` bytes."""
    fd = open_regular(path, follow=follow)
    try:
        return read_up_to(fd, largest)
    finally:
        os.close(fd)


def read_given(path: str, largest: int) -> bytes:
    """The bytes of a file or pipe that a user named on the command line; `-` is standard input.

    OSError where it is neither, exceeds `largest` bytes, or keeps us waiting: 5 s for the first byte of a FIFO, which
    may have no writer, and an hour for all of any pipe.
    """
    if path == "-":
        return _read_stdin(largest)
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if stat.S_ISFIFO(os.fstat(fd).st_mode):
            is_named = not os.readlink(f"/proc/self/fd/{fd}").startswith("pipe:")
            return _read_pipe(fd, largest, _FIRST_S if is_named else _ALL_S)
        require_regular(fd)
        return read_up_to(fd, largest)
    finally:
        os.close(fd)


def _read_stdin(largest: int) -> bytes:
    if sys.stdin is None:
        raise OSError(errno.EBADF, "stdin is closed")
    return _read_pipe(sys.stdin.fileno(), largest, _ALL_S)


def _read_pipe(fd: int, largest: int, first_s: float) -> bytes:
    """All that comes through it. A FIFO that nobody has opened for writing is not at its end: poll(2) tells."""
    import select  # few commands read a pipe

    chunks: list[bytes] = []
    size, end = 0, time.monotonic() + first_s
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while size <= largest:
        if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
            raise TimeoutError(errno.ETIMEDOUT, f"is a pipe, and {'its end' if chunks else 'nothing'} came in time")
        if not (chunk := os.read(fd, _CHUNK)):
            break
        end += 0 if chunks else _ALL_S - first_s
        chunks.append(chunk)
        size += len(chunk)
    return _within(largest, size, chunks)


def read_up_to(fd: int, largest: int) -> bytes:
    """All that an open file still has. OSError for more than `largest` bytes: files of /proc do not say their size."""
    chunks, size = [], os.fstat(fd).st_size
    while size <= largest and (chunk := os.read(fd, _CHUNK)):
        chunks.append(chunk)
        size = sum(map(len, chunks))
    return _within(largest, size, chunks)


def _within(largest: int, size: int, chunks: list[bytes]) -> bytes:
    if size > largest:
        raise too_large(largest)
    return b"".join(chunks)


def too_large(largest: int) -> OSError:
    """What is said of a file with more bytes."""
    shown = f"{largest >> 20} MiB" if largest >= 1 << 20 else f"{largest >> 10} KiB"
    return OSError(errno.EFBIG, f"is larger than {shown}")
