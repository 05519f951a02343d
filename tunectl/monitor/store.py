"""What must outlive the process: which alerts fire, and what each receiver has not acknowledged. One SQLite file.

A transition, its deliveries and the state of the alerts are one transaction: a process that is killed has written all
of it or nothing. An acknowledgement is an UPDATE in place, which a full disk takes. While the process lives,
its memory is what counts, and the file follows as well as the disk allows: a full or damaged disk costs no alert.
"""

import errno
import logging
import os
import sqlite3
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from tunectl.monitor.database import (
    ERRORS,
    NewerVersionError,
    check,
    is_damage,
    open_database,
    record_of,
    set_aside,
    to_be_written,
    transaction,
)
from tunectl.monitor.model import Alert
from tunectl.monitor.occupancy import Occupancy, OccupiedError, inode
from tunectl.monitor.saved import read_saved

LOG = logging.getLogger("tunectl.monitor.store")
FILE = "monitor.sqlite3"
SAVE_AGAIN_S = 10.0  # how often a disk that refuses is tried again
_IN_MEMORY = "what waits is in memory and is written again"
_REMOVED = "somebody removed the file"
# ProtectSystem=strict leaves a service its state directory alone to write. Where that was removed, what is made in its
# place is of the file system that it may only read (namespaces(7); systemd.exec(5)).
_GONE_FROM_SERVICE = (
    " (was the service's state directory removed? then it needs: sudo systemctl restart tunectl-monitor)"
)
STATE = "the state of the alerts"  # among what is lost
_NOT_READ = ("alerts.json", "spool")  # what no version since 1.0.0rc1 writes


@dataclass(eq=False, slots=True)
class Delivery:
    """An alert that waits for one receiver."""

    receiver: str
    alert: Alert
    queued_s: float
    id: int | None = None  # its row; the same however often it is written
    is_saved: bool = False
    is_busy: bool = False  # a thread is delivering it
    tries: int = 0


