"""Whole trees compared: every path, kind, mode and byte."""

from __future__ import annotations

import os
import stat
from pathlib import Path

Picture = dict[str, tuple[str, int, bytes | str]]  # path -> kind, mode, content


def picture(root: Path) -> Picture:
    """Every file, link and directory below `root`: kind, mode, content."""
    seen: Picture = {}
    for place, directories, files in os.walk(root):
        for name in [*directories, *files]:
            path = Path(place, name)
            info = path.lstat()
            mode = stat.S_IMODE(info.st_mode)
            key = str(path.relative_to(root))
            if path.is_symlink():
                seen[key] = ("link", 0, os.readlink(path))
            elif path.is_dir():
                seen[key] = ("directory", mode, b"")
            elif path.is_file():
                seen[key] = ("file", mode, path.read_bytes())
            else:
                seen[key] = ("special", mode, b"")
    return seen


def differences(before: Picture, root: Path) -> dict[str, object]:
    """What differs now: path -> (before, now)."""
    now = picture(root)
    return {key: (before.get(key), now.get(key)) for key in sorted({*before, *now}) if before.get(key) != now.get(key)}


def write(root: Path, path: str, text: str) -> None:
    """One file of a tree, its directories made as needed."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def lay_out(seen: Picture, root: Path) -> None:
    """Makes a tree as picture() saw it; `root` must be empty."""
    for path, (kind, mode, content) in sorted(seen.items()):
        place = root / path
        if isinstance(content, str):
            place.symlink_to(content)
        elif kind == "directory":
            place.mkdir()
        else:
            place.write_bytes(content)
        if kind != "link":
            place.chmod(mode)
