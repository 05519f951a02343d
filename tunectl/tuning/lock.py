"""One writer at a time: a lock file in the state directory."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tunectl.durable import make_directories
from tunectl.errors import TunectlError
from tunectl.host import lockfile
from tunectl.host.run import INHERITED

NAME = "lock"
_POLL_S = 0.1


def make_directory(directory: str) -> tuple[str, ...]:
    """The state directory. Returns the directories that had to be made.

    Anyone may read it: without root, `verify` must know what the kernel refused. What apply writes is no secret.
    """
    try:
        return make_directories(directory)
    except OSError as error:
        raise TunectlError(f"cannot make the state directory {directory}: {error.strerror}") from error


class DirectoryGoneError(TunectlError):
    """A `restore` that came to its end took the state directory away, while its lock was waited for."""


@dataclass
class Lock:
    """A lock that is or was held."""

    path: str
    trouble: str = ""  # why its file could not be removed in the end


@contextmanager
def hold(directory: str, wait_s: float) -> Iterator[Lock]:
    """Holds the lock. TunectlError, naming the holder, where another has it for longer than `wait_s` seconds.

    A program started meanwhile holds it as well: killed in the middle, we leave an update-grub that is still at work.
    """
    lock = Lock(os.path.join(directory, NAME))
    deadline = time.monotonic() + wait_s
    while (fd := _take(lock.path)) is None:
        if time.monotonic() >= deadline:
            raise _occupied(lock.path)
        time.sleep(_POLL_S)
    INHERITED.add(fd)
    try:
        yield lock
    finally:
        INHERITED.discard(fd)
        try:
            lockfile.remove(lock.path)
        except OSError as error:
            lock.trouble = f"cannot remove the lock {lock.path}: {error.strerror}"
        os.close(fd)


def _take(path: str) -> int | None:
    try:
        return lockfile.take(path)
    except FileNotFoundError as error:
        raise DirectoryGoneError(f"the state directory {os.path.dirname(path)} went away") from error
    except OSError as error:
        raise TunectlError(f"cannot take the lock {path}: {error.strerror or error}") from error


def _occupied(path: str) -> TunectlError:
    holder = lockfile.holder_of(path)
    unseen = f", or remove {path} where no tunectl is at work" if holder == lockfile.UNSEEN else ""
    return TunectlError(f"another tunectl is at work: {path} is held by {holder}", f"wait for it to end{unseen}")
