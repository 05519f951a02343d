"""The documents of its preflights that a host keeps, and which runs of the timer left none.

    STATE/preflight/20261128T074512Z.json            handed on, or for nobody but this host
                    20261128T074512Z.waiting.json    to be handed on
                    20261128T074512Z.refused.json    the receiver said for good that it does not take it

How a document stands is its name, so that each step is one rename.
"""

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from tunectl.durable import make_directories, remove_file, replace_file
from tunectl.errors import TunectlError
from tunectl.host.calendar import elapses

TAKEN, WAITING, REFUSED = ".json", ".waiting.json", ".refused.json"
MOST = 1000  # documents in all, also while nobody takes them
_STAMP = "%Y%m%dT%H%M%SZ"
_PART = ".part"
_LOOKED_AT = 50  # times of the timer since the last document
_ON_TIME = timedelta(minutes=6)  # the timer's RandomizedDelaySec=, and a start


def open_place(state: str) -> str:
    """Where a host keeps them, below its state directory; it is made. TunectlError."""
    place = os.path.join(state, "preflight")
    try:
        make_directories(place)
    except OSError as error:
        raise TunectlError(f"cannot keep documents in {place}: {error.strerror}") from error
    return place


def kept(place: str) -> list[str]:
    """The names of the whole documents, the oldest first."""
    return sorted(name for name in os.listdir(place) if name.endswith(TAKEN))


def keep(place: str, at: datetime, document: bytes, most: int, *, waits: bool) -> None:
    """Has the document on disk on return, and only the last `most` of those that wait for nobody. TunectlError."""
    stamp = at.astimezone(UTC).strftime(_STAMP)
    try:
        path = os.path.join(place, stamp + (WAITING if waits else TAKEN))
        replace_file(path, document, beside=os.path.join(place, stamp + _PART))
        for name in (*to_remove(kept(place), most), *_left(os.listdir(place), stamp)):
            remove_file(os.path.join(place, name))
    except OSError as error:
        raise TunectlError(f"cannot keep the document in {place}: {error.strerror}") from error


def to_remove(names: Sequence[str], most: int) -> list[str]:
    """Which go: all but the last `most`; of what waits, or was refused, all but the last 1,000."""
    older, oldest = names[: max(0, len(names) - most)], names[: max(0, len(names) - MOST)]
    return [name for name in older if name in oldest or not name.endswith((WAITING, REFUSED))]


def _left(names: Iterable[str], stamp: str) -> list[str]:
    """What killed runs before this one had begun to write."""
    return [name for name in names if name.endswith(_PART) and name < stamp]


def missed(place: str, when: str, now: datetime) -> list[str]:
    """A sentence where runs of the timer since the last document left none, and where this one is late.

    `when` is the timer's time, or "" where there is none.
    """
    names = kept(place)
    if not when or not names:
        return []
    last = datetime.strptime(names[-1].partition(".")[0], _STAMP).replace(tzinfo=UTC)
    try:
        due = [each for each in elapses(when, last, _LOOKED_AT) if each <= now]
    except TunectlError as error:
        return [f"whether runs of the timer were missed is not known: {error.message}"]
    if len(due) == _LOOKED_AT:
        return [f"missed runs of the timer: {len(due) - 1} or more, since {last:%Y-%m-%d %H:%M} UTC"]
    said = []
    if len(due) > 1:
        said.append(f"missed runs of the timer: {len(due) - 1}, the last on {due[-2]:%Y-%m-%d %H:%M} UTC")
    if due and now - due[-1] > _ON_TIME:
        said.append(f"this run was due on {due[-1]:%Y-%m-%d %H:%M} UTC, and is made up for now")
    return said