class Store:
    """The alerts of one state directory. Whoever touches it holds `lock`. Nothing but `open` raises."""

    def __init__(self, directory: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = os.path.join(directory, FILE)
        self.lock = threading.RLock()
        self.state: Mapping[str, Any] = {}
        self.lost: Counter[str] = Counter()  # by receiver, or STATE: damaged records
        self._waiting: dict[str, list[Delivery]] = defaultdict(list)  # the oldest first
        self._acknowledged: set[int] = set()  # rows that are not marked so yet
        self._state_waits = self._is_closed = False
        self._directory, self._clock = directory, clock
        self._database: sqlite3.Connection | None = None
        self._inode = 0  # of the open file: while it is open, no other has the same
        self._is_read = False  # what was left behind is in memory
        self._kept = "nothing in it can be read"  # of a file that is set aside
        self._next_id = 1
        self._occupancy = Occupancy(directory)
        self._again_s = 0.0  # when the disk is tried again
        self._trouble = ""  # with the disk, as it was said

    def open(self) -> None:
        """Takes the directory and reads what is there. OccupiedError where another monitor is at work in it."""
        try:
            self._occupancy.hold()
        except OSError as error:
            self._failed(error)
        else:
            self.save(now=True)

    def waiting(self, receiver: str) -> Sequence[Delivery]:
        """What this receiver has not acknowledged, the oldest first."""
        return self._waiting[receiver]

    @property
    def receivers(self) -> list[str]:
        """Those for whom something waits."""
        return sorted(name for name, waiting in self._waiting.items() if waiting)

    def add(self, receiver: str, alerts: Iterable[Alert]) -> None:
        """They wait for this receiver; in memory until `save`."""
        self._waiting[receiver] += [Delivery(receiver, alert, self._clock()) for alert in alerts]

    def remember(self, state: Mapping[str, Any]) -> None:
        """What fires; in memory until `save`."""
        self.state, self._state_waits = state, True

    def remove(self, deliveries: Iterable[Delivery]) -> None:
        """They are acknowledged or given up: nobody delivers them again; in memory until `save`."""
        for delivery in deliveries:
            self._waiting[delivery.receiver].remove(delivery)
            if delivery.id is not None:
                self._acknowledged.add(delivery.id)

    @property
    def unsaved(self) -> list[Delivery]:
        """What a crash would cost."""
        return [delivery for delivery in self._all() if not delivery.is_saved]

    @property
    def is_saved(self) -> bool:
        """Is the file as the memory is? One that somebody removed is not."""
        if self._database is None or self._state_waits or self._acknowledged or self.unsaved:
            return False
        try:
            return inode(self.path) == self._inode
        except OSError:
            return False

    def save(self, *, now: bool = False) -> None:
        """Brings the file up to the memory; where the disk refuses, that is said once and tried again later."""
        with self.lock:
            if self._is_closed or (not now and (self.is_saved or self._clock() < self._again_s)):
                return
            try:
                try:
                    self._write(self._opened())
                except ERRORS as error:
                    if not is_damage(error):
                        raise
                    self._set_aside(error)
                    self._write(self._opened())
            except (OSError, OccupiedError, *ERRORS) as error:
                self._failed(error)
                return
            if self._trouble:
                LOG.warning("alerts are saved again in %s (before: %s)", self.path, self._trouble)
            self._trouble = ""

    def close(self) -> None:
        """Saves what can be saved and lets other monitors in."""
        with self.lock:
            self.save(now=True)
            if unsaved := self.unsaved:
                LOG.error("%d alerts were neither delivered nor saved", len(unsaved))
            self._is_closed = True
            self._disconnect()
            self._occupancy.release()

    def _all(self) -> Iterator[Delivery]:
        return (delivery for waiting in self._waiting.values() for delivery in waiting)

    def _opened(self) -> sqlite3.Connection:
        """The database. It is opened where it is not, or where its file was cleared away under us."""
        if self._database is not None and inode(self.path) == self._inode:
            return self._database
        if self._database is not None:
            self._trouble = _REMOVED
        self._disconnect()
        self._occupancy.hold()
        self._database = database = open_database(self.path, to_read=not self._is_read)
        self._inode = inode(self.path)
        if self._is_read:
            check(database)  # what stands in this file is not known: everything is written again, under the same ids
            self._state_waits = True
            for delivery in self._all():
                delivery.is_saved = False
        else:
            self._read(database)
            to_be_written(database)
        return database

    def _set_aside(self, error: Exception) -> None:
        """Makes room for a new file; what could be read of this one is in memory, and is written there."""
        self._disconnect()
        aside = set_aside(self.path)
        what = str(error) if isinstance(error, NewerVersionError) else f"it is damaged ({error})"
        LOG.error("%s: %s: set aside as %s; %s", self.path, what, aside, self._kept)
        self._kept = _IN_MEMORY

    def _read(self, database: sqlite3.Connection) -> None:
        """What was left behind comes first; of a damaged file as much as can be read, and its error is raised then."""
        saved = read_saved(database)
        self._acknowledged.update(saved.bad)
        left = [
            Delivery(receiver, alert, self._clock(), id_, is_saved=True)
            for id_, (receiver, alert) in sorted(saved.waiting.items())
        ]
        for receiver, count in saved.lost.items():
            self._lose(receiver, count)
        if saved.is_state_lost:
            self._lose(STATE, 1)
        if not self._state_waits:
            self.state = saved.state or {}
        for path in (os.path.join(self._directory, name) for name in _NOT_READ):
            if os.path.lexists(path):  # left as it is: nothing in it is believed or sent
                LOG.error("%s is of a version before 1.0.0rc1 and is not read: remove it", path)
        self._state_waits |= saved.is_state_lost  # so that it is said once
        for delivery in reversed(left):
            self._waiting[delivery.receiver].insert(0, delivery)
        self._next_id = 1 + max((delivery.id for delivery in left if delivery.id is not None), default=0)
        self._is_read = True
        self._kept = saved.text if saved.damage else _IN_MEMORY
        if saved.damage:
            raise saved.damage

    def _write(self, database: sqlite3.Connection) -> None:
        if self._acknowledged:  # apart: on a full disk there is room for this and not for more
            with transaction(database):
                ids = [(id_,) for id_ in self._acknowledged]
                database.executemany("UPDATE delivery SET done = 1 WHERE id = ?", ids)
            self._acknowledged.clear()
        unsaved = self.unsaved
        if unsaved or self._state_waits:
            for delivery in unsaved:
                if delivery.id is None:
                    delivery.id, self._next_id = self._next_id, self._next_id + 1
            rows = [
                (delivery.id, delivery.receiver, record_of(msgspec.to_builtins(delivery.alert))) for delivery in unsaved
            ]
            with transaction(database):
                database.execute("DELETE FROM delivery WHERE done")
                database.execute("REPLACE INTO state VALUES (0, ?)", (record_of(self.state),))
                database.executemany("REPLACE INTO delivery VALUES (?, ?, 0, ?)", rows)
            for delivery in unsaved:
                delivery.is_saved = True
            self._state_waits = False

    def _lose(self, receiver: str, count: int) -> None:
        self.lost[receiver] += count
        LOG.error("%s: %d damaged records in %s are lost", receiver, count, self._directory)

    def _failed(self, error: Exception) -> None:
        is_full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
        if not is_full:  # anything else may be a matter of this connection, or of this file
            self._disconnect()
        self._again_s = self._clock() + SAVE_AGAIN_S
        why = os.strerror(errno.ENOSPC) if is_full else str(getattr(error, "strerror", None) or error)
        if getattr(error, "errno", None) == errno.EROFS:
            why += _GONE_FROM_SERVICE
        if why != self._trouble:
            kept = "they are kept in memory and not remembered over a restart"
            LOG.error("cannot save alerts in %s: %s; %s", self.path, why, kept)
        self._trouble = why

    def _disconnect(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None
