"""The UDP sockets of one process, and what their receive queues had no room for. /proc/PID/net/udp, udp6.

Read through the process, they are those of its own network namespace. Source: net/ipv4/udp.c (udp4_format_sock).
"""

from __future__ import annotations

from typing import NamedTuple

from tunectl.host.sysroot import Sysroot


class Socket(NamedTuple):
    """One socket at one moment."""

    inode: int
    port: int  # its own
    drops: int  # datagrams that its receive queue had no room for, so far


def read_sockets(root: Sysroot, pid: int) -> list[Socket]:
    """The UDP sockets that a process has open; empty where its files are not ours to see. Never raises."""
    try:
        return open_sockets(root, pid)
    except OSError:
        return []


def open_sockets(root: Sysroot, pid: int) -> list[Socket]:
    """The same. OSError where its files are not ours to see, or it has ended."""
    links = {root.readlink(f"proc/{pid}/fd/{name}") for name in root.names(f"proc/{pid}/fd")}
    texts = (root.get_text(f"proc/{pid}/net/{name}") for name in ("udp", "udp6"))
    return [one for text in texts for one in parse_udp(text) if f"socket:[{one.inode}]" in links]


def parse_udp(text: str) -> list[Socket]:
    """/proc/net/udp or udp6; lines of another form are left out."""
    found = []
    for line in text.splitlines()[1:]:
        fields = line.split()
        port = fields[1].rpartition(":")[2] if len(fields) > 12 else ""
        if port and fields[9].isdecimal() and fields[12].isdecimal():
            found.append(Socket(int(fields[9]), int(port, 16), int(fields[12])))
    return found
