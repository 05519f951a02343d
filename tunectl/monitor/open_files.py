"""Small files that stay open from snapshot to snapshot: of one number each, or of any text.

pread(2) at 0 makes the kernel print the attribute again (fs/seq_file.c, fs/kernfs/file.c); what has been unplugged
answers ENODEV, and is opened again, for it may have been plugged in again.
"""

import errno
import os
import resource
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from typing import Generic, TypeVar

from tunectl.host.sysroot import Sysroot

K = TypeVar("K", bound=Hashable)
_SIZE = 64  # a number and a newline
_PAGE = 4096
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})
_MANY = 65536
_SELDOM = 16  # a file that never was there is looked for in one of so many rounds


class _File(Generic[K]):
    """One file; `fd` is -1 while it is not open."""

    __slots__ = ("fd", "key", "path", "raw", "seen")

    def __init__(self, key: K, path: str) -> None:
        self.key = key
        self.path = path
        self.fd = -1
        self.raw: bytes | int = 0  # what was read last, or the errno
        self.seen = False  # was it ever there?


class Numbers(Generic[K]):
    """The numbers of many files by key: `value` what each holds (None where it holds none), `problem` why not.

    `absent` are those whose file is not there; a file that cannot be read has a problem and is not absent.
    """

    def __init__(self, root: Sysroot, paths: Mapping[K, str]) -> None:
        self.value: dict[K, int | None] = dict.fromkeys(paths)
        self.problem: dict[K, str] = {}
        self.absent: set[K] = set()
        self._root = root
        self._files = {key: _File(key, path) for key, path in paths.items()}
        self._present: list[_File[K]] = []  # what was ever there
        self._missing = list(self._files.values())
        self._first = True
        self._read = os.pread if root.live else _pread_recorded

    def refresh(self, keys: Iterable[K] | None = None) -> list[K]:
        """Reads them all, or some; returns the keys of those that changed.

        A file that never was there is not looked for every time: on a host without cpufreq that is all of them.
        """
        changed = []
        read = self._read
        if keys is None:
            count = len(self._missing) if self._first else -(-len(self._missing) // _SELDOM)
            self._first = False
            turn = self._missing[:count]
            self._missing = self._missing[count:] + turn
            files = [*self._present, *turn]
        else:
            files = [self._files[key] for key in keys]
        for file in files:
            try:
                raw: bytes | int = read(file.fd, _SIZE, 0) if file.fd >= 0 else self._reopen(file)
            except OSError:
                raw = self._reopen(file)
            if raw != file.raw:
                file.raw = raw
                self._decode(file)
                changed.append(file.key)
        if changed and (found := [file for file in self._missing if file.seen]):
            self._present += found
            self._missing = [file for file in self._missing if not file.seen]
        return changed

    def _reopen(self, file: _File[K]) -> bytes | int:
        """What it holds, or the errno; it stays open where it could be read."""
        _close(file)
        file.fd, held = _opened(self._root, file.path, _SIZE)
        return held

    def _decode(self, file: _File[K]) -> None:
        key, raw = file.key, file.raw
        self.problem.pop(key, None)
        self.absent.discard(key)
        file.seen = file.seen or raw not in _ABSENT
        self.value[key] = None
        if isinstance(raw, int):
            if raw in _ABSENT:
                self.absent.add(key)
            self.problem[key] = f"/{file.path}: {os.strerror(raw)}"
            return
        try:
            self.value[key] = int(raw)
        except ValueError:
            shown = raw[:20].decode("ascii", "backslashreplace").strip()
            self.problem[key] = f"/{file.path} holds {shown!r}, no number"

    def close(self) -> None:
        """Lets go of the files."""
        for file in self._files.values():
            _close(file)

    __del__ = close


class Texts:
    """The text of many files by path. As many as there is room for stay open, which costs the kernel a page each."""

    def __init__(self, root: Sysroot, room: int) -> None:
        self._root = root
        self._room = room
        self._fds: dict[str, int] = {}
        self._read = os.pread if root.live else _pread_recorded

    def text(self, path: str) -> bytes | int:
        """What the file holds now, one page at most; the errno where it cannot be read."""
        fd = self._fds.get(path)
        if fd is not None:
            try:
                return self._read(fd, _PAGE, 0)
            except OSError:  # unplugged, or plugged in again
                os.close(self._fds.pop(path))
        fd, held = _opened(self._root, path, _PAGE)
        if fd >= 0 and len(self._fds) < self._room:
            self._fds[path] = fd
        elif fd >= 0:
            os.close(fd)
        return held

    def keep(self, paths: Iterable[str]) -> None:
        """Lets go of all others."""
        for path in self._fds.keys() - set(paths):
            os.close(self._fds.pop(path))

    def close(self) -> None:
        """Lets go of all."""
        self.keep(())

    __del__ = close


def allow_many_files() -> int:
    """Raises this process's own limit as far as it may, and returns it: two files a CPU and more are held open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MANY if hard == resource.RLIM_INFINITY else min(hard, _MANY)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return wanted
    return _MANY if soft == resource.RLIM_INFINITY else soft


def _opened(root: Sysroot, path: str, size: int) -> tuple[int, bytes | int]:
    """The open file and what it holds; -1 and the errno where it cannot be read."""
    fd = -1
    try:
        fd = root.open(path)
        return fd, os.pread(fd, size, 0)
    except OSError as error:
        if fd >= 0:
            os.close(fd)
        return -1, error.errno or errno.EIO


def _close(file: _File[K]) -> None:
    if file.fd >= 0:
        os.close(file.fd)
        file.fd = -1


def _pread_recorded(fd: int, size: int, offset: int) -> bytes:
    """A recorded host's file that was replaced or removed must not live on because it is open."""
    if not os.fstat(fd).st_nlink:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
    return os.pread(fd, size, offset)
