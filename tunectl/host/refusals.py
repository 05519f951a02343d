"""What was not read of a host, because this user may not or another one chooses it: it is not known. Pure data."""

from __future__ import annotations

import errno
import os

from tunectl.fix import Fix, to_decide

DENIED = frozenset({errno.EACCES, errno.EPERM})
AS_ROOT = to_decide("run as root to read it")
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
        return ", ".join(f"/{path}: {_why(error)}" for path, error in self._denied.items())

    @property
    def errno(self) -> int | None:
        """Of the first one; None where there is none."""
        return next((error.errno for error in self._denied.values()), None)

    @property
    def fix(self) -> Fix:
        """What makes it known."""
        foreign = [isinstance(error, NotFollowedError) for error in self._denied.values()]
        return OWNED if foreign and all(foreign) else AS_ROOT


def _why(error: OSError) -> str:
    return str(error.strerror) if isinstance(error, NotFollowedError) else os.strerror(error.errno or 0)
