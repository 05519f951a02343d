"""The one module that writes host files: a `Sysroot` that also writes. Only tuning/apply.py and restore hold one.

On the running host a kernel attribute takes a value. A recorded host has no kernel: there the attribute's file is
replaced, and `writes` tells in which other files a kernel would show the value (host/kernel_emulation.py).
"""

import errno
import os
import stat
from contextlib import suppress

from tunectl import durable
from tunectl.host import ethtool, kernel_emulation
from tunectl.host.attribute import write_attribute
from tunectl.host.kernel_emulation import Write
from tunectl.host.scheduling import move_thread, set_scheduling, with_scheduling
from tunectl.host.sysroot import NOT_THERE, Sysroot

TEMPORARY = ".tunectl-tmp"
_A_KERNELS = ("proc/", "sys/", ethtool.PREFIX)
_A_BOOT_LOADERS = "boot/"


class WritableSysroot(Sysroot):
    """A root that may be written. Every method may raise OSError."""

    def writes(self, kind: str, path: str, content: str) -> list[Write]:
        """What a write comes to here: itself first, in the form that the file takes, then what a kernel adds to it."""
        write = Write(kind, path, content)
        return [write] if self.live else kernel_emulation.writes(self, write)

    def write_value(self, path: str, text: str) -> None:
        """One write(2) into a kernel attribute; on a recorded host, the file replaced as a whole."""
        if not self.live:
            if not self.exists(path):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.path(path))
            self.replace_file(path, text.encode(), None)
        elif path.startswith(ethtool.PREFIX):
            ethtool.write_setting(path, text)
        else:
            write_attribute(os.open(self._prefix + path, os.O_WRONLY | os.O_CLOEXEC), text.encode())

    def write_back(self, path: str, before: bytes, undo: str, mode: int | None) -> None:
        """The earlier value of an attribute: the text that brings it back; on a recorded host, the file's bytes."""
        if self.live:
            self.write_value(path, undo + "\n")
        else:
            self.replace_file(path, before, mode)

    def move_thread(self, path: str, cpus: str) -> None:
        """The thread of a status file may use these CPUs (a cpulist), and no other."""
        if self.live:
            move_thread(path, cpus)
        else:
            self.replace_file(path, kernel_emulation.with_affinity(self.read_text(path), cpus).encode(), None)

    def reschedule(self, path: str, content: str) -> None:
        """The thread of a stat file is scheduled as the text says (host/scheduling.py)."""
        if self.live:
            set_scheduling(path, content)
        else:
            self.replace_file(
                path, with_scheduling(self.read_bytes(path).decode("latin-1"), content).encode("latin-1"), None
            )

    def replace_file(self, path: str, data: bytes, mode: int | None) -> None:
        """Atomically: a file beside it is written, fsynced and renamed over it. Owner and (for None) mode are kept.

        Where the path is a link, the file it points to is replaced, and the link stays.
        """
        place, owner = self.resolve(path), None
        with suppress(FileNotFoundError):
            found = os.lstat(place)
            mode = stat.S_IMODE(found.st_mode) if mode is None else mode
            if (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
                owner = (found.st_uid, found.st_gid)
        mode = 0o644 if mode is None else mode
        durable.replace_file(place, data, mode=mode, owner=owner, beside=place + TEMPORARY)
        if path.startswith(_A_BOOT_LOADERS):
            durable.checkpoint(place)

    def make_link(self, path: str, target: str) -> None:
        """A symbolic link, put in place atomically."""
        durable.replace_link(self._place(path), target, beside=self._place(path) + TEMPORARY)

    def make_directory(self, path: str) -> None:
        """One directory, mode 0755 whatever the umask; its parent must exist."""
        durable.make_directory(self._place(path))

    def remove(self, path: str, *, link: bool = False) -> None:
        """A file (or, with `link`, the link itself) goes away; nothing happens where there is none."""
        place = self._place(path) if link else self.resolve(path)
        with suppress(FileNotFoundError):
            durable.remove_file(place)

    def remove_directory(self, path: str) -> bool:
        """An empty directory goes away; False where it is not empty, or in use, and so stays."""
        try:
            durable.remove_directory(self._place(path))
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY):  # EBUSY: a control group in use
                return False
            raise
        return True

    def sweep(self, path: str) -> None:
        """What a killed replace_file() or make_link() of `path` may have left beside it goes away."""
        if self.live and path.startswith(_A_KERNELS):  # nothing is ever written beside a kernel's file
            return
        for place in {self._place(path), self.resolve(path)}:
            with suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(place + TEMPORARY)

    def sync(self, path: str) -> None:
        """The name of a file, or that there is none, is on disk: its directory, or the nearest one above it, is."""
        directory = os.path.dirname(self._place(path))
        while True:
            try:
                return durable.sync_directory(directory)
            except NOT_THERE:
                directory = os.path.dirname(directory)
