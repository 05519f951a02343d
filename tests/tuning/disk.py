"""A disk that can lose power: of what was done to files, it knows what fsync(2) has promised.

The content and mode of a file last from the fsync of an open descriptor of it, a name (and that it is gone) from the
fsync of its directory. What was not promised may survive all the same, so there are three disks that a loss of power
may leave: nothing but what was promised; all names, but of each file the promised content only; all content, but the
promised names only.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.trees import Picture, picture
from tests.tuning.calls import changes

OF_THIS_BOOT = ("proc", "sys", "ethtool")  # a kernel's, on no disk


@dataclass
class Node:
    """One file, link or directory: as it is, and as it is promised to be."""

    now: tuple[str, int, bytes | str]
    synced: tuple[str, int, bytes | str]


class Disk:
    """What lies below `tree`, all of it promised, and then what watched calls do to it. Paths are relative."""

    def __init__(self, tree: Path) -> None:
        self._top = f"{tree}/"
        self.names = {path: Node(seen, seen) for path, seen in lasting(picture(tree)).items()}
        self.promised = dict(self.names)

    def after(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        """A call that succeeded."""
        if name in ("write", "ftruncate", "fchmod", "fsync"):
            path = self._below(os.readlink(f"/proc/self/fd/{args[0]}"))
        else:
            path = self._below(args[-1] if name in ("symlink", "rename") else args[0]) if args else ""
        if path.partition("/")[0] in OF_THIS_BOOT or not changes(name, args):
            return
        if name == "rename":
            self.names[path] = self.names.pop(self._below(args[0]))
        elif name in ("unlink", "rmdir"):
            del self.names[path]
        elif name == "fsync":
            self._promise(path)
        else:
            self._look(path)

    def _below(self, path: object) -> str:
        return str(path).removeprefix(self._top)

    def _look(self, path: str) -> None:
        """Reads what the call left; a name that is new gets a file of which nothing is promised."""
        place = self._top + path
        info = os.lstat(place)
        if stat.S_ISLNK(info.st_mode):
            now: tuple[str, int, bytes | str] = ("link", 0, os.readlink(place))
        elif stat.S_ISDIR(info.st_mode):
            now = ("directory", stat.S_IMODE(info.st_mode), b"")
        else:
            now = ("file", stat.S_IMODE(info.st_mode), Path(place).read_bytes())
        nothing = now if now[0] != "file" else ("file", 0o600, b"")  # of a link or directory the name is all there is
        node = self.names.setdefault(path, Node(now, nothing))
        node.now = now

    def _promise(self, path: str) -> None:
        if path in self.names and self.names[path].now[0] != "directory":
            self.names[path].synced = self.names[path].now
            return
        directory = "" if path + "/" == self._top else path
        for other in [one for one in {*self.names, *self.promised} if os.path.dirname(one) == directory]:
            self.promised.pop(other, None)
            if other in self.names:
                self.promised[other] = self.names[other]

    def survivors(self) -> Iterator[Picture]:
        """What may be found after a loss of power now."""
        yield reachable({path: node.synced for path, node in self.promised.items()})
        yield reachable({path: node.synced for path, node in self.names.items()})
        yield reachable({path: node.now for path, node in self.promised.items()})


def lasting(seen: Picture) -> Picture:
    """Without what ends with the boot."""
    return {path: node for path, node in seen.items() if path.partition("/")[0] not in OF_THIS_BOOT}


def reachable(found: Picture) -> Picture:
    """A name whose directory did not survive is lost with it."""
    kept: Picture = {}
    for path in sorted(found):
        above = os.path.dirname(path)
        if not above or above in kept:
            kept[path] = found[path]
    return kept
