"""What waits for one receiver: a bounded queue, kept in step with its spool as well as the disk allows.

Full: what fired and resolved and was never told goes first, then the oldest; each loss is said and counted. A disk
that is full, missing or somebody else's costs no alert while the monitor lives: it is said once, and tried again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tunectl.monitor.model import Alert, AlertState
from tunectl.monitor.spool import Spool

LOG = logging.getLogger("tunectl.monitor.outbox")
MOST = 1000  # alerts that wait for one receiver
SAVE_AGAIN_S = 10.0  # how often a full or missing disk is tried again
HELD_AGAIN_S = 0.5  # and a spool whose holder is about to end


@dataclass(eq=False)
class Entry:
    """An alert that waits."""

    alert: Alert
    queued_s: float
    offset: int | None = None  # where it stands in the spool; None: in memory only
    tries: int = 0


class Backlog:
    """The queue of one receiver, oldest first. Not safe for threads: its owner holds a lock. Nothing here raises."""

    def __init__(self, name: str, path: str, clock: Callable[[], float], most: int = MOST) -> None:
        self.name = name
        self.lost = 0
        self.entries: list[Entry] = []
        self._spool = Spool(path)
        self._clock = clock
        self._most = most
        self._gone: set[int] = set()  # offsets that are done and not yet marked so
        self._save_s = 0.0  # when the disk is tried again
        self._trouble = ""  # with the disk, as it was said
        self.held = False  # another process, or the outbox before this one, has the spool
        self.save()

    def add(self, alerts: Sequence[Alert], busy: Entry | None) -> None:
        """Queues and saves; `busy` is being delivered and is not what a full queue drops."""
        now_s = self._clock()
        self.entries += [Entry(alert, now_s) for alert in alerts]
        self._bound(busy)
        self.save(now=True)

    def remove(self, entry: Entry) -> None:
        """It was delivered."""
        self._drop([entry])
        self.save(now=True)

    def lose(self, entries: Sequence[Entry], why: str) -> None:
        """They will never be delivered: said and counted."""
        self.lost += len(entries)
        for entry in entries:
            LOG.error("%s: lost %s %s (%s)", self.name, entry.alert.identity, entry.alert.status.value, why)
        self._drop(entries)
        self.save(now=True)

    @property
    def unsaved(self) -> list[Entry]:
        """What a crash would cost."""
        return [entry for entry in self.entries if entry.offset is None]

    @property
    def oldest_s(self) -> float:
        """How long the oldest has waited."""
        return self._clock() - self.entries[0].queued_s if self.entries else 0.0

    @property
    def settled(self) -> bool:
        """Is the spool as the queue is?"""
        return self._spool.is_open and not self._gone and not self.unsaved

    def save(self, *, now: bool = False) -> None:
        """Brings the spool up to the queue; where the disk does not let it, says so once and tries again later."""
        if self.settled or (self._clock() < self._save_s and not now):
            return
        try:
            self._write()
        except BlockingIOError:
            self._failed("another monitor holds it", HELD_AGAIN_S)
        except OSError as error:
            self._failed(error.strerror or type(error).__name__)
        else:
            if self._trouble:
                LOG.warning("%s: alerts are saved again in %s", self.name, self._spool.path)
            self._trouble, self.held = "", False

    def close(self) -> None:
        """Saves what can be saved and gives the spool back."""
        self.save(now=True)
        if self.unsaved:
            LOG.error("%s: %d alerts were neither delivered nor saved", self.name, len(self.unsaved))
        self._spool.close()

    def _write(self) -> None:
        if not self._spool.is_open:
            self._load()
        if self._gone:
            self._spool.done(self._gone)
            self._gone.clear()
        if unsaved := self.unsaved:
            for entry, offset in zip(unsaved, self._spool.append([one.alert for one in unsaved]), strict=True):
                entry.offset = offset
        if self._spool.untidy:
            moved = self._spool.rewrite()
            for entry in self.entries:
                entry.offset = None if entry.offset is None else moved[entry.offset]

    def _load(self) -> None:
        found = self._spool.open()
        if found.damaged:
            self.lost += found.damaged
            LOG.error("%s: %d damaged lines in %s are lost", self.name, found.damaged, self._spool.path)
        self.entries[:0] = [Entry(alert, self._clock(), offset) for offset, alert in found.waiting]

    def _failed(self, why: str, again_s: float = SAVE_AGAIN_S) -> None:
        self.held = again_s == HELD_AGAIN_S
        self._save_s = self._clock() + again_s
        if why != self._trouble:
            LOG.error("%s: cannot save alerts in %s: %s; they are kept in memory", self.name, self._spool.path, why)
        self._trouble = why

    def _bound(self, busy: Entry | None) -> None:
        while len(self.entries) > self._most:
            victims = first_to_go([entry for entry in self.entries if entry is not busy])
            if not victims:
                return
            self.lost += len(victims)
            for entry in victims:
                LOG.error("%s: lost %s %s: the outbox is full", self.name, entry.alert.identity, entry.alert.status)
            self._drop(victims)

    def _drop(self, entries: Sequence[Entry]) -> None:
        self._gone |= {entry.offset for entry in entries if entry.offset is not None}
        self.entries = [entry for entry in self.entries if entry not in entries]


def first_to_go(entries: Sequence[Entry]) -> list[Entry]:
    """What a full outbox drops: the oldest alert that is over and of which nobody has heard, else the oldest edge."""
    fired: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        key = (entry.alert.identity, entry.alert.since)
        if entry.alert.status is AlertState.FIRING:
            fired[key] = entry
        elif key in fired:
            return [fired[key], entry]
    return list(entries[:1])
