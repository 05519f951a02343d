"""What the kernel announces: device events through pyudev, which nothing else imports, and links that come up.

A NIC's queues are announced one by one (net/core/net-sysfs.c), interrupts are not at all: after a
queue event the caller looks again at the vectors, once the burst is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tunectl.errors import TunectlError
from tunectl.host.links import LinkMonitor

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
