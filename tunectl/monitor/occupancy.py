"""Who may work in a state directory: one monitor, also while somebody clears the directory away under it.

Two locks. A file in the directory, for whoever sees the same directory; and a name of the kernel's, made of the
directory's path, which outlives the directory and ends with the process. Source: unix(7), "abstract"; host/lockfile.py.
"""

import errno
import logging
import os
import socket
import struct
import zlib

from tunectl.errors import TunectlError
from tunectl.host import lockfile
from tunectl.host.lockfile import Holder

LOG = logging.getLogger("tunectl.monitor.occupancy")
LOCK = "lock"
_BACKLOG = 128  # callers are never answered; each takes a place until this process ends
_PATIENCE_S = 0.2
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


class OccupiedError(TunectlError):
    """Another monitor holds the state directory: two would send every alert twice."""


class Occupancy:
    """The hold of one process on one state directory."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._fd = -1
        self._name: socket.socket | None = None

    def hold(self) -> None:
        """Takes the directory, or makes it again. OccupiedError where another monitor is at work in it; OSError."""
        path = os.path.join(self._directory, LOCK)
        if self._fd >= 0:
            if inode(path) == os.fstat(self._fd).st_ino:
                return
            os.close(self._fd)
            self._fd = -1
        if self._name is None:
            self._name = self._named()
        os.makedirs(self._directory, mode=0o755, exist_ok=True)
        fd = lockfile.take(path)
        if fd is None:
            raise self._occupied(lockfile.holder_of(path))
        self._fd = fd

    def release(self) -> None:
        """Lets other monitors in."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._name is not None:
            self._name.close()
            self._name = None

    def _occupied(self, occupant: object) -> OccupiedError:
        return OccupiedError(f"another monitor is at work in {self._directory}: {occupant}", "stop it, or give --state")

    def _named(self) -> socket.socket | None:
        """The name, which is ours then; None where somebody holds it who has no say in this: the file decides."""
        address = address_of(self._directory)
        mine = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            mine.bind(address)
            mine.listen(_BACKLOG)
        except OSError as error:
            mine.close()
            if error.errno != errno.EADDRINUSE:
                return None  # where sockets are not allowed, the file has to do
            occupant = _occupant(address)
            if occupant and not occupant.users.isdisjoint((0, os.geteuid())):
                raise self._occupied(occupant) from error
            LOG.warning(
                "another user holds the name of %s (%s): only its file locks it",
                self._directory,
                occupant or lockfile.UNSEEN,
            )
            return None
        return mine


def address_of(directory: str) -> str:
    """The name of a directory, whether or not it is there."""
    path = os.fsencode(os.path.realpath(directory))
    return f"\0tunectl-monitor-{zlib.crc32(path):08x}{zlib.adler32(path):08x}"  # hashlib would cost 3 MB


def _occupant(address: str) -> Holder | None:
    """The process that listens there; None where nobody does, or does not say."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(_PATIENCE_S)
        try:
            asking.connect(address)
            peer = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        except OSError:
            return None
    pid, uid, _ = _CREDENTIALS.unpack(peer)
    return lockfile.holder(pid, [uid])


def inode(path: str) -> int:
    """0 where nothing is there."""
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return 0
