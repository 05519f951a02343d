"""A file that somebody else may have put there, read whole: a regular one, up to a size. Nobody waits for a FIFO."""

from __future__ import annotations

import errno
import os

from tunectl.durable import require_regular

_CHUNK = 1 << 20


def read_regular(path: str, largest: int, *, follow: bool = True) -> bytes:
    """The bytes of a file. OSError where it is not regular, exceeds `largest` bytes, or (not `follow`) is a link.

    A FIFO would keep its reader waiting for a writer, a device may have no end.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW))
    try:
        require_regular(fd)
        return read_up_to(fd, largest)
    finally:
        os.close(fd)


def read_up_to(fd: int, largest: int) -> bytes:
    """All that an open file still has. OSError for more than `largest` bytes: files of /proc do not say their size."""
    chunks, size = [], os.fstat(fd).st_size
    while size <= largest and (chunk := os.read(fd, _CHUNK)):
        chunks.append(chunk)
        size = sum(map(len, chunks))
    if size > largest:
        raise too_large(largest)
    return b"".join(chunks)


def too_large(largest: int) -> OSError:
    """What is said of a file with more bytes."""
    shown = f"{largest >> 20} MiB" if largest >= 1 << 20 else f"{largest >> 10} KiB"
    return OSError(errno.EFBIG, f"is larger than {shown}")
