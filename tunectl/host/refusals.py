"""Why a file is not read, or not obeyed: this user may not, or somebody else than root may choose what it holds. Pure.

Who may write a file, directory or link is told by its owner, group and mode; host/named.py walks to it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Sequence
from typing import NamedTuple

from tunectl.command import Command, all_of, argv
from tunectl.fix import Fix, to_decide

DENIED = frozenset({errno.EACCES, errno.EPERM})
AS_ROOT = to_decide("run tunectl as root: this user may not read it all")
ON_HOST = to_decide("run as root on the host itself, outside of containers")
OWNED = to_decide("have it and every directory above it belong to root, with nobody else who may write there")


class NotFollowedError(OSError):
    """A file that another file names, and somebody but root chooses what it holds."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EINVAL, f"not followed, because {why}")


class Refusals:
    """The files and directories that could not be looked into, in order, and why. False where there are none."""

    def __init__(self) -> None:
        self._denied: dict[str, OSError] = {}

    def add(self, path: str, error: OSError) -> None:
        """A path without a leading slash, and the refusal that was the answer."""
        self._denied.setdefault(path, error)

    def update(self, others: Refusals) -> None:
        """Those of `others`, too."""
        for path, error in others._denied.items():
            self.add(path, error)

    def __bool__(self) -> bool:
        return bool(self._denied)

    def __str__(self) -> str:
        whys = {
            path: str(error.strerror) if isinstance(error, NotFollowedError) else os.strerror(error.errno or 0)
            for path, error in self._denied.items()
        }
        return ", ".join(f"/{path}: {why}" for path, why in whys.items())

    @property
    def errno(self) -> int | None:
        """Of the first one; None where there is none."""
        return next((error.errno for error in self._denied.values()), None)

    @property
    def fix(self) -> Fix:
        """What makes it known."""
        foreign = [isinstance(error, NotFollowedError) for error in self._denied.values()]
        return OWNED if foreign and all(foreign) else AS_ROOT


CHOOSES = "who writes it chooses what apply writes as root"


class Doubt(NamedTuple):
    """One place on the way to a file that somebody else can write, or put another in place of."""

    place: str
    why: str
    mends: Command | None  # None where another place for the file has to be found

    def __str__(self) -> str:
        """A clause."""
        return f"{self.place} {self.why}"


def callers() -> frozenset[int]:
    """Root, and whoever runs this: also by sudo, who may do as root whatever he likes."""
    by_sudo = os.environ.get("SUDO_UID", "")
    return frozenset({0, os.geteuid(), int(by_sudo) if by_sudo.isdecimal() else 0})


def mending(doubts: Sequence[Doubt]) -> str:
    """The line that mends it all; where a directory is somebody's own, what to do instead."""
    mends = [doubt.mends for doubt in doubts if doubt.mends]
    if len(mends) == len(doubts):
        return all_of(mends)
    return "keep it where only root writes, such as in /etc/tunectl"


def doubt_of(
    place: str, status: os.stat_result, users: Collection[int], groups: Collection[int] = (0,)
) -> Doubt | None:
    """What is wrong with one place, where these users and groups are trusted; None where nothing is. Pure.

    A link has no mode. In a sticky directory (/tmp) nobody renames what is another's.
    """
    others = stat.S_IWOTH | (0 if status.st_gid in groups else stat.S_IWGRP)
    is_sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    is_open = status.st_mode & others and not is_sticky and not stat.S_ISLNK(status.st_mode)
    if status.st_uid in users and not is_open:  # of nearly every place
        return None
    closes = argv("sudo", "chmod", "go-w", of=[place])
    if status.st_uid in users:
        return Doubt(place, "may be written by others than root", closes)
    why = f"belongs to UID {status.st_uid}, not to root"
    if not stat.S_ISREG(status.st_mode):  # a home, or the link in one: its owner keeps it
        return Doubt(place, why, None)
    takes = argv("sudo", "chown", "root:", of=[place])
    return Doubt(place, why, takes.then(closes) if is_open else takes)
