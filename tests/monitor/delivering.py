"""A store and one queue, as one process has them."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tunectl.monitor.delivery_queue import DeliveryQueue
from tunectl.monitor.model import Alert
from tunectl.monitor.receivers import Receiver
from tunectl.monitor.store import Store


def until(what: Callable[[], bool], limit_s: float = 60.0) -> None:
    """Until it is so, which a thread of this process sees to; an assertion otherwise."""
    deadline = time.monotonic() + limit_s
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Process:
    """What one process has of it: a store, and the queue of one receiver."""

    def __init__(
        self, place: Path, receiver: Receiver, clock: Callable[[], float] = time.monotonic, **options: Any
    ) -> None:
        self.store = Store(str(place), clock=clock)
        self.store.open()
        self.queue = DeliveryQueue(receiver, self.store, **{"clock": clock, "chance": lambda: 0.0, **options})
        self.step, self.show, self.start = self.queue.step, self.queue.show, self.queue.start

    def post(self, transitions: Sequence[Alert]) -> None:
        self.queue.add(transitions)
        self.store.save(now=True)

    def own(self, name: str) -> float:
        return self.queue.own()[f"outbox_{name}[{self.queue.name}]"]

    def end(self) -> None:
        self.queue.close()
        self.store.close()
