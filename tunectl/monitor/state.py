"""What the monitor remembers over a restart: one JSON file, replaced as a whole, and a lock on its directory."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from tunectl.durable import replace_file
from tunectl.errors import TunectlError
from tunectl.monitor.model import Alert, Severity, Status

_FILE = "alerts.json"
_LOCK = "lock"
_VERSION = 1


class State:
    """The directory of one monitor. Where it cannot be written the monitor goes on, and its caller says so."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.path = os.path.join(directory, _FILE)
        self._lock: int | None = None

    def hold(self) -> None:
        """Makes the directory and keeps other monitors out of it. TunectlError where one is there, or it cannot be.

        The lock ends with the process, however that ends.
        """
        try:
            os.makedirs(self.directory, mode=0o755, exist_ok=True)
            fd = os.open(
                os.path.join(self.directory, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644
            )
        except OSError as error:
            raise TunectlError(
                f"{self.directory}: {error.strerror}: alerts are not remembered over a restart"
            ) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(fd)
            raise OccupiedError(
                f"another monitor is at work in {self.directory}", "stop it, or give --state"
            ) from error
        self._lock = fd

    def release(self) -> None:
        """Other monitors may come in."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def load(self) -> dict[str, Any]:
        """What was saved last; empty where nothing was. TunectlError for a file that is not ours to understand."""
        try:
            with open(self.path, encoding="utf-8") as file:
                saved = json.load(file)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise TunectlError(f"{self.path} cannot be read ({error}): alerts start anew") from error
        if not isinstance(saved, dict) or saved.get("version") != _VERSION:
            raise TunectlError(f"{self.path} is not of this version: alerts start anew")
        return saved

    def save(self, content: Mapping[str, Any]) -> None:
        """Replaces it: a crash leaves the old file or the new one. TunectlError where it cannot be written."""
        data = json.dumps({"version": _VERSION, **content}, separators=(",", ":")).encode()
        try:
            os.makedirs(self.directory, mode=0o755, exist_ok=True)  # somebody may have cleared it away
            replace_file(self.path, data, beside=f"{self.path}.new")
        except OSError as error:
            raise TunectlError(f"cannot save {self.path}: {error.strerror}") from error


def rows_of(edges: Iterable[Alert]) -> list[dict[str, Any]]:
    """Alerts as plain data, for JSON."""
    return [dict(alert._asdict()) for alert in edges]


def edges_of(rows: object) -> tuple[Alert, ...]:
    """The alerts that rows_of() made these of; what is not of that shape is left out, for a monitor must start."""
    found = []
    for row in rows if isinstance(rows, list) else ():
        with suppress(TypeError, ValueError, KeyError):
            words = {"status": Status(row["status"]), "severity": Severity(row["severity"])}
            found.append(Alert(**{**row, **words}))
    return tuple(found)


class OccupiedError(TunectlError):
    """Another monitor holds the state directory: two would send every alert twice."""
