"""What ends the loop's sleep: a signal, a device event, or the time. One pipe for all, so that nothing is missed."""

import os
import select
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import FrameType

from tunectl.errors import TunectlError
from tunectl.host.devices import DeviceEvent, DeviceMonitor
from tunectl.monitor.moments import boottime

_EVENT = b"\0"  # no signal has this number
STOPPING = (signal.SIGTERM, signal.SIGINT)
RELOADING = signal.SIGHUP


class Wakeup:
    """The loop's clock, and a sleep that a signal or another thread ends: each writes a byte into one pipe."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(self._read, select.POLLIN)

    def catch(self, signals: Iterable[int]) -> None:
        """From now on these signals are bytes in the pipe. In the main thread only."""
        for number in signals:
            signal.signal(number, _nothing)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)

    def also(self, fd: int) -> None:
        """From now on this descriptor ends a sleep, too, when there is something to read."""
        self._poll.register(fd, select.POLLIN)

    def poke(self) -> None:
        """From any thread: something happened. A full pipe will wake the loop anyway."""
        with suppress(OSError):
            os.write(self._write, _EVENT)

    def now_s(self) -> float:
        """Seconds since boot, those asleep included: no step of the wall clock moves it. CLOCK_BOOTTIME"""
        return boottime()

    def sleep(self, seconds: float) -> tuple[set[int], bool]:
        """Until something comes, or the time is over. Returns the signals that came, and whether poke() was called."""
        # Rounded up: poll(2) counts milliseconds, and 0 of them again and again would be a busy loop.
        if not self._poll.poll(max(0, -int(-seconds * 1000 // 1))):
            return set(), False
        came = b""
        with suppress(BlockingIOError):
            came = os.read(self._read, 4096)
        return {number for number in came if number}, _EVENT in came

    def close(self) -> None:
        """No signal is a byte any more."""
        with suppress(ValueError):  # outside the main thread none ever was
            if signal.set_wakeup_fd(-1) not in (-1, self._write):
                raise RuntimeError("the wakeup descriptor was not ours")
        os.close(self._read)
        os.close(self._write)


class DeviceEvents:
    """The kernel's device events, from pyudev's thread to the sources' queue; each of them wakes the loop.

    One for the life of the process; a reload gives it new sources.
    """

    def __init__(self, poke: Callable[[], None]) -> None:
        self._poke = poke
        self._queue: Callable[[DeviceEvent], None] | None = None
        self._monitor: DeviceMonitor | None = None

    def go_to(self, queue: Callable[[DeviceEvent], None]) -> None:
        """From now on the events go there."""
        self._queue = queue

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
        if self._queue:
            self._queue(event)
            self._poke()


def _nothing(number: int, frame: FrameType | None) -> None:
    """The byte in the pipe is what counts; a handler there must be, or the signal would end the process."""
