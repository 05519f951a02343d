"""What a running irqbalance bans now, by its own word: irqbalance-ui changes its list while it runs.

It listens at a socket that is named after its process, and answers root alone. Source: irqbalance.c (init_socket,
sock_handle) of 1.9: "setup" is answered with "SLEEP 10 BANNED 0000000c".
"""

from __future__ import annotations

import os
import re
import socket
import struct
from contextlib import suppress
from typing import NamedTuple

from tunectl.cpulist import CpuSet, parse_cpumask
from tunectl.errors import UsageError
from tunectl.host.sysroot import Sysroot

_SOCKETS = "proc/net/unix"
_TIMEOUT_S = 1.0
_BYTES = 65536  # each banned interrupt takes some 60
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid
_BANNED = re.compile(r"\bBANNED ([0-9a-fA-F,]+)\s*\0?$")


class Answer(NamedTuple):
    """`cpus` is what is banned, None where nobody said; `unasked` says why not, "" where nobody can change it."""

    cpus: CpuSet | None
    unasked: str = ""


def ask(root: Sysroot, pid: int) -> Answer:
    """The ban of a daemon that runs. It may take a second; never raises."""
    address = _address(root, pid) if root.live else ""
    if not address:
        return Answer(None)
    shown = address.replace("\0", "@")
    if os.geteuid():
        return Answer(None, f"only root may ask at its socket {shown} whether its list was changed since it started")
    text = ""
    with suppress(OSError):
        text = _asked(address, pid)
    cpus = parse_answer(text)
    return Answer(cpus, "" if cpus is not None else f"it did not say at its socket {shown} what it bans now")


def parse_answer(text: str) -> CpuSet | None:
    """The CPUs of its answer; None where it is none."""
    found = _BANNED.search(text)
    with suppress(UsageError):
        return parse_cpumask(found[1]) if found else None
    return None


def _address(root: Sysroot, pid: int) -> str:
    """Where it listens; "" where it does not: it may be built without irqbalance-ui."""
    own = (f"/run/irqbalance/irqbalance{pid}.sock", f"/run/irqbalance{pid}.sock", f"@irqbalance{pid}.sock")
    lines = map(str.split, root.get_text(_SOCKETS).split("\n"))
    names = (words[-1] for words in lines if words)  # anybody may bind a name that holds a newline
    return next((name.replace("@", "\0", 1) for name in names if name in own), "")


def _asked(address: str, pid: int) -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(_TIMEOUT_S)
        asking.connect(address)
        peer = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        if _CREDENTIALS.unpack(peer)[0] != pid:  # anybody may take a name that begins with @
            return ""
        own = _CREDENTIALS.pack(os.getpid(), os.getuid(), os.getgid())
        asking.sendmsg([b"setup"], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, own)])
        answer = b""
        while (part := asking.recv(_BYTES)) and len(answer) < _BYTES:
            answer += part
        return answer.decode("ascii", "replace")
