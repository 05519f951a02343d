"""What a user who is not root was denied while a host was read: what stands there is not known. Pure data."""

from __future__ import annotations

import errno
import os

from tunectl.fix import to_decide

DENIED = frozenset({errno.EACCES, errno.EPERM})
AS_ROOT = to_decide("run as root to read it")
ON_HOST = to_decide("run as root on the host itself, outside of containers")


class Refusals:
    """The files and directories that could not be looked into, in order, and why. False where there are none."""

    def __init__(self) -> None:
        self._denied: dict[str, int] = {}

    def add(self, path: str, number: int) -> None:
        """A path without a leading slash, and the errno that was the answer."""
        self._denied.setdefault(path, number)

    def update(self, others: Refusals) -> None:
        """Those of `others`, too."""
        for path, number in others._denied.items():
            self.add(path, number)

    def __bool__(self) -> bool:
        return bool(self._denied)

    def __str__(self) -> str:
        return ", ".join(f"/{path}: {os.strerror(number)}" for path, number in self._denied.items())

    @property
    def errno(self) -> int | None:
        """Of the first one; None where there is none."""
        return next(iter(self._denied.values()), None)
