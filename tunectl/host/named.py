"""The way to a file that another file names, such as the script of a cron job: no part of it may be a user's to choose.

A user can put a FIFO, a device, or a link to what has no end, in the place of a script. So the way is walked part by
part, nothing is opened on it (O_PATH), and what is opened at its end is what was looked at: nobody can exchange it.
Below the root of a recorded host its owner counts as root. Source: open(2), O_PATH; path_resolution(7).
"""

import errno
import os
import stat
from collections.abc import Collection
from contextlib import closing

from tunectl.durable import read_up_to, require_regular, too_large
from tunectl.host.refusals import Doubt, NotFollowedError, doubt_of

_STEP = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_STEPS = 400  # parts of paths and of the targets of links: a link to itself has no end
_NO_FILES = frozenset({"proc", "sys", "dev"})  # to read there may wait for ever, or take from others what they wait for


def read_named(top: str, path: str, largest: int) -> bytes:
    """The whole of a regular file below `top`. OSError for anything else, and for more than `largest` bytes.

    NotFollowedError where somebody but root may choose what it holds: then it has not been opened.
    """
    with closing(_Way(top, path)) as way:
        require_regular(way.end)
        size = os.fstat(way.end).st_size
        if size > largest:
            raise too_large(largest)
        way.require_roots()
        if not size:  # what a kernel makes up, wherever it is mounted
            return b""
        fd = os.open(f"/proc/self/fd/{way.end}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return read_up_to(fd, largest)
        finally:
            os.close(fd)


def check_named(top: str, path: str) -> None:
    """OSError where there is no such file or directory; NotFollowedError as in read_named()."""
    with closing(_Way(top, path)) as way:
        way.require_roots()


def doubts(top: str, path: str, trusted: Collection[int]) -> list[Doubt]:
    """Why others than the `trusted` users may choose what a file below `top` holds. OSError where it is not there."""
    with closing(_Way(top, path, trusted, nowhere=())) as way:
        return list(dict.fromkeys(way.doubts))


class _Way:
    """The directories from `top` to the end of a path, held so that a link's `..` means what it meant."""

    def __init__(
        self, top: str, path: str, trusted: Collection[int] = (), nowhere: Collection[str] = _NO_FILES
    ) -> None:
        self._held = [("", os.open(top, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))]
        owner = os.fstat(self.end)
        self._users, self._groups = {0, owner.st_uid, *trusted}, {0, owner.st_gid}
        self._nowhere = nowhere
        self.doubts: list[Doubt] = []
        try:
            self._go(path)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Nothing of the way is held any more."""
        self._back_to(0)

    def require_roots(self) -> None:
        """NotFollowedError where somebody but root may choose what stands at the end."""
        if self.doubts:
            raise NotFollowedError(str(self.doubts[0]))

    @property
    def end(self) -> int:
        return self._held[-1][1]

    def _go(self, path: str) -> None:
        todo = _parts(path)
        for _ in range(_MOST_STEPS):
            if not todo:
                return
            part = todo.pop()
            if part == "..":
                self._back_to(max(1, len(self._held) - 1))
                continue
            if part in self._nowhere and len(self._held) == 1:
                raise OSError(errno.EINVAL, f"not followed, because it is in /{part}")
            fd = os.open(part, _STEP, dir_fd=self.end)
            self._held.append((part, fd))
            status = os.fstat(fd)
            place = "/".join(name for name, _ in self._held)
            if doubt := doubt_of(place, status, self._users, self._groups):
                self.doubts.append(doubt)
            if stat.S_ISLNK(status.st_mode):
                target = os.readlink("", dir_fd=fd)
                self._back_to(1 if target.startswith("/") else len(self._held) - 1)
                todo += _parts(target)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def _back_to(self, count: int) -> None:
        """Leaves all but the first `count` of what is held."""
        while len(self._held) > count:
            os.close(self._held.pop()[1])


def _parts(path: str) -> list[str]:
    """The parts of a path, the last one first."""
    if "\0" in path:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]
