"""The way to a file that another file names, such as the script of a cron job: no part of it may be a user's to choose.

A user can put a FIFO, a device, or a link to what has no end, in the place of a script. So the way is walked part by
part, nothing is opened on it (O_PATH), and what is opened at its end is what was looked at: nobody can exchange it.
Below the root of a recorded host its owner counts as root. Source: open(2), O_PATH; path_resolution(7).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from tunectl.durable import require_regular
from tunectl.host.refusals import NotFollowedError
from tunectl.regular import read_up_to, too_large

_STEP = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_STEPS = 400  # parts of paths and of the targets of links: a link to itself has no end
_NO_FILES = frozenset({"proc", "sys", "dev"})  # to read there may wait for ever, or take from others what they wait for


def read_named(top: str, path: str, largest: int) -> bytes:
    """The whole of a regular file below `top`. OSError for anything else, and for more than `largest` bytes.

    NotFollowedError where somebody but root may choose what it holds: then it has not been opened.
    """
    with _walked(top, path) as (fd, foreign):
        require_regular(fd)
        size = os.fstat(fd).st_size
        if size > largest:
            raise too_large(largest)
        if foreign:
            raise NotFollowedError(foreign)
        return _content(fd, largest) if size else b""  # what a kernel makes up has no size, wherever it is mounted


def check_named(top: str, path: str) -> None:
    """OSError where there is no such file or directory; NotFollowedError as in read_named()."""
    with _walked(top, path) as (_, foreign):
        if foreign:
            raise NotFollowedError(foreign)


def _content(found: int, largest: int) -> bytes:
    fd = os.open(f"/proc/self/fd/{found}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return read_up_to(fd, largest)
    finally:
        os.close(fd)


@contextmanager
def _walked(top: str, path: str) -> Iterator[tuple[int, str]]:
    """(what stands at the end of a path, not opened; what of the way is not root's, "" for nothing)."""
    way = _Way(top)
    try:
        way.go(path)
        yield way.end, way.foreign
    finally:
        way.back_to(0)


class _Way:
    """The directories from `top` to where the walk is, held so that a link's `..` means what it meant."""

    def __init__(self, top: str) -> None:
        self._held = [("", os.open(top, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))]
        owner = os.fstat(self.end)
        self._users, self._groups = {0, owner.st_uid}, {0, owner.st_gid}
        self.foreign = ""

    @property
    def end(self) -> int:
        return self._held[-1][1]

    def go(self, path: str) -> None:
        todo = _parts(path)
        for _ in range(_MOST_STEPS):
            if not todo:
                return
            part = todo.pop()
            if part == "..":
                self.back_to(max(1, len(self._held) - 1))
            else:
                todo += self._enter(part)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def back_to(self, count: int) -> None:
        """Leaves all but the first `count` of what is held."""
        while len(self._held) > count:
            os.close(self._held.pop()[1])

    def _enter(self, part: str) -> list[str]:
        """Goes to a part of the present directory; of a link, hands back where it leads."""
        if part in _NO_FILES and len(self._held) == 1:
            raise OSError(errno.EINVAL, f"not followed, because it is in /{part}")
        fd = os.open(part, _STEP, dir_fd=self.end)
        self._held.append((part, fd))
        status = os.fstat(fd)
        self.foreign = self.foreign or self._not_roots(status)
        if not stat.S_ISLNK(status.st_mode):
            return []
        target = os.readlink("", dir_fd=fd)
        self.back_to(1 if target.startswith("/") else len(self._held) - 1)
        return _parts(target)

    def _not_roots(self, status: os.stat_result) -> str:
        """Why what the walk has come to may be another than root's; in a sticky directory each has only his own."""
        place = "/".join(name for name, _ in self._held)
        if status.st_uid not in self._users:
            return f"{place} belongs to UID {status.st_uid}, not to root"
        mode, others = status.st_mode, stat.S_IWOTH | (0 if status.st_gid in self._groups else stat.S_IWGRP)
        if stat.S_ISLNK(mode) or not mode & others or (stat.S_ISDIR(mode) and mode & stat.S_ISVTX):
            return ""
        return f"{place} may be written by others than root"


def _parts(path: str) -> list[str]:
    """The parts of a path, the last one first."""
    if "\0" in path:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]
