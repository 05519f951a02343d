"""One writer at a time: a lock file in the state directory that names its holder."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from tunectl.durable import require_regular, sync_directory
from tunectl.errors import TunectlError
from tunectl.host.run import INHERITED

NAME = "lock"
_POLL_S = 0.1


def make_directory(directory: str) -> tuple[str, ...]:
    """The state directory. Returns the directories that had to be made.

    Anyone may read it: without root, `verify` must know what the kernel refused. What apply writes is no secret.
    """
    missing: list[str] = []
    todo = directory
    while not os.path.isdir(todo) and os.path.dirname(todo) != todo:
        missing.append(todo)
        todo = os.path.dirname(todo)
    made: list[str] = []
    try:
        for path in reversed(missing):
            with suppress(FileExistsError):  # another tunectl was quicker: then it is that one's to remember
                os.mkdir(path, 0o755)
                made.append(path)
                os.chmod(path, 0o755)  # whatever the umask
                sync_directory(os.path.dirname(path))
    except OSError as error:
        remove_directories(made)
        raise TunectlError(f"cannot make the state directory {directory}: {error.strerror}") from error
    return tuple(made)


def remove_directories(made: Sequence[str]) -> None:
    """Directories that make_directory() made and that nothing came into go again. Never raises."""
    for path in reversed(made):
        with suppress(OSError):
            os.rmdir(path)


@dataclass
class Lock:
    """A lock that is or was held."""

    path: str
    trouble: str = ""  # why its file could not be removed in the end


@contextmanager
def hold(directory: str, purpose: str, wait_s: float) -> Iterator[Lock]:
    """Holds the lock. TunectlError, naming the holder, where another has it for longer than `wait_s` seconds.

    A program started meanwhile holds it as well: killed in the middle, we leave an update-grub that is still at work.
    """
    lock = Lock(os.path.join(directory, NAME))
    deadline = time.monotonic() + wait_s
    while (fd := _take(lock.path)) is None:
        if time.monotonic() >= deadline:
            holder = _holder(lock.path)
            raise TunectlError(f"another tunectl is at work: {holder} holds {lock.path}", "wait for it to end")
        time.sleep(_POLL_S)
    INHERITED.add(fd)
    try:
        with suppress(OSError):  # on a full disk the holder stays unnamed, and holds it all the same
            os.truncate(fd, 0)
            os.write(fd, f"process {os.getpid()} (tunectl {purpose})\n".encode())
        yield lock
    finally:
        INHERITED.discard(fd)
        try:
            os.unlink(lock.path)  # while it is held: a process that waits for it sees that, and makes a new one
        except FileNotFoundError:
            pass
        except OSError as error:
            lock.trouble = f"cannot remove the lock {lock.path}: {error.strerror}"
        os.close(fd)


def _take(path: str) -> int | None:
    try:
        require_regular(path)  # the holder removes it in the end
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    except OSError as error:
        raise TunectlError(f"cannot open the lock {path}: {error.strerror}") from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(fd), os.stat(path)):
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError as error:
        os.close(fd)
        raise TunectlError(f"cannot take the lock {path}: {error.strerror}") from error
    os.close(fd)
    return None


def _holder(path: str) -> str:
    try:
        with open(path) as file:
            return file.readline(200).strip() or "an unnamed process"
    except OSError:
        return "an unnamed process"
