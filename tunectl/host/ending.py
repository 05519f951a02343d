"""The wish to end, from Ctrl-C, SIGTERM or a lost terminal: it breaks off what waits, and never what is at work.

Where nobody keeps it, a signal raises KeyboardInterrupt wherever the process is, as always.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class _Ending:
    def __init__(self) -> None:
        self.is_wanted = False
        self.is_urgent = False  # wanted for the second time
        self._is_waiting = False

    def keep(self) -> None:
        """From now on the first signal is kept for the next wait, and the second one raises at once, anywhere."""
        self.is_wanted = self.is_urgent = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # nohup, and a shell's background: who ignores a signal goes on.
            if number == signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._hear)

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        self.is_urgent, self.is_wanted = self.is_wanted, True
        if self._is_waiting or self.is_urgent:
            raise KeyboardInterrupt

    def heed(self) -> None:
        """KeyboardInterrupt where the end is wanted."""
        if self.is_wanted:
            raise KeyboardInterrupt

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """A wait: KeyboardInterrupt at once, also where the end was wanted before."""
        self._is_waiting = True
        try:
            self.heed()
            yield
        finally:
            self._is_waiting = False


ENDING = _Ending()  # a process has one end
