"""What processes hold open: files, UDP sockets, and what they have the kernel poll busily.

The UDP sockets of one process, and what their receive queues had no room for. /proc/PID/net/udp, udp6.

Read through the process, they are those of its own network namespace. Source: net/ipv4/udp.c (udp4_format_sock).

What a process has the kernel poll busily: sockets (SO_BUSY_POLL) and epoll instances (EPIOCSPARAMS, since 6.9).

No file shows it. Root can have a duplicate of another process's descriptor and ask that (pidfd_getfd(2), since 5.6).
The process is neither stopped nor interrupted, and no flag of the descriptor changes. The duplicate is closed after
some microseconds; a socket that the process closes just then is closed that much later.
Source: pidfd_getfd(2); socket(7), SO_BUSY_POLL; net/core/sock.c (sk_getsockopt); fs/eventpoll.c (EPIOCGPARAMS).
"""

import ctypes
import errno
import fcntl
import os
import re
import socket
import struct
from typing import NamedTuple

from tunectl.command import argv, as_data
from tunectl.host.procs import read_pids, service_of, users_of
from tunectl.host.sysroot import Sysroot

_PERF = "anon_inode:[perf_event]"


class Holder(NamedTuple):
    """A process that has files open which were looked for, and which of them."""

    pid: int
    comm: str
    files: tuple[str, ...]
    stop: str  # what ends it

    @property
    def name(self) -> str:
        """The process as findings name it."""
        return f"{as_data(self.comm)} (pid {self.pid})"


class Holders(NamedTuple):
    """Those found, and how many processes did not let themselves be looked at."""

    found: tuple[Holder, ...]
    unseen: int


def find_holders(root: Sysroot, pattern: str) -> Holders:
    """The processes with an open file whose path fits the regular expression, whole. Never raises.

    A file that is opened for a moment only is likely to be missed.
    """
    wanted = re.compile(pattern)
    holders: list[Holder] = []
    unseen = 0
    for pid in read_pids(root):
        place = f"proc/{pid}/fd"
        try:
            names = root.names(place)
        except PermissionError:
            unseen += 1
            continue
        except OSError:
            continue
        links = (root.readlink(f"{place}/{name}") for name in names)
        if files := tuple(sorted({link for link in links if wanted.fullmatch(link)})):
            holders.append(Holder(pid, root.get(f"proc/{pid}/comm"), files, stop_of(root, pid)))
    return Holders(tuple(holders), unseen)


def perf_users(root: Sysroot) -> list[str]:
    """The processes that hold perf events, as names. Never raises."""
    return [holder.name for holder in find_holders(root, re.escape(_PERF)).found]


def stop_of(root: Sysroot, pid: int) -> str:
    """What ends a process: the command that stops its service, or a signal to one of root's own; else whose it is."""
    if unit := service_of(root, pid):
        return argv("sudo", "systemctl", "stop", of=[unit])
    others = users_of(root, pid) - {0}
    return f"process {pid} is uid {max(others)}'s to end" if others else argv("sudo", "kill", str(pid))


class Socket(NamedTuple):
    """One socket at one moment."""

    inode: int
    port: int  # its own
    drops: int  # datagrams that its receive queue had no room for, so far


def read_sockets(root: Sysroot, pid: int) -> list[Socket]:
    """The UDP sockets that a process has open; empty where its files are not ours to see. Never raises."""
    try:
        links = {root.readlink(f"proc/{pid}/fd/{name}") for name in root.names(f"proc/{pid}/fd")}
    except OSError:
        return []
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


_PIDFD_GETFD = 438  # on every architecture (include/uapi/asm-generic/unistd.h)
_SO_BUSY_POLL = 46  # include/uapi/asm-generic/socket.h
_EPIOCGPARAMS = 0x80088A02  # _IOR(0x8A, 0x02, struct epoll_params)
_EPOLL_PARAMS = struct.Struct("=IHBx")  # microseconds, packets, SO_PREFER_BUSY_POLL
_INTERNET = (socket.AF_INET, socket.AF_INET6)
_GONE = (errno.EBADF, errno.ENOENT)  # closed since the directory was read


class Polled(NamedTuple):
    """One socket or epoll instance, and for how long a thread that waits for it polls."""

    is_epoll: bool
    usecs: int  # 0: it says nothing of its own; only an epoll instance is listed then


def read_polled(root: Sysroot, pid: int) -> list[Polled]:
    """Its Internet sockets with SO_BUSY_POLL, and all its epoll instances.

    OSError where they are not ours to see, where the kernel has no pidfd_getfd, and of a recorded host.
    """
    links = {int(name): root.readlink(f"proc/{pid}/fd/{name}") for name in root.names(f"proc/{pid}/fd")}
    sockets = {link: number for number, link in links.items() if link.startswith("socket:")}  # each once
    epolls = [number for number, link in links.items() if link == "anon_inode:[eventpoll]"]
    wanted = [*((number, False) for number in sockets.values()), *((number, True) for number in epolls)]
    if not wanted:
        return []
    if not root.live:
        raise OSError(errno.ENODATA, "a recorded host has no options of sockets")
    pidfd = os.pidfd_open(pid)
    try:
        found = (_ask(pidfd, number, is_epoll=is_epoll) for number, is_epoll in wanted)
        return [polled for polled in found if polled]
    finally:
        os.close(pidfd)


def _ask(pidfd: int, number: int, *, is_epoll: bool) -> Polled | None:
    libc = ctypes.CDLL(None, use_errno=True)
    fd: int = libc.syscall(ctypes.c_long(_PIDFD_GETFD), ctypes.c_int(pidfd), ctypes.c_int(number), ctypes.c_uint(0))
    if fd < 0 and (code := ctypes.get_errno()) not in _GONE:
        raise OSError(code, os.strerror(code))
    if fd < 0:
        return None
    try:
        return _of_epoll(fd) if is_epoll else _of_socket(fd)
    finally:
        os.close(fd)


def _of_epoll(fd: int) -> Polled:
    asked = bytearray(_EPOLL_PARAMS.size)
    try:
        fcntl.ioctl(fd, _EPIOCGPARAMS, asked)
    except OSError:  # before 6.9 an instance has no parameters of its own
        return Polled(is_epoll=True, usecs=0)
    return Polled(is_epoll=True, usecs=_EPOLL_PARAMS.unpack(asked)[0])


def _of_socket(fd: int) -> Polled | None:
    """None for one that no thread polls: not of the Internet, one that listens, or without the option."""
    # Its kind is said here, though it may be another, so that Python asks and changes nothing by itself.
    asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 0, fileno=fd)
    try:
        if asked.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) not in _INTERNET:
            return None
        if asked.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return None
        usecs = asked.getsockopt(socket.SOL_SOCKET, _SO_BUSY_POLL)
    except OSError as error:
        if error.errno == errno.ENOPROTOOPT:  # CONFIG_NET_RX_BUSY_POLL is off: no socket polls
            return None
        raise
    finally:
        asked.detach()
    return Polled(is_epoll=False, usecs=usecs) if usecs else None
