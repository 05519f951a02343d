"""Who may write a file that root obeys: its owner, its mode, and those of every directory and link on the way to it."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from tunectl.fix import shell_word

_MOST_LINKS = 40  # as the kernel: path_resolution(7)


CHOOSES = "who writes it chooses what apply writes as root"


class Doubt(NamedTuple):
    """One place on the way to a file that somebody else can write, or put another in place of."""

    place: str
    why: str
    mends: str  # what is typed, as root; "" where another place for the file has to be found

    def __str__(self) -> str:
        """A clause."""
        return f"{self.place} {self.why}"


def callers() -> frozenset[int]:
    """Root, and whoever runs this: also by sudo, who may do as root whatever he likes."""
    by_sudo = os.environ.get("SUDO_UID", "")
    return frozenset({0, os.geteuid(), int(by_sudo) if by_sudo.isdecimal() else 0})


def mending(found: Sequence[Doubt]) -> str:
    """The line that mends it all; where a directory is somebody's own, what to do instead."""
    if all(doubt.mends for doubt in found):
        return " && ".join(doubt.mends for doubt in found)
    return "keep it where only root writes, such as in /etc/tunectl"


def doubts(path: str, trusted: Collection[int] = (0,)) -> list[Doubt]:
    """Why others than the `trusted` users could have written the file at an absolute path.

    The links on the way are looked at, and where they lead. OSError where one of them, or the file, is not there.
    """
    found = (doubt_of(place, os.lstat(place), trusted) for place in _way_to(path))
    return list(dict.fromkeys(filter(None, found)))


def doubt_of(place: str, status: os.stat_result, trusted: Collection[int]) -> Doubt | None:
    """What is wrong with one place; None where nothing is. Pure.

    A link has no mode. In a sticky directory (/tmp) nobody renames what is another's.
    """
    is_sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    is_open = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not is_sticky and not stat.S_ISLNK(status.st_mode)
    word = shell_word(place)
    closes = f"sudo chmod go-w {word}" if is_open else ""
    if status.st_uid in trusted:
        return Doubt(place, "may be written by others than root", closes) if is_open else None
    why = f"belongs to user {status.st_uid}, not to root"
    if not stat.S_ISREG(status.st_mode):  # a home, or the link in one: its owner keeps it
        return Doubt(place, why, "")
    takes = f"sudo chown root: {word}"
    return Doubt(place, why, f"{takes} && {closes}" if closes else takes)


def _way_to(path: str) -> Iterator[str]:
    """Every directory, link and file that the kernel passes, from / on."""
    place, ahead, links = "/", path.split("/"), 0
    yield place
    while ahead:
        name = ahead.pop(0)
        if name in ("", ".", ".."):
            place = os.path.dirname(place) if name == ".." else place
            continue
        passed = os.path.join(place, name)
        yield passed
        if not os.path.islink(passed):
            place = passed
            continue
        target = os.readlink(passed)
        links += 1
        if links > _MOST_LINKS:
            return
        place, ahead = "/" if target.startswith("/") else place, [*target.split("/"), *ahead]
