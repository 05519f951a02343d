"""The one module that opens host files to read them: `Sysroot` reads below a root. host/writable.py also writes.

Paths are relative to the root and have no leading slash: `proc/cmdline`, `sys/devices/system/cpu/online`.
Those below `ethtool/` are files on a recorded host only; the running kernel is asked by netlink (host/ethtool.py).
A root other than `/` is a recorded host: links are followed inside it, never out of it.
"""

import errno
import os
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

from tunectl.durable import NOT_REGULAR, read_up_to
from tunectl.host import ethtool
from tunectl.host.attribute import read_attribute, text_of
from tunectl.host.named import check_named, doubts, read_named
from tunectl.host.refusals import DENIED, Doubt, NotFollowedError, Refusals

MARK = "tunectl-recording.json"  # tells a recording from any other tree below a root
LARGEST = 64 << 20  # bytes: /proc/interrupts of a machine with 512 CPUs is 20 MiB
LARGEST_NAMED = 1 << 20  # bytes of a file that another file names
# No kernel and no program writes such a number, and int() refuses it with an error that nobody expects.
_ENDLESS_NUMBER = bytes(100)
_AS_ZEROS = bytes(0 if byte in b"0123456789" else 1 for byte in range(256))
# Names of threads and interrupts may hold any bytes: at the most 64 in each of 4,096. Each costs a call to be escaped.
_MOST_ESCAPES = 1 << 20
_PART = 1 << 16
_NULL = os.makedev(1, 3)  # systemd masks a file by a link to it. Documentation/admin-guide/devices.txt
_READ = os.O_RDONLY | os.O_CLOEXEC
_T = TypeVar("_T")
_KERNELS_OWN = ("proc/", "sys/")  # nobody makes a FIFO or a device there
NOT_THERE = (FileNotFoundError, NotADirectoryError)  # the answer to lstat(2) where there is nothing
# Where one_look() remembers. What a directory's list has not, is not there: that does not hold in /boot, where vfat
# takes a name in either case. What is in /proc and /sys changes by itself, but for the line of this boot.
_REMEMBERED = ("etc/", "run/", "usr/", "lib/")
_READ_ONCE = (*_REMEMBERED, "proc/cmdline")

# What a missing, unplugged or switched-off thing answers. Absent is not an error.
ABSENT_ERRNOS = frozenset({errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.ENOTDIR, errno.EBUSY, errno.EOPNOTSUPP})


class _Look(NamedTuple):
    """What one look has found so far, by path."""

    names: dict[str, dict[str, None] | None]  # what is in a directory; None: there is no such directory
    files: dict[str, bytes]
    worked_out: dict[str, tuple[Any, Refusals]]  # by name; and what was denied to that
    values: dict[str, dict[str, str]]  # of a folder's directories (host/folder.py)


