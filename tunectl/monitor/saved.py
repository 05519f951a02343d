"""What stands in a store's file, a damaged one too: each table is read by itself, and each record has a checksum."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tunectl.durable import decode
from tunectl.monitor.alerts import alert_of
from tunectl.monitor.database import ERRORS, check, is_damage
from tunectl.monitor.model import Alert

_MOST_ID = 1 << 62
# A damaged row may hold anything in any column: the types are made certain here, the records have a checksum.
_WAITING = """SELECT rowid, CAST(coalesce(receiver, '') AS TEXT), CAST(coalesce(alert, '') AS BLOB)
              FROM delivery WHERE NOT done ORDER BY rowid"""
_BACKWARDS = f"{_WAITING} DESC"  # a damaged page in the middle hides what comes after it
_ONE = _WAITING.replace("NOT done", "NOT done AND rowid = ?")
_MOST_TRIES = 10_000  # rows that are looked for one by one; a monitor counts its notifications from 1
_STATE = "SELECT CAST(coalesce(record, '') AS BLOB) FROM state"


@dataclass(slots=True)
class Saved:
    """The content of a file, as far as it can be read."""

    waiting: dict[int, tuple[str, Alert]] = field(default_factory=dict)  # by row: receiver and alert
    bad: dict[int, str] = field(default_factory=dict)  # damaged records: the receiver, by row
    state: Mapping[str, Any] | None = None
    is_state_lost: bool = False
    is_cut: bool = False  # there were notifications, perhaps, where nothing can be read
    damage: Exception | None = None  # the first that was met

    @property
    def lost(self) -> Counter[str]:
        """How many damaged records each receiver has."""
        return Counter(self.bad.values())

    @property
    def text(self) -> str:
        """What is kept and what is not, for people."""
        more = ", and what stood on pages that cannot be read" if self.is_cut else ""
        lost = len(self.bad) + self.is_state_lost
        return f"{len(self.waiting)} notifications that wait are kept; {lost} damaged records are lost{more}"


def read_saved(database: sqlite3.Connection) -> Saved:
    """All that can be read. Only what is a matter of the disk or of a lock is raised: it may pass."""
    saved = Saved()
    _tolerated(saved, check, database)
    for query in (_WAITING, _BACKWARDS):
        if _tolerated(saved, _read_waiting, database, query, saved):
            break
        saved.is_cut = True
    else:  # neither end of the table leads to what stands between two pages that cannot be read
        known = saved.waiting.keys() | saved.bad.keys()
        first = min(known, default=1)
        for id_ in range(first, min(max(known, default=_MOST_ID), first + _MOST_TRIES)):
            if id_ not in known:
                _tolerated(saved, _read_waiting, database, _ONE, saved, id_)
    if not _tolerated(saved, _read_state, database, saved):
        saved.is_state_lost = True
    if saved.damage is None:
        _tolerated(saved, _check_pages, database)
    return saved


def _tolerated(saved: Saved, read: Callable[..., None], *given: object) -> bool:
    """Did it come to its end? The damage that it met is kept."""
    try:
        read(*given)
    except ERRORS as error:
        if not is_damage(error):
            raise
        saved.damage = saved.damage or error
        return False
    return True


def _read_waiting(database: sqlite3.Connection, query: str, saved: Saved, *of: int) -> None:
    for id_, receiver, record in database.execute(query, of):
        alert = alert_of(decode(record))
        id_ = -1 - len(saved.bad) - len(saved.waiting) if id_ is None else id_  # a damaged table need not number them
        if alert is None or id_ > _MOST_ID:
            saved.bad[id_] = receiver
        else:
            saved.waiting[id_] = (receiver, alert)


def _read_state(database: sqlite3.Connection, saved: Saved) -> None:
    for (record,) in database.execute(_STATE):
        saved.state = decode(record)
        saved.is_state_lost = saved.state is None


def _check_pages(database: sqlite3.Connection) -> None:
    (said,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if said != "ok":
        raise sqlite3.DatabaseError(said)
