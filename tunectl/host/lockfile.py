"""A lock that a stranger cannot hold: flock(2) on a file that nobody else can open.

flock(2) asks for no right to write: whoever can open a file to read can hold it for ever. So the file is private, and
one that is not is replaced, unless a process holds it that may work there: root's, ours, or one of the directory's
owner. Who holds it the kernel says, not the file. Source: proc_pid_fdinfo(5), "lock"; fs/locks.c (show_fd_locks).
"""

import fcntl
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from tunectl import durable
from tunectl.host.procs import hidden_threads, read_pids, users_of
from tunectl.host.sysroot import Sysroot
from tunectl.wording import few

UNSEEN = "a process that cannot be seen from here"


class Holder(NamedTuple):
    """A process that holds a lock. Its name is its own choice."""

    pid: int
    users: frozenset[int]  # more than one where a user started a program of root's: it is in that user's hand
    name: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.name!r}, uid {few(sorted(self.users))})"


def take(path: str) -> int | None:
    """An open file, locked; None while another process has it. OSError, FileNotFoundError where its directory is gone.

    Whoever waits tries again: the file may be another one by then.
    """
    with _opened(path, os.O_CREAT) as fd:
        is_free = _is_locked(fd)
        info = os.fstat(fd)
        if info.st_uid in _rightful(path) and not stat.S_IMODE(info.st_mode) & 0o077:
            return os.dup(fd) if is_free and _stands(fd, path) else None
        return _in_place_of(fd, path) if is_free or _is_strangers(fd, path) else None


def remove(path: str) -> None:
    """Takes the file away, while it is held: a process that waits for it sees that, and makes a new one. OSError."""
    for name in (_beside(path), path):
        with suppress(FileNotFoundError):
            os.unlink(name)


def holder_of(path: str) -> str:
    """Who holds a lock, for a message. Never raises."""
    try:
        with _opened(path) as fd:
            return few(_holders(fd)[0]) or UNSEEN
    except OSError:
        return UNSEEN


def holder(pid: int, users: Iterable[int]) -> Holder:
    """A process that is known to hold a lock."""
    return Holder(pid, frozenset(users), Sysroot("/").get(f"proc/{pid}/comm"))


@contextmanager
def _opened(path: str, create: int = 0) -> Iterator[int]:
    fd = os.open(path, os.O_RDWR | create | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        durable.require_regular(fd)
        yield fd
    finally:
        os.close(fd)


def _beside(path: str) -> str:
    return f"{path}.new"


def _is_locked(fd: int) -> bool:
    """Locks an open file, unless somebody else has."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _stands(fd: int, path: str) -> bool:
    """Is the open file still the one at this path?"""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False


def _rightful(path: str) -> set[int]:
    """The users whose processes may hold the lock."""
    return {0, os.geteuid(), os.stat(os.path.dirname(path) or ".").st_uid}


def _is_strangers(fd: int, path: str) -> bool:
    """Is it known that no process holds the file that may? One that holds it and is seen leaves no room for another."""
    seen, hidden = _holders(fd)
    return not any(one.users <= _rightful(path) for one in seen) and (bool(seen) or not hidden)


def _in_place_of(open_to_all: int, path: str) -> int | None:
    """A private file, locked, in the place of one that is not.

    Only who has locked the new file while it stands beside may move it there: of two processes one does.
    """
    with _opened(_beside(path), os.O_CREAT) as fd:
        if not (_is_locked(fd) and _stands(fd, _beside(path)) and _stands(open_to_all, path)):
            return None
        durable.rename(_beside(path), path)
        return os.dup(fd)


def _holders(fd: int) -> tuple[list[Holder], bool]:
    """The processes in which the file is open and locked; may there be others that cannot be seen from here?

    To see those of others takes CAP_SYS_PTRACE.
    """
    root = Sysroot("/")
    name = _name_of(root, fd)
    seen, hidden = [], not name or bool(hidden_threads(root))
    for pid in read_pids(root):
        try:
            numbers = root.names(f"proc/{pid}/fdinfo")
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        except OSError:
            hidden = True
            continue
        texts = (root.get(f"proc/{pid}/fdinfo/{number}") for number in numbers)
        if any(" FLOCK " in line and name in line.split() for text in texts for line in text.splitlines()):
            seen.append(holder(pid, users_of(root, pid)))
    return seen, hidden


def _name_of(root: Sysroot, fd: int) -> str:
    """`fe:00:9978033`: the open file in the kernel's lists of locks; "" where that is not known.

    A lock of the other kind tells, which flock(2) does not heed: on btrfs and overlayfs stat(2) has other numbers.
    """
    with suppress(OSError):
        fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        locks = root.get(f"proc/self/fdinfo/{fd}")
        fcntl.lockf(fd, fcntl.LOCK_UN)
        return next((line.split()[-3] for line in locks.splitlines() if " POSIX " in line), "")
    return ""
