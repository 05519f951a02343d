"""Many directories with the same files, read at the cost of one: those of 4,096 interrupts in /proc/irq."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from tunectl.host.attribute import read_attribute, text_of
from tunectl.host.sysroot import ABSENT_ERRNOS, Sysroot

_OF_LINKS = 0o777  # which no attribute of the kernel has


class Folder:
    """An open directory of directories that all hold the same files: /proc/irq.

    The way to it is walked once, what many of the files hold is decoded once, and within one look (Sysroot.one_look)
    each file is read once.
    """

    def __init__(
        self,
        root: Sysroot,
        path: str,
        fd: int = -1,
        entries: Sequence[os.DirEntry[str]] = (),
        problem: OSError | None = None,
    ) -> None:
        self.names = [entry.name for entry in entries]  # unsorted
        self.problem = problem  # why it could not be listed, though it is there
        self._root = root
        self._path = path
        self._fd = fd
        self._texts: dict[bytes, str] = {}
        self._known = root.values_of(path)
        # A link to a directory may lead out of a recorded host; the listing says of all at once which are none.
        self._straight = {entry.name for entry in entries if root.live or entry.is_dir(follow_symlinks=False)}

    def read_value(self, name: str, file: str) -> str:
        """The attribute `file` in directory `name`; as Sysroot.read_value."""
        path = f"{name}/{file}"
        if path in self._known:
            return self._known[path]
        data = None
        if name in self._straight:
            try:
                data = read_attribute(self._root.open_below(self._fd, path))
            except OSError:  # of a recorded host the file itself may be a link
                if self._root.live:
                    raise
        if data is None:
            text = self._root.read_value(f"{self._path}/{path}")
        else:
            text = self._texts.get(data) or text_of(self._root.checked_numbers(data))
            self._texts[data] = text
        self._known[path] = text
        return text

    def get(self, name: str, file: str) -> str:
        """The same, or "" where it is absent or cannot be read. Never raises."""
        try:
            return self.read_value(name, file)
        except OSError:
            return ""

    def mode(self, name: str, file: str) -> int | None:
        """The permission bits of `file` in directory `name`, or None where there is none; as Sysroot.mode."""
        if name in self._straight:
            with suppress(OSError):
                mode = self._root.mode_below(self._fd, f"{name}/{file}")
                if mode != _OF_LINKS:
                    return mode
        return self._root.mode(f"{self._path}/{name}/{file}")


@contextmanager
def open_folder(root: Sysroot, path: str) -> Iterator[Folder]:
    """The directory, held open. One that is absent has no names; one that cannot be listed says why. Never raises."""
    try:
        fd = root.open(f"{path}/.")  # of a file, this fails
    except OSError as error:
        absent = error.errno in ABSENT_ERRNOS
        yield Folder(root, path, problem=None if absent else error)
        return
    try:
        try:
            with os.scandir(fd) as entries:
                folder = Folder(root, path, fd, tuple(entries))
        except OSError as error:
            folder = Folder(root, path, problem=error)
        yield folder
    finally:
        os.close(fd)
