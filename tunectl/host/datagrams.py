"""One question to a daemon's datagram socket, and the answer to it: in a second, of a known size, from nobody else.

Who may answer is the kernel's word, not the message's: a connected socket hears its peer alone, the way to a Unix
socket belongs to root or to the daemon's own user, and each message bears its sender's user (SCM_CREDENTIALS).
Source: unix(7), SO_PASSCRED and autobind; connect(2).
"""

import errno
import os
import socket
import stat
import struct
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress

from tunectl.host.sysroot import Sysroot

TIMEOUT_S = 2.0
LARGEST = 1500  # bytes of an answer: a packet of a network
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


def exchange(
    asking: socket.socket,
    request: bytes,
    fits: Callable[[bytes], bool],
    trusted: Collection[int] = (),
    until: float | None = None,
) -> bytes:
    """The first answer that fits; others are passed over. `trusted`: of a Unix socket, the users who may answer.

    It waits for TIMEOUT_S, or until that moment of the monotonic clock. OSError, whose text says what failed, where
    there is no such answer.
    """
    until = time.monotonic() + TIMEOUT_S if until is None else until
    asking.settimeout(max(until - time.monotonic(), 0.001))
    with suppress(TimeoutError):
        asking.send(request)  # waits, too: of one that hangs nobody takes the questions that came before
        while (left := until - time.monotonic()) > 0:
            asking.settimeout(left)
            answer, ancillary, flags, _ = asking.recvmsg(LARGEST, socket.CMSG_SPACE(_CREDENTIALS.size))
            users = [_CREDENTIALS.unpack(data)[1] for _, kind, data in ancillary if kind == socket.SCM_CREDENTIALS]
            is_ours = not trusted or any(user in trusted for user in users)
            if is_ours and not flags & socket.MSG_TRUNC and fits(answer):
                return answer
    raise TimeoutError(errno.ETIMEDOUT, f"gave no answer within {TIMEOUT_S:g} s")


@contextmanager
def unix_peer(root: Sysroot, path: str, trusted: Collection[int], own: str = "") -> Iterator[socket.socket]:
    """A socket that is connected to the one at `path`, and hears nobody else.

    `own` is where it is bound itself; by default the kernel gives it a name without a file. OSError where the socket is
    not there, or others than the `trusted` users may choose who listens at it.
    """
    path = root.real(path)
    status = root.lstat(path)
    doubts = [doubt for doubt in root.doubts(path, trusted) if doubt.place != f"/{path}"]
    if doubts or not stat.S_ISSOCK(status.st_mode) or status.st_uid not in trusted:
        why = str(doubts[0]) if doubts else f"/{path} is no socket of the daemon's"
        raise PermissionError(errno.EACCES, f"not asked, because {why}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        asking.bind(own)
        if own:
            os.chmod(own, 0o666)  # the daemon's user has to reach it; only root can put another in its place
        asking.settimeout(TIMEOUT_S)
        asking.connect(root.path(path))
        yield asking


def users_named(root: Sysroot, *names: str) -> frozenset[int]:
    """Root, and those of these accounts that this host has. A directory of users far away is not asked: it may hang."""
    rows = (line.split(":") for line in root.get_text("etc/passwd").split("\n"))
    return frozenset({0, *(int(row[2]) for row in rows if row[0] in names and len(row) > 2 and row[2].isdecimal())})
