"""One outbox a notifier: every edge is delivered once, in order, however long the receiver is away.

At least once, from the spool; no duplicate, since only what the receiver acknowledged is forgotten, and each try of an
edge carries the same id: a receiver that took an alert and could not say so knows it again.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tunectl.monitor.backlog import HELD_AGAIN_S, MOST, SAVE_AGAIN_S, Backlog, Entry
from tunectl.monitor.model import Alert, Board, Status
from tunectl.monitor.receivers.receiver import DeliveryError, Receiver
from tunectl.monitor.spool import orphans

LOG = logging.getLogger("tunectl.monitor.outbox")
_IDLE_S = 3600.0
# After a reload the outbox before this one may still wait for its receiver. What it leaves behind comes first.
_PATIENCE_S = 15.0


class Backoff(NamedTuple):
    """How long to wait after the n-th failure in a row: twice as long each time, less up to a half by chance."""

    first_s: float = 1.0
    most_s: float = 30.0

    def delay_s(self, failures: int, chance: float) -> float:
        """Seconds; `chance` is in [0, 1). Hosts of one rack that lost one receiver must not come back all at once."""
        return float(min(self.most_s, self.first_s * 2 ** min(failures - 1, 30))) * (1 - chance / 2)


class Outbox:
    """The backlog and the thread of one notifier. `post` never raises and never waits for the receiver."""

    def __init__(
        self,
        notifier: Receiver,
        directory: str,
        *,
        most: int = MOST,
        backoff: Backoff = Backoff(),  # noqa: B008 - a constant
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.name = notifier.name
        self._notifier, self._backoff, self._clock, self._chance = notifier, backoff, clock, chance
        self._backlog = Backlog(notifier.name, f"{directory}/{notifier.name}.spool", clock, most)
        self._busy: Entry | None = None
        self._firing: dict[str, Alert] = {}  # by identity
        self._failures = 0  # in a row
        self._due_s = self._repeat_s = 0.0
        self._delivered_total = self._failures_total = 0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._patient_s = clock() + _PATIENCE_S
        self._stop_s: float | None = None
        self._thread: threading.Thread | None = None

    def post(self, edges: Sequence[Alert]) -> None:
        """Queues what began or ceased to fire; on disk when this returns, where there is one."""
        with self._lock:
            for alert in edges:
                self._firing.pop(alert.identity, None)
                if alert.status is Status.FIRING:
                    self._firing[alert.identity] = alert
            if edges:
                self._backlog.add(edges, self._busy)
        self._wake.set()

    def show(self, board: Board) -> None:
        """What fires by now, so that it can be said again; after a restart too, which posts no edge."""
        with self._lock:
            news = bool(board.firing) and not self._firing
            self._firing = {alert.identity: alert for alert in board.firing}
        if news:
            self._wake.set()

    def own(self) -> dict[str, float]:
        """Numbers about this outbox for Board.own: `outbox_depth[name]`, ..."""
        with self._lock:
            now = {
                "depth": len(self._backlog.entries),
                "unsaved": len(self._backlog.unsaved),
                "oldest_seconds": self._backlog.oldest_s,
                "delivered_total": self._delivered_total,
                "failures_total": self._failures_total,
                "lost_total": self._backlog.lost,
            }
        return {f"outbox_{name}[{self.name}]": float(value) for name, value in now.items()}

    def start(self) -> None:
        """Begins to deliver, in a daemon thread."""
        self._thread = threading.Thread(target=self._run, name=f"tunectl-{self.name}"[:15], daemon=True)
        self._thread.start()

    def close(self, timeout_s: float = 5.0) -> None:
        """Delivers what can be delivered at once, and stops; the rest waits on disk for the next start."""
        self._stop_s = self._clock() + timeout_s
        self._wake.set()
        if self._thread:
            self._thread.join(timeout_s)
        else:
            self._end()

    def _run(self) -> None:
        while self._stop_s is None:
            self._wake.wait(self.step())
            self._wake.clear()
        while self._backlog.entries and self._clock() < self._stop_s and not self.step():
            pass
        self._end()

    def _end(self) -> None:
        """By the thread itself, where there is one: what is under way when the time is over still gets its mark."""
        with self._lock:
            self._backlog.close()

    def step(self) -> float:
        """Delivers the oldest alert, if it is due; in how many seconds there is something to do again."""
        with self._lock:
            self._backlog.save()
            now_s = self._clock()
            pause_s = self._pause_s(now_s)
            if pause_s > 0:
                return pause_s if self._backlog.settled else min(pause_s, SAVE_AGAIN_S)
            self._busy = next(iter(self._backlog.entries), None)
            alerts = (self._busy.alert,) if self._busy else tuple(self._firing.values())
        trouble = self._deliver(alerts)
        with self._lock:
            entry, self._busy = self._busy, None
            if trouble:
                self._failed(entry, trouble)
            else:
                self._succeeded(entry)
            return max(0.0, self._due_s - self._clock())

    def _pause_s(self, now_s: float) -> float:
        """How long until the next try: of the oldest edge or, where none waits, of saying again what fires."""
        if self._backlog.held and now_s < self._patient_s:
            return HELD_AGAIN_S
        if self._backlog.entries:
            return self._due_s - now_s
        if self._notifier.repeat_s and self._firing:
            return max(self._due_s, self._repeat_s) - now_s
        return _IDLE_S

    def _deliver(self, alerts: Sequence[Alert]) -> DeliveryError | None:
        try:
            self._notifier.deliver(alerts)
        except DeliveryError as error:
            return error
        except Exception as error:  # a defect of ours must not end the thread; its text could hold anything
            return DeliveryError(f"{type(error).__name__} in the notifier")
        return None

    def _succeeded(self, entry: Entry | None) -> None:
        now_s = self._due_s = self._clock()
        if self._failures:
            LOG.warning("%s: delivers again after %d failures", self.name, self._failures)
        self._failures = 0
        if self._notifier.repeat_s and (entry is None or self._repeat_s <= now_s):
            self._repeat_s = now_s + self._notifier.repeat_s
        if entry:
            self._delivered_total += 1
            self._backlog.remove(entry)

    def _failed(self, entry: Entry | None, trouble: DeliveryError) -> None:
        self._failures_total += 1
        if entry:
            entry.tries += 1
            enough = self._notifier.tries is not None and entry.tries >= self._notifier.tries
            if enough or not trouble.retry:
                self._backlog.lose([entry], f"{'tried often enough' if trouble.retry else 'refused'}: {trouble}")
                self._failures, self._due_s = 0, self._clock()
                return
        self._failures += 1
        if self._failures == 1:  # the thousandth is no news; the metrics count on
            LOG.warning("%s: %s; %d alerts wait", self.name, trouble, len(self._backlog.entries))
        pause_s = self._backoff.delay_s(self._failures, self._chance())
        self._due_s = self._clock() + max(pause_s, trouble.after_s or 0.0)


class Outboxes:
    """The outboxes of one monitor, below `state_dir`/monitor/spool."""

    def __init__(self, notifiers: Sequence[Receiver], state_dir: str) -> None:
        directory = f"{state_dir}/monitor/spool"
        self._each = tuple(Outbox(notifier, directory) for notifier in notifiers)
        for name in orphans(directory, {outbox.name for outbox in self._each}):
            LOG.warning("%s/%s: alerts wait there for a receiver that the host file no longer has", directory, name)

    @property
    def tells(self) -> dict[str, Callable[[Sequence[Alert]], None]]:
        """To be called with the edges of a cycle, by the notifier's name. They do not raise and do not wait."""
        return {outbox.name: outbox.post for outbox in self._each}

    def start(self) -> None:
        """Begins to deliver; the CPUs of the threads are those of the caller."""
        for outbox in self._each:
            outbox.start()

    def show(self, board: Board) -> None:
        """To be called after each cycle, as an exporter is."""
        for outbox in self._each:
            outbox.show(board)

    def own(self) -> dict[str, float]:
        """For Board.own, or for `open_exporters`."""
        return {key: value for outbox in self._each for key, value in outbox.own().items()}

    def close(self, timeout_s: float = 5.0) -> None:
        """At most about `timeout_s` in all."""
        until_s = time.monotonic() + timeout_s
        for outbox in self._each:
            outbox.close(max(0.1, until_s - time.monotonic()))
