"""One queue a receiver: every transition is delivered once, in order, however long the receiver is away.

At least once: only what was acknowledged is forgotten, and each try carries the same id, by which a receiver that took
an alert and could not say so knows it again. A full queue drops what fired and resolved before anybody heard of it,
then the oldest; each loss is said and counted.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tunectl.address import DeliveryError
from tunectl.monitor.model import Alert, AlertState, Moment, Status
from tunectl.monitor.moments import is_moved, moment_now, told
from tunectl.monitor.receivers import Receiver
from tunectl.monitor.store import SAVE_AGAIN_S, Delivery, Store

LOG = logging.getLogger("tunectl.monitor.delivery")
MOST = 1000  # alerts that wait for one receiver
_IDLE_S = 3600.0
_OVER_S = 3600.0  # so long a resolve is sent again where the wall clock turns out to have been wrong
# After a reload, a thread of the settings before may still wait for its receiver. What it delivers comes first.
_PATIENCE_S = 15.0
_BUSY_AGAIN_S = 0.5


class Backoff(NamedTuple):
    """How long to wait after the n-th failure in a row: twice as long each time, less up to a half by chance."""

    first_s: float = 1.0
    most_s: float = 30.0

    def delay_s(self, failures: int, chance: float) -> float:
        """Seconds; `chance` is in [0, 1). Hosts of one rack that lost one receiver must not come back all at once."""
        return float(min(self.most_s, self.first_s * 2 ** min(failures - 1, 30))) * (1 - chance / 2)


class DeliveryQueue:
    """The queue and the thread of one receiver. Only the thread waits for the receiver; nothing here raises."""

    def __init__(
        self,
        receiver: Receiver,
        store: Store,
        *,
        most: int = MOST,
        backoff: Backoff = Backoff(),  # noqa: B008 - a constant
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
        moment: Callable[[], Moment] = moment_now,
    ) -> None:
        self.name = receiver.name
        self._receiver, self._store, self._most, self._backoff = receiver, store, most, backoff
        self._clock, self._chance, self._moment = clock, chance, moment
        self._firing: dict[str, Alert] = {}  # by identity
        self._over: dict[str, tuple[Alert, float]] = {}  # by identity: as it was sent, and until when it is remembered
        self._failures = 0  # in a row
        self._due_s = self._repeat_s = 0.0
        self._delivered_total = self._failures_total = self._lost_total = 0
        self._changed = threading.Event()
        self._patient_s = clock() + _PATIENCE_S
        self._stop_s: float | None = None
        self._thread: threading.Thread | None = None

    def add(self, transitions: Sequence[Alert]) -> None:
        """Queues what began or ceased to fire; in memory until the store is saved."""
        with self._store.lock:
            for alert in transitions:
                self._firing.pop(alert.identity, None)
                if alert.status is AlertState.FIRING:
                    self._firing[alert.identity] = alert
            self._store.add(self.name, transitions)
            while len(waiting := self._store.waiting(self.name)) > self._most:
                victims = first_to_go([delivery for delivery in waiting if not delivery.is_busy])
                if not victims:
                    break
                self._lose(victims, ": the queue is full")
        self._changed.set()

    def show(self, status: Status) -> None:
        """What fires by now, so that it can be said again; after a restart too, which adds no transition."""
        with self._store.lock:
            news = bool(status.firing) and not self._firing
            self._firing = {alert.identity: alert for alert in status.firing}
        if news:
            self._changed.set()

    def own(self) -> dict[str, float]:
        """Numbers about this queue for Board.own: `outbox_depth[name]`, ..."""
        if not self._receiver.is_counted:
            return {}
        with self._store.lock:
            waiting = self._store.waiting(self.name)
            now = {
                "depth": len(waiting),
                "unsaved": sum(not delivery.is_saved for delivery in waiting),
                "oldest_seconds": self._clock() - waiting[0].queued_s if waiting else 0.0,
                "delivered_total": self._delivered_total,
                "failures_total": self._failures_total,
                "lost_total": self._lost_total + self._store.lost[self.name],
            }
        return {f"outbox_{name}[{self.name}]": float(value) for name, value in now.items()}

    def start(self) -> None:
        """Begins to deliver, in a daemon thread."""
        self._thread = threading.Thread(target=self._run, name=f"tunectl-{self.name}"[:15], daemon=True)
        self._thread.start()

    def close(self, timeout_s: float = 5.0) -> None:
        """Delivers what can be delivered at once, and stops; the rest waits in the store."""
        self._stop_s = self._clock() + timeout_s
        self._changed.set()
        if self._thread:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while self._stop_s is None:
            self._changed.wait(self.step())
            self._changed.clear()
        while self._store.waiting(self.name) and self._clock() < self._stop_s and not self.step():
            pass

    def step(self) -> float:
        """Delivers the oldest alert, if it is due; in how many seconds there is something to do again."""
        with self._store.lock:
            self._store.save()
            pause_s, delivery = self._next(self._clock())
            if pause_s > 0:
                return pause_s if self._store.is_saved else min(pause_s, SAVE_AGAIN_S)
            if delivery:
                delivery.is_busy = True
            alerts = (delivery.alert,) if delivery else tuple(self._again(self._moment()))
            if not alerts:  # until the next repeat, if there is one
                pause_s = self._receiver.repeat_s or _IDLE_S
                self._repeat_s = self._clock() + pause_s
                return pause_s
        outcome = self._deliver(alerts)
        with self._store.lock:
            if delivery:
                delivery.is_busy = False
            if isinstance(outcome, DeliveryError):
                self._failed(delivery, outcome)
            else:
                self._succeeded(delivery, outcome)
            return max(0.0, self._due_s - self._clock())

    def _next(self, now_s: float) -> tuple[float, Delivery | None]:
        """How long until the next try, and of which delivery; of none, where what fires is to be said again."""
        waiting = self._store.waiting(self.name)
        if waiting:
            free = next((delivery for delivery in waiting if not delivery.is_busy), None)
            if free is None or (waiting[0].is_busy and now_s < self._patient_s):
                return _BUSY_AGAIN_S, None
            return self._due_s - now_s, free
        if self._receiver.repeat_s and (self._firing or self._over):
            return max(self._due_s, self._repeat_s) - now_s, None
        return _IDLE_S, None

    def _again(self, now: Moment) -> Iterator[Alert]:
        """What still fires; and what is over, where the clock that it was sent by has been set since.

        An endsAt of a clock that ran ahead is still to come, and until then the alert fires for Alertmanager.
        """
        self._over = {name: over for name, over in self._over.items() if over[1] > self._clock()}
        yield from self._firing.values()
        over = (alert for name, (alert, _) in self._over.items() if name not in self._firing)
        yield from (alert for alert in over if is_moved(alert, now))

    def _deliver(self, alerts: Sequence[Alert]) -> Sequence[Alert] | DeliveryError:
        """The alerts as they were sent, or why they were not."""
        try:
            now = self._moment()
            sent = [told(alert, now) for alert in alerts]
            self._receiver.deliver(sent)
        except DeliveryError as error:
            return error
        except Exception as error:  # a defect of ours must not end the thread; its text could hold anything
            return DeliveryError(f"{type(error).__name__} in the receiver")
        return sent

    def _succeeded(self, delivery: Delivery | None, sent: Sequence[Alert]) -> None:
        now_s = self._due_s = self._clock()
        if self._failures:
            LOG.warning("%s: delivers again after %d failures", self.name, self._failures)
        self._failures = 0
        if self._receiver.repeat_s and (delivery is None or self._repeat_s <= now_s):
            self._repeat_s = now_s + self._receiver.repeat_s
        if self._receiver.repeat_s:
            over = (alert for alert in sent if alert.status is AlertState.RESOLVED)
            self._over |= {alert.identity: (alert, now_s + _OVER_S) for alert in over}
        if delivery:
            self._delivered_total += 1
            self._store.remove([delivery])
            self._store.save(now=True)

    def _failed(self, delivery: Delivery | None, trouble: DeliveryError) -> None:
        self._failures_total += 1
        if delivery:
            delivery.tries += 1
            enough = self._receiver.tries is not None and delivery.tries >= self._receiver.tries
            if enough or not trouble.retry:
                self._lose([delivery], f" ({'tried often enough' if trouble.retry else 'refused'}: {trouble})")
                self._store.save(now=True)
                self._failures, self._due_s = 0, self._clock()
                return
        self._failures += 1
        if self._failures == 1:  # the thousandth is no news; the metrics count on
            LOG.warning("%s: %s; %d alerts wait", self.name, trouble, len(self._store.waiting(self.name)))
        pause_s = self._backoff.delay_s(self._failures, self._chance())
        self._due_s = self._clock() + max(pause_s, trouble.after_s or 0.0)

    def _lose(self, deliveries: Sequence[Delivery], why: str) -> None:
        self._lost_total += len(deliveries)
        for delivery in deliveries:
            LOG.error("%s: lost %s %s%s", self.name, delivery.alert.identity, delivery.alert.status.value, why)
        self._store.remove(deliveries)


def first_to_go(deliveries: Sequence[Delivery]) -> list[Delivery]:
    """What a full queue drops: the oldest alert that is over and that nobody has heard of, or the oldest transition."""
    fired: dict[tuple[str, str], Delivery] = {}
    for delivery in deliveries:
        key = (delivery.alert.identity, delivery.alert.event)
        if delivery.alert.status is AlertState.FIRING:
            fired[key] = delivery
        elif key in fired:
            return [fired[key], delivery]
    return list(deliveries[:1])


class DeliveryQueues:
    """The queues of one monitor's receivers, in one store."""

    def __init__(self, receivers: Sequence[Receiver], store: Store, **options: Any) -> None:
        """`options` are those of each queue."""
        self._store = store
        self._each = tuple(DeliveryQueue(receiver, store, **options) for receiver in receivers)
        for name in store.receivers:
            if name not in {queue.name for queue in self._each}:
                LOG.warning("%s: alerts wait for this receiver, which the host file no longer has", name)

    def add(self, transitions: Sequence[Alert], state: Mapping[str, Any]) -> None:
        """What began or ceased to fire, and what the alerts remember of it: on disk, in one transaction, on return.

        Where the disk refuses, it waits in memory. Does not raise, and waits for no receiver.
        """
        with self._store.lock:
            self._store.remember(state)
            for queue in self._each:
                queue.add(transitions)
            self._store.save(now=True)

    def start(self) -> None:
        """Begins to deliver; the CPUs of the threads are those of the caller."""
        for queue in self._each:
            queue.start()

    def show(self, status: Status) -> None:
        """To be called after each cycle, as an exporter is."""
        self._store.save()
        for queue in self._each:
            queue.show(status)

    def own(self) -> dict[str, float]:
        """For Board.own, or for `open_exporters`."""
        return {key: value for queue in self._each for key, value in queue.own().items()}

    def close(self, timeout_s: float = 5.0) -> None:
        """At most about `timeout_s` in all."""
        until_s = time.monotonic() + timeout_s
        for queue in self._each:
            queue.close(max(0.1, until_s - time.monotonic()))