class Sysroot:
    """Reads the host's files below `root`. Every method may raise OSError, unless it says otherwise."""

    def __init__(self, root: str = "/") -> None:
        self.root = os.path.realpath(root)
        self.live = self.root == "/"
        self._prefix = "/" if self.live else self.root + "/"
        self._straight: dict[str, str] = {}  # directories of a recorded host that lie inside it -> where, from the root
        # On a recorded host the last component must not be a link that leaves the tree, nor a FIFO that blocks.
        self._flags = _READ | (0 if self.live else os.O_NOFOLLOW | os.O_NONBLOCK)
        self._noting: list[Refusals] = []
        self._look: _Look | None = None

    @contextmanager
    def one_look(self) -> Iterator[None]:
        """Within, configuration is read once: its rows ask for the same directories and files again and again.

        Only where nothing is written meanwhile. The next look remembers nothing of this one.
        """
        outer = self._look
        self._look = outer or _Look({}, {}, {}, {})
        try:
            yield
        finally:
            self._look = outer

    def values_of(self, folder: str) -> dict[str, str]:
        """Where this look remembers what the attributes below a folder hold; outside of one nobody remembers it."""
        return self._look.values.setdefault(folder, {}) if self._look else {}

    def once(self, name: str, work: Callable[[], _T]) -> _T:
        """What `work` finds on this host: asked once in a look, and what was denied to it is noted each time."""
        if self._look is None:
            return work()
        if name not in self._look.worked_out:
            with self.noting() as denied:
                found = work()
            self._look.worked_out[name] = (found, denied)
            return found
        known, denied = self._look.worked_out[name]
        for noted in self._noting:
            noted.update(denied)
        answer: _T = known
        return answer

    @contextmanager
    def noting(self) -> Iterator[Refusals]:
        """What was denied to this user within, also to the methods that never raise. Absent things are not noted."""
        noted = Refusals()
        self._noting.append(noted)
        try:
            yield noted
        finally:
            self._noting.remove(noted)

    def _note(self, path: str, error: OSError) -> None:
        """A denied path is noted as the file, or the directory above it, that this user may not look into."""
        if not self._noting or not (error.errno in DENIED or isinstance(error, NotFollowedError)):
            return
        while "/" in path and not self._may_stat(path):
            path = path.rpartition("/")[0]
        for noted in self._noting:
            noted.add(path, error)

    def _may_stat(self, path: str) -> bool:
        try:
            os.lstat(self._place(path))
        except OSError as error:
            return error.errno not in DENIED
        return True

    def path(self, path: str) -> str:
        """Where `path` lies on the machine tunectl runs on; for messages, not for opening."""
        return path if self.live and path.startswith(ethtool.PREFIX) else self._prefix + path

    @contextmanager
    def _noted(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._note(path, error)
            raise

    def open(self, path: str) -> int:
        """A file or directory, as a descriptor that the caller closes. OSError for anything else."""
        try:  # not _noted(): thousands of files are opened
            return self._open(path)
        except OSError as error:
            self._note(path, error)
            raise

    def _open(self, path: str) -> int:
        if self.live and path.startswith(ethtool.PREFIX):
            return ethtool.open_setting(path)
        if self.live and path.startswith(_KERNELS_OWN):
            return os.open(self._prefix + path, self._flags)
        try:
            if self.live:  # not to wait for somebody who writes to the other end of a FIFO
                return _checked(os.open(self._prefix + path, _READ | os.O_NONBLOCK), _NULL)
            return _checked(self._open_recorded(path))
        except OSError as error:
            if error.errno in (errno.ENXIO, errno.ENODEV):  # open(2) of a socket, of a device without a driver
                raise OSError(errno.EINVAL, NOT_REGULAR) from error
            raise

    def open_device(self, path: str) -> int:
        """A character device of the running host, to be asked and not written; the caller closes it."""
        if not self.live:
            raise OSError(errno.ENODATA, "a recorded host has no devices")
        fd = os.open(self._prefix + path, _READ | os.O_NONBLOCK)
        if not stat.S_ISCHR(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, "is no device")
        return fd

    def open_below(self, directory: int, path: str) -> int:
        """A file below an open directory; the caller knows that no link of a recorded host is on the way."""
        fd = os.open(path, self._flags, dir_fd=directory)
        return fd if self.live else _checked(fd)

    def mode_below(self, directory: int, path: str) -> int:
        """The permission bits of a file below an open directory, and of a link its own."""
        return stat.S_IMODE(os.stat(path, dir_fd=directory, follow_symlinks=False).st_mode)

    def _open_recorded(self, path: str) -> int:
        """Opens a file of a recorded host; where a link is on the way, what it means inside the root."""
        if not self._is_straight(path[: path.rfind("/") + 1]):
            as_directory = "/." if path.endswith("/.") else ""
            return os.open(self.resolve(path) + as_directory, self._flags)
        try:
            return os.open(self._prefix + path, self._flags)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOENT):
                raise
            place = self.resolve(path)
            if place == self._prefix + path:
                raise
            return os.open(place, self._flags)

    def _is_straight(self, directory: str) -> bool:
        """Does the kernel, which follows a link as this machine's own, find this directory inside the root?

        It is not opened for that: what a device outside does when it is opened is not ours to find out.
        """
        if directory in self._straight:
            return True
        try:
            fd = os.open(self._prefix + directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            real = f"{os.readlink(f'/proc/self/fd/{fd}')}/"
        finally:
            os.close(fd)
        straight = real.startswith(self._prefix)
        if straight:
            self._straight[directory] = real[len(self._prefix) :]
        return straight

    def resolve(self, path: str) -> str:
        """The real path of `path`, every link followed as the host would: inside its root.

        What is not there, or may not be looked at, counts as no link.
        """
        top = "" if self.live else self.root
        directory = path.rpartition("/")[0]
        while directory and f"{directory}/" not in self._straight:
            directory = directory.rpartition("/")[0]
        known = self._straight[f"{directory}/"] if directory else ""
        done = known.split("/")[:-1]
        todo = [part for part in reversed(path[len(directory) if known else 0 :].split("/")) if part not in ("", ".")]
        is_there = True  # what lies below something that is not there is no link either
        for _ in range(4096):
            if not todo:
                return "/".join([top, *done]) or "/"
            part = todo.pop()
            if part == "..":
                del done[-1:]
                is_there = True
                continue
            is_there, target = _look_at("/".join([top, *done, part])) if is_there else (False, None)
            if target is None:
                done.append(part)
                continue
            if target.startswith("/"):
                done.clear()
            todo.extend(p for p in reversed(target.split("/")) if p not in ("", "."))
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), self._prefix + path)

    def read_value(self, path: str) -> str:
        """An attribute, in one read where it fits a page, without its trailing newline."""
        return text_of(self.checked_numbers(read_attribute(self.open(path))))

    def read_bytes(self, path: str, size: int | None = None, offset: int = 0) -> bytes:
        """A whole file, and OSError where that is larger than any that is read; or at most `size` bytes of it."""
        look = self._look if size is None and path.startswith(_READ_ONCE) else None
        if look and path in look.files:
            return look.files[path]
        fd = self.open(path)
        try:
            if size is not None:
                return os.pread(fd, size, offset)
            data = read_up_to(fd, LARGEST)
        finally:
            os.close(fd)
        if look:
            look.files[path] = data
        return data

    def parts(self, path: str) -> Iterator[bytes]:
        """A file of any length, one read after the other. OSError where it is absent or may not be read."""
        fd = self.open(path)
        try:
            while part := os.read(fd, _PART):
                yield part
        finally:
            os.close(fd)

    def read_text(self, path: str) -> str:
        """A whole file as text; bytes that are not UTF-8 are shown as escapes. OSError where it is no text at all."""
        return _decoded(self.checked_numbers(self.read_bytes(path)))

    def read_named(self, path: str, largest: int) -> bytes:
        """As read_bytes(), of a file that another file names: host/named.py says which are read."""
        with self._noted(path):
            return read_named(self.root, path, largest)

    def check_named(self, path: str) -> None:
        """OSError where a file or directory that another file names is not there, or is not root's alone."""
        with self._noted(path):
            check_named(self.root, path)

    def doubts(self, path: str, trusted: Collection[int]) -> list[Doubt]:
        """Why others than the `trusted` users may choose what a file holds."""
        return doubts(self.root, path, trusted)

    def get_named(self, path: str, largest: int = LARGEST_NAMED) -> str:
        """The text of a file that another file names, or "" where it is absent or is not read. Never raises."""
        try:
            return _decoded(self.checked_numbers(self.read_named(path, largest)))
        except OSError:
            return ""

    def checked_numbers(self, data: bytes) -> bytes:
        """The bytes. OSError where a file of a recorded host holds a number that no host has."""
        if not self.live and _ENDLESS_NUMBER in data.translate(_AS_ZEROS):
            raise OSError(errno.EINVAL, "holds a number of more than 100 digits")
        return data

    def get(self, path: str, default: str = "") -> str:
        """A short attribute, or `default` where it is absent or cannot be read. Never raises."""
        try:
            return self.read_value(path)
        except OSError:
            return default

    def get_text(self, path: str, default: str = "") -> str:
        """A whole file, or `default` where it is absent or cannot be read. Never raises."""
        try:
            return self.read_text(path)
        except OSError:
            return default

    def listdir(self, path: str) -> list[str]:
        """The names in a directory, unsorted; none where it is absent. Never raises."""
        try:
            return self.names(path)
        except OSError as error:
            self._note(path, error)
            return []

    def names(self, path: str) -> list[str]:
        """The names in a directory, unsorted. OSError where it is absent or may not be read."""
        if self._look is None or not path.startswith(_REMEMBERED):
            return self._list(path)
        found = self._listed(self._look, path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._prefix + path)
        return list(found)

    def _list(self, path: str) -> list[str]:
        straight = self.live or self._is_straight(f"{path}/")
        return os.listdir(self._prefix + path if straight else self.resolve(path))

    def _listed(self, look: _Look, path: str) -> dict[str, None] | None:
        """As names(), once in a look; None where there is no such directory: mostly the one above says so."""
        if path not in look.names:
            above = path.rpartition("/")[0]
            if above.startswith(_REMEMBERED):
                with suppress(OSError):
                    self._listed(look, above)
            try:
                look.names[path] = None if _is_lacking(look, path) else dict.fromkeys(self._list(path))
            except FileNotFoundError:
                look.names[path] = None
        return look.names[path]

    def exists(self, path: str) -> bool:
        """Is there a file, directory or (even dangling) link? Never raises."""
        try:
            return self.stands(path)
        except OSError as error:
            self._note(path, error)
            return False
        except ValueError:  # a zero byte, which no path has
            return False

    def mode(self, path: str) -> int | None:
        """The permission bits of the file, links followed, or None where there is none. Never raises."""
        try:
            return self.checked_mode(path)
        except OSError as error:
            self._note(path, error)
            return None

    def checked_mode(self, path: str) -> int | None:
        """As mode(), but None means that there is no such file. OSError where that cannot be known."""
        try:
            return stat.S_IMODE(os.lstat(self.resolve(path)).st_mode)
        except NOT_THERE:
            return None

    def stands(self, path: str) -> bool:
        """As exists(), but False means that nothing is there. OSError where that cannot be known."""
        if self._look and _is_lacking(self._look, path):
            return False
        try:
            os.lstat(self._place(path))
        except NOT_THERE:
            return False
        return True

    def link_target(self, path: str) -> str | None:
        """Where a link points; None where it is none, or nothing is there. OSError where that cannot be known."""
        return _look_at(self._place(path))[1]

    def _place(self, path: str) -> str:
        """The path itself, which may be a link, its directory resolved inside the root."""
        directory, slash, name = path.rpartition("/")
        if self.live or self._is_straight(directory + slash):
            return self._prefix + path
        return f"{self.resolve(directory).rstrip('/')}/{name}"

    def real(self, path: str) -> str:
        """The same file's own path below the root, links followed: two names of one file have one."""
        return os.path.relpath(self.resolve(path), self.root)

    def lstat(self, path: str) -> os.stat_result:
        """lstat(2) of a path."""
        return os.lstat(self._place(path))

    def program(self, pid: int) -> os.stat_result | None:
        """The file that a process executes: stat(2) of /proc/PID/exe. None where it is not shown to this user. Live."""
        with suppress(OSError):
            return os.stat(f"/proc/{pid}/exe") if self.live else None
        return None

    def readlink(self, path: str) -> str:
        """Where a link points, or "" where it is none. Never raises."""
        try:
            return os.readlink(self._place(path))
        except OSError as error:
            self._note(path, error)
            return ""

    def walk(self, path: str) -> Iterator[str]:
        """Every file and link below a directory, as paths from the root. Never raises."""
        for name in sorted(self.listdir(path)):
            below = f"{path}/{name}"
            place = self._place(below)
            if os.path.isdir(place) and not os.path.islink(place):
                yield from self.walk(below)
            else:
                yield below


