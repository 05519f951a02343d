"""Somebody who is notified (Receiver), or a place where everything is shown (Exporter)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tunectl.errors import TunectlError
from tunectl.monitor.model import Alert, Status


class DeliveryError(TunectlError):
    """A delivery that the receiver did not acknowledge.

    `retry`: trying again can help; without it the receiver has refused this very alert.
    `after_s`: how long the receiver asks to be left alone. The message never holds a secret.
    """

    def __init__(self, message: str, *, retry: bool = True, after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry = retry
        self.after_s = after_s


class Receiver(NamedTuple):
    """Somebody who hears of each transition. `deliver` returns once it is acknowledged, or raises DeliveryError."""

    name: str  # stable over restarts: the name of its queue, and a label
    deliver: Callable[[Sequence[Alert]], None]
    repeat_s: float | None = None  # what still fires is delivered again this often; None: the transitions only
    tries: int | None = None  # then an alert is given up and counted; None: never
    is_counted: bool = True  # its queue is shown among the metrics


class Exporter(NamedTuple):
    """A place where the whole board is shown after each cycle. `show` does not raise."""

    name: str
    show: Callable[[Status], None]
    close: Callable[[], None]
