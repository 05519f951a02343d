"""Whole trees compared: every path, kind, mode and byte."""

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

Picture = dict[str, tuple[str, int, bytes | str]]  # path -> kind, mode, content


def picture(root: Path) -> Picture:
    """Every file, link and directory below `root`: kind, mode, content."""
    seen: Picture = {}
    # Strings, not Paths: the walks over every system call look at hundreds of files after each of them.
    places = [str(root)]
    for place in places:
        for entry in os.scandir(place):
            info = os.lstat(entry.path)
            key, mode = entry.path[len(places[0]) + 1 :], stat.S_IMODE(info.st_mode)
            if stat.S_ISLNK(info.st_mode):
                seen[key] = ("link", 0, os.readlink(entry.path))
            elif stat.S_ISDIR(info.st_mode):
                seen[key] = ("directory", mode, b"")
                places.append(entry.path)
            elif stat.S_ISREG(info.st_mode):
                seen[key] = ("file", mode, _content(entry.path))
            else:
                seen[key] = ("special", mode, b"")
    return seen


def _content(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(fd, 1 << 20):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(fd)


def differences(before: Picture, root: Path) -> dict[str, object]:
    """What differs now: path -> (before, now)."""
    now = picture(root)
    return {key: (before.get(key), now.get(key)) for key in sorted({*before, *now}) if before.get(key) != now.get(key)}


def write(root: Path, path: str, text: str) -> None:
    """One file of a tree, its directories made as needed."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


class Applied:
    """A tree as `apply` left it, which lay() brings back where `restore` has undone it: sooner than a new `apply`."""

    def __init__(self, root: Path, apply: Callable[[], object]) -> None:
        self.root = root
        self.before = picture(root)
        apply()
        after = picture(root)
        self._changed = {path: node for path, node in after.items() if self.before.get(path) != node}
        self._gone = [path for path in sorted(self.before, reverse=True) if path not in after]

    def lay(self) -> None:
        """From the tree before `apply` to the tree after it, in which every path has its kind, mode and content."""
        for path in self._gone:
            (self.root / path).rmdir() if self.before[path][0] == "directory" else (self.root / path).unlink()
        for path in self._changed:
            if path in self.before and self.before[path][0] != "directory":
                (self.root / path).unlink()
        lay_out(self._changed, self.root)


def lay_out(seen: Picture, root: Path) -> None:
    """Makes these files in `root` as picture() saw them; none of them may be there, but a directory may."""
    for path, (kind, mode, content) in sorted(seen.items()):
        place = root / path
        if isinstance(content, str):
            place.symlink_to(content)
        elif kind == "directory":
            place.mkdir(exist_ok=True)
        else:
            place.write_bytes(content)
        if kind != "link":
            place.chmod(mode)


class Lent:
    """A tree that is handed out again and again, each time as `original` is: what changed since is put back.

    By the time of an inode's last change, which nobody can set: sooner than a new copy of thousands of files.
    """

    def __init__(self, original: Path, place: Path) -> None:
        self._original, self._place = original, place
        self._since = -1

    def __call__(self) -> Path:
        """The tree."""
        if self._since < 0:
            subprocess.run(["cp", "-a", self._original, self._place], check=True)
        else:
            self._put_back(str(self._original), str(self._place))
        clock = self._place.with_name(f"{self._place.name}.handed-out")
        clock.write_text("")  # the file system's own clock, which is coarser than ours
        self._since = clock.stat().st_ctime_ns
        return self._place

    def _put_back(self, original: str, place: str) -> None:
        if os.lstat(place).st_ctime_ns >= self._since:
            for name in {*os.listdir(place), *os.listdir(original)}:
                _same_kind(f"{original}/{name}", f"{place}/{name}")
            shutil.copystat(original, place)
        for entry in os.scandir(place):
            info = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(info.st_mode):
                self._put_back(f"{original}/{entry.name}", entry.path)
            elif info.st_ctime_ns >= self._since:
                os.unlink(entry.path)
                shutil.copy2(f"{original}/{entry.name}", entry.path, follow_symlinks=False)


def _same_kind(original: str, place: str) -> None:
    """Takes away what is not there in the original, or is of another kind; and copies what is then missing."""
    kinds = [stat.S_IFMT(os.lstat(one).st_mode) if os.path.lexists(one) else None for one in (original, place)]
    if kinds[0] == kinds[1]:
        return
    if kinds[1]:
        shutil.rmtree(place) if stat.S_ISDIR(kinds[1]) else os.unlink(place)
    if kinds[0]:
        subprocess.run(["cp", "-a", original, place], check=True)
