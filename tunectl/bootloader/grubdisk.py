"""The files that a GRUB script names, found on the host: GRUB has devices where the host has mount points.

`(prefix)` stands for the directory of grub.cfg, `(own)` for a device that is one of this host's own file systems. On
either of them, a path may be that of the root file system or that of a separate /boot; the file that is there tells.
"""

import re

from tunectl.bootloader.grubsyntax import Unfollowed
from tunectl.command import quoted
from tunectl.host.sysroot import ABSENT_ERRNOS, Sysroot

PREFIX = "(prefix)"
OWN = "own"
_MOST_BYTES = 1 << 20  # grub-mkconfig writes a tenth for thirty kernels; to follow more takes minutes
_UUID = re.compile(r"\broot=uuid=([0-9a-z-]+)")


class Disk:
    """The host's file systems as GRUB sees them."""

    def __init__(self, root: Sysroot, directory: str) -> None:
        self._root = root
        self._directory = directory  # of grub.cfg, `boot/grub`

    def read(self, path: str) -> tuple[str, str] | None:
        """(the host's name of a file, its text), or None where there is no such file. Unfollowed where it hides."""
        place = self.locate(path)
        if place is None:
            return None
        try:
            return "/" + place, self._root.read_named(place, _MOST_BYTES).decode("utf-8", "backslashreplace")
        except OSError as error:
            if error.errno in ABSENT_ERRNOS:
                return None
            raise unreadable(place, error) from error

    def size(self, path: str) -> int | None:
        """The size of a file; None where it is none, -1 for a directory."""
        place = self.locate(path)
        if place is None:
            return None
        try:
            return len(self._root.read_named(place, _MOST_BYTES))
        except IsADirectoryError:
            return -1
        except OSError as error:
            if error.errno in ABSENT_ERRNOS:
                return None
            raise unreadable(place, error) from error

    def locate(self, path: str) -> str | None:
        """The path below the root of the host, or None where there is nothing. Unfollowed where that is not known."""
        if re.search(r"[*?]", path):
            raise Unfollowed(f"the file name {quoted(path)} is a pattern")
        device, _, rest = path.partition("/")
        if device not in (PREFIX, "", f"({OWN})"):
            raise Unfollowed(f"{quoted(path)} is on a device that is not known here")
        found = self._there(*self._places(device, rest))
        if len(found) > 1:
            raise Unfollowed(f"{quoted(path)} is /{found[0]} or /{found[1]}")
        return found[0] if found else None

    def lacks(self, path: str, kind: str) -> bool:
        """Is there certainly no such file? Only where others whose names begin so lie beside it: a recorded host has
        no kernels.
        """
        if self.locate(path) is not None:
            return False
        device, _, rest = path.partition("/")
        directories = [place.rpartition("/")[0] for place in self._places(device, rest)]
        return any(name.startswith(kind) for directory in directories for name in self._names(directory))

    def _places(self, device: str, rest: str) -> tuple[str, ...]:
        """Where a file of a device may be on the host."""
        return (f"{self._directory}/{rest}",) if device == PREFIX else (rest, f"boot/{rest}")

    def _names(self, directory: str) -> list[str]:
        try:
            return list(self._root.names(directory))
        except OSError:
            return []

    def _there(self, *places: str) -> list[str]:
        """Those of these places where there is a file or directory."""
        found = []
        for place in places:
            try:
                self._root.check_named(place)
            except OSError as error:
                if error.errno in ABSENT_ERRNOS:
                    continue
                raise unreadable(place, error) from error
            found.append(place)
        return found

    def is_own(self, name: str) -> bool:
        """Is this the UUID of the running kernel's root file system?"""
        line = self._root.get_text("proc/cmdline").lower()
        return any(match[1] == name.lower() for match in _UUID.finditer(line))


def unreadable(place: str, error: OSError) -> Unfollowed:
    """The reason, with the file's name."""
    return Unfollowed(f"/{place} cannot be read ({error.strerror})", error.errno)
