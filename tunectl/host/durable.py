"""What makes a file last: all its bytes written, and its directory on disk."""

from __future__ import annotations

import errno
import os


def write_all(fd: int, data: bytes) -> None:
    """All of it, in as many write(2)s as that takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync_directory(directory: str) -> None:
    """What was made, renamed or removed in a directory is on disk when this returns."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a directory of the cgroup file system is on no disk
            raise
    finally:
        os.close(fd)
