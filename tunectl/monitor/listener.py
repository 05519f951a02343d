"""The kernel's device events, from pyudev's thread to the sources' queue, each of which wakes the loop."""

from __future__ import annotations

from collections.abc import Callable

from tunectl.errors import TunectlError
from tunectl.host.devices import DeviceEvent, DeviceMonitor

Tell = Callable[[DeviceEvent], None]


class Listener:
    """One for the life of the process; a reload gives it new sources to tell."""

    def __init__(self, poke: Callable[[], None]) -> None:
        self._poke = poke
        self._tell: Tell | None = None
        self._monitor: DeviceMonitor | None = None

    def tells(self, tell: Tell) -> None:
        """From now on the events go there."""
        self._tell = tell

    def start(self) -> str:
        """Begins to listen. Where there is nothing to listen to, returns why: the periodic scan still runs."""
        try:
            self._monitor = DeviceMonitor(self._heard)
            self._monitor.start()
        except TunectlError as error:
            self._monitor = None
            return str(error)
        return ""

    def stop(self) -> None:
        """No event comes any more."""
        if self._monitor:
            self._monitor.stop()
            self._monitor = None

    def _heard(self, event: DeviceEvent) -> None:
        if self._tell:
            self._tell(event)
            self._poke()
