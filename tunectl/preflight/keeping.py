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


def place_of(state: str) -> str:
    """Where a host keeps them, below its state directory."""
    return os.path.join(state, "preflight")


def open_place(state: str) -> str:
    """The same; it is made. TunectlError."""
    place = place_of(state)
    try:
        make_directories(place)
    except OSError as error:
        raise TunectlError(f"cannot keep documents in {place}: {error.strerror}") from error
    return place


def kept(place: str) -> list[str]:
    """The names of the documents, the oldest first: of the regular files that have a name of ours."""
    return sorted(each.name for each in os.scandir(place) if made_at(each.name) and each.is_file(follow_symlinks=False))


def waiting_in(place: str) -> list[str]:
    """Those that nobody has taken or refused yet."""
    return [name for name in kept(place) if name.endswith(WAITING)]


def odd(place: str) -> list[str]:
    """What is called as a document that waits, and is none: a FIFO, a directory, a link, a name that is not ours."""
    documents = set(kept(place))
    return sorted(name for name in os.listdir(place) if name.endswith(WAITING) and name not in documents)


def made_at(name: str) -> datetime | None:
    """When a document of that name was made; None for another name."""
    stamp, _, rest = name.partition(".")
    if f".{rest}" not in (TAKEN, WAITING, REFUSED):
        return None
    try:
        return datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None


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
    made = [at for name in kept(place) if (at := made_at(name)) and at <= now]  # one of later: the clock was wrong
    if not when or not made:
        return []
    last = made[-1]
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