def _checked(fd: int, device: int = 0) -> int:
    """The open file, if it is a regular one or a directory. Otherwise OSError, and it is closed.

    A FIFO or device in the place of a file must not pass for one that is empty; but for this one `device`.
    """
    about = os.fstat(fd)  # thousands of a recorded host's files come by here
    if stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode) or (device and about.st_rdev == device):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, NOT_REGULAR)


def _is_lacking(look: _Look, path: str) -> bool:
    """Has this look listed the directory that the path would be in, and it was not there?"""
    above, _, name = path.rpartition("/")
    if above not in look.names or name in ("", ".", ".."):
        return False
    listed = look.names[above]
    return listed is None or name not in listed


def _look_at(place: str) -> tuple[bool, str | None]:
    """(is something there, or may it not be looked at; where it points if it is a link)."""
    try:
        return True, os.readlink(place) if stat.S_ISLNK(os.lstat(place).st_mode) else None
    except NOT_THERE:
        return False, None
    except PermissionError:
        return True, None


def _decoded(data: bytes) -> str:
    with suppress(UnicodeDecodeError):
        return data.decode()
    escapes = 0
    for begin in range(0, len(data), _MOST_ESCAPES):
        piece = data[begin : begin + _MOST_ESCAPES]
        escapes += len(piece) - len(piece.decode("utf-8", "ignore").encode())
        if escapes > _MOST_ESCAPES:
            raise OSError(errno.EINVAL, "is no text: too much of it is not UTF-8")
    return data.decode("utf-8", "backslashreplace")


def is_missing(path: str) -> bool:
    """Is there no such file of this machine's? One in a directory that may not be entered may be there."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False
