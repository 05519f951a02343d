"""What ends the loop's sleep: a signal, a device event, or the time. One pipe for all, so that nothing is missed."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from types import FrameType

_EVENT = b"\0"  # no signal has this number
STOPPING = (signal.SIGTERM, signal.SIGINT)
RELOADING = signal.SIGHUP


def now_s() -> float:
    """Seconds since boot, those asleep included: no step of the wall clock moves it. CLOCK_BOOTTIME"""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Waker:
    """A pipe into which signals and other threads write a byte, and a sleep that each byte ends."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(self._read, select.POLLIN)

    def catch(self, signals: Iterable[int] = (*STOPPING, RELOADING)) -> None:
        """From now on these signals are bytes in the pipe. In the main thread only."""
        for number in signals:
            signal.signal(number, _nothing)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)

    def poke(self) -> None:
        """From any thread: something happened. A full pipe will wake the loop anyway."""
        with suppress(OSError):
            os.write(self._write, _EVENT)

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


def _nothing(number: int, frame: FrameType | None) -> None:
    """The byte in the pipe is what counts; a handler there must be, or the signal would end the process."""
