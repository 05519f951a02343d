"""What the kernel announces: device events through pyudev, which nothing else imports, and links that come up.

A NIC's queues are announced one by one (net/core/net-sysfs.c), interrupts are not at all: after a
queue event the caller looks again at the vectors, once the burst is over.

Links that come up, which udev does not announce: rtnetlink's link group, read message by message.

A driver may set its queues up again, and their interrupts back to the default, whenever the link comes up.
Source: rtnetlink(7), netlink(7). No library: of a message only two numbers are wanted, and a monitor runs for weeks.
"""

import os
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tunectl.errors import TunectlError

SUBSYSTEMS = ("net", "queues", "cpu", "thermal", "pci")


@dataclass(frozen=True)
class DeviceEvent:
    """One announcement: what happened to which device."""

    action: str  # add, remove, change, online, offline; link-up, which is not udev's
    subsystem: str
    name: str  # the last part of the path: eth0, rx-3, cpu7
    path: str  # below /sys


class DeviceMonitor:
    """Calls back for each event of the given subsystems, from a thread of its own, between start() and stop()."""

    def __init__(self, on_event: Callable[[DeviceEvent], None], subsystems: Iterable[str] = SUBSYSTEMS) -> None:
        """TunectlError where libudev or the kernel's netlink socket is not to be had (a container)."""

        def link_up(name: str) -> None:
            on_event(DeviceEvent("link-up", "net", name, f"/class/net/{name}"))

        try:
            # Here, not above: it loads libudev, which a host without systemd may lack.
            import pyudev  # type: ignore[import-untyped]

            monitor = pyudev.Monitor.from_netlink(pyudev.Context(), source="kernel")
            wanted = tuple(subsystems)
            for subsystem in wanted:
                monitor.filter_by(subsystem)
            self._links = LinkMonitor(link_up) if "net" in wanted else None
        except (ImportError, OSError) as error:
            raise TunectlError(f"cannot listen for device events: {error}", "the periodic scan still runs") from error

        def report(device: Any) -> None:
            on_event(DeviceEvent(device.action or "", device.subsystem or "", device.sys_name, device.device_path))

        self._observer = pyudev.MonitorObserver(monitor, callback=report, name="tunectl-udev")

    def start(self) -> None:
        """Begins to listen; events before this are not reported."""
        self._observer.start()
        if self._links:
            self._links.start()

    def stop(self) -> None:
        """Ends the thread and waits for it."""
        self._observer.stop()
        if self._links:
            self._links.stop()


_RTMGRP_LINK = 1
_RTM_NEWLINK, _RTM_DELLINK = 16, 17
_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, sequence number, port
_LINK = struct.Struct("=BxHiII")  # struct ifinfomsg: family, type, index, flags, change mask
_AF_UNSPEC = 0  # a bridge announces its ports once more, as AF_BRIDGE
_IFF_RUNNING = 0x40  # there is a carrier
_SIZE = 1 << 16


def parse_links(data: bytes) -> Iterator[tuple[int, bool | None]]:
    """The interface numbers of the link messages in one datagram, each with whether it runs; None: it is gone."""
    start = 0
    while start + _HEADER.size <= len(data):
        length, kind, *_ = _HEADER.unpack_from(data, start)
        if length < _HEADER.size:
            return
        if kind in (_RTM_NEWLINK, _RTM_DELLINK) and start + _HEADER.size + _LINK.size <= len(data):
            family, _, index, flags, _ = _LINK.unpack_from(data, start + _HEADER.size)
            if family == _AF_UNSPEC:
                yield index, bool(flags & _IFF_RUNNING) if kind == _RTM_NEWLINK else None
        start += (length + 3) & ~3


class LinkMonitor:
    """Calls back with the name of each interface whose link comes up, from a thread of its own."""

    def __init__(self, on_up: Callable[[str], None]) -> None:
        """OSError where the kernel has no such socket to give."""
        self._on_up = on_up
        self._running: dict[int, bool] = {}
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        try:
            self._socket.bind((0, _RTMGRP_LINK))
            self._stop = os.eventfd(0)
        except OSError:
            self._socket.close()
            raise
        self._thread = threading.Thread(target=self._listen, name="tunectl-links", daemon=True)

    def start(self) -> None:
        """Begins to listen. A link that was up before is taken for one that comes up, when it is first heard of."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread and waits for it."""
        os.eventfd_write(self._stop, 1)
        if self._thread.ident:
            self._thread.join()
        self._socket.close()
        os.close(self._stop)

    def _listen(self) -> None:
        while True:
            ready, _, _ = select.select([self._socket.fileno(), self._stop], [], [])
            if self._stop in ready:
                return
            with suppress(OSError):  # ENOBUFS: messages were lost in a burst; those that follow tell how it stands
                for index, runs in parse_links(self._socket.recv(_SIZE)):
                    came_up = runs and not self._running.get(index)
                    if runs is None:
                        self._running.pop(index, None)
                    else:
                        self._running[index] = runs
                    if came_up:
                        with suppress(OSError):  # it went away again
                            self._on_up(socket.if_indextoname(index))
