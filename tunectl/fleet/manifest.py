"""Which files belong to the store, and to which trading session: manifest.json, read and checked. Pure.

What the manifest does not name is not the store's, whatever lies in its directory.
"""

from typing import Literal

import msgspec

from tunectl.command import quoted
from tunectl.errors import TunectlError

STORE: Literal["tunectl.fleet.store/1"] = "tunectl.fleet.store/1"


class KeptFile(msgspec.Struct, frozen=True):
    """A file of a table, by its path below the store."""

    path: str
    size: int
    rows: int


class KeptSession(msgspec.Struct, frozen=True):
    """A trading session: `at` is when it began, or else when its first document was made."""

    at: str
    files: dict[str, KeptFile]  # by table


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """All of them."""

    schema: Literal["tunectl.fleet.store/1"] = STORE
    keep_sessions: int = 0  # so many, the last; 0: all
    sessions: dict[str, KeptSession] = {}

    def latest(self) -> list[str]:
        """The sessions, the oldest first."""
        return sorted(self.sessions, key=lambda name: (self.sessions[name].at, name))

    def files(self, *sessions: str) -> dict[str, list[KeptFile]]:
        """By table the files of these sessions; of all without a name."""
        found: dict[str, list[KeptFile]] = {}
        for name in sessions or self.latest():
            for table, file in self.sessions[name].files.items():
                found.setdefault(table, []).append(file)
        return found


def parse_manifest(data: bytes, where: str) -> Manifest:
    """TunectlError, naming `where`, for anything else."""
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise TunectlError(f"{where}: {error or 'nested too deep'}", "no tunectl wrote this") from error
    for file in (file for kept in manifest.sessions.values() for file in kept.files.values()):
        if file.path.startswith("/") or ".." in file.path.split("/"):
            raise TunectlError(f"{where}: {quoted(file.path)} is not below the store", "no tunectl wrote this")
    return manifest
