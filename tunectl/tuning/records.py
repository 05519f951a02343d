"""The journal's records as types: what a write was, as an entry and as the record that stands in the file."""

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from tunectl.cpulist import format_cpulist, parse_cpulist
from tunectl.errors import UsageError
from tunectl.host.ethtool import PREFIX
from tunectl.host.scheduling import parse_scheduling
from tunectl.model import Held, Scalar, Target, parse_target
from tunectl.shapes import typed
from tunectl.tuning.commands import KNOWN

OF_THE_BOOT = ("value", "affinity", "scheduling")  # of a kernel: they end with it
KINDS = (*OF_THE_BOOT, "file", "link", "directory", "removal", "edit")


class Entry(NamedTuple):
    """One write, as the journal knows it."""

    seq: int
    boot_id: str
    kind: str  # one of KINDS
    path: str
    before: str | None  # None: there was none
    undo: str  # what to write to a kernel attribute to have `before` again; of an edit, the file without us
    after: str
    mode: int | None
    targets: tuple[Target, ...]  # what the write was for; a record has their names, under "knobs"
    commands: tuple[str, ...]
    shown: str | None = None  # what the host showed after the write; None: the write may not have happened
    errno: int | None = None  # the write was refused or failed
    notified: bool = False  # the programs named in `commands` have been run since

    @property
    def original(self) -> str | None:
        """What to bring back. An edited file may have held words of ours before: a kernel upgrade copies them."""
        return self.undo if self.kind == "edit" and self.before is not None else self.before

    @property
    def persistent(self) -> bool:
        """Does it outlive the boot? What is made in /sys (a control group) does not."""
        return self.kind not in OF_THE_BOOT and not self.path.startswith("sys/")


_NAMES = {"targets": "knobs", "notified": "told"}  # on disk these keep the names that they were first written with
_THREAD = "proc/[0-9]{1,7}(?:/task/[0-9]{1,7})?"
_OF_THREADS = {"affinity": re.compile(f"{_THREAD}/status"), "scheduling": re.compile(f"{_THREAD}/stat")}
_Name = Annotated[str, Meta(max_length=4096)]  # its number is read, too: int() takes 4,300 digits
_Count = Annotated[int, Meta(ge=0)]


class _Before(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A write is about to be made: what becomes of it, later records say."""

    type: str
    seq: Annotated[int, Meta(ge=1)]
    boot_id: str
    kind: str
    path: Annotated[str, Meta(min_length=1)]
    before: str | None
    undo: str
    after: str
    mode: Annotated[int, Meta(ge=0, le=0o7777)] | None
    knobs: tuple[_Name, ...]
    commands: tuple[str, ...]
    shown: None = None
    errno: None = None
    told: bool = False


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    """Each of the others says which line of the file it is, except those of the first versions."""

    line: int = 0


class Start(_Record, frozen=True, kw_only=True):
    """A run of apply begins."""

    root: str
    created: tuple[str, ...]
    adopted: tuple[str, ...] = ()
    run: _Count = 0


class After(_Record, frozen=True, kw_only=True):
    """A write was made."""

    seq: int
    shown: str


class Refused(_Record, frozen=True, kw_only=True):
    """A write was not made."""

    seq: int
    errno: int


class Told(_Record, frozen=True, kw_only=True):
    """Programs were run."""

    seqs: tuple[int, ...]


class _HeldKnob(msgspec.Struct, frozen=True):
    value: Scalar
    at: str
    kernel: str
    numbers: str
    names: tuple[str, ...]


class InForce(_Record, frozen=True, kw_only=True):
    """What is in force at the end of a run."""

    knobs: dict[str, _HeldKnob]

    def held(self) -> dict[str, Held]:
        """By knob. UsageError for a list of numbers that is none."""
        return {
            knob: Held(
                held_knob.value, held_knob.at, held_knob.kernel, parse_cpulist(held_knob.numbers), held_knob.names
            )
            for knob, held_knob in self.knobs.items()
        }


class End(_Record, frozen=True, kw_only=True):
    """A run is complete."""

    wrote: tuple[str, ...] = ()


Record = Start | After | Refused | Told | InForce | End
_RECORDS: dict[str, type[Record]] = {
    "start": Start,
    "after": After,
    "refused": Refused,
    "told": Told,
    "held": InForce,
    "end": End,
}


def read_record(record: Mapping[str, Any]) -> Entry | Record:
    """A record as one of these types. TunectlError or ValueError, which say why, for what no version writes."""
    kind = record.get("type")
    if kind == "before":
        return _entry_of(typed(record, _Before))
    if not isinstance(kind, str) or kind not in _RECORDS:
        raise ValueError(f"type: {str(kind)[:60]!r} is no record that this version knows")
    return typed(record, _RECORDS[kind])


def before_record(entry: Entry) -> dict[str, Any]:
    """The record of a write that is about to be made: what becomes of it, later records say."""
    names = [str(target) for target in entry.targets]
    fields = entry._replace(shown=None, errno=None, notified=False)._asdict() | {"targets": names}
    return {"type": "before", **{_NAMES.get(name, name): value for name, value in fields.items()}}


def _entry_of(record: _Before) -> Entry:
    """The entry, once it is known that it can be undone."""
    fields = msgspec.structs.asdict(record)
    del fields["type"], fields["told"]
    targets = tuple(map(parse_target, fields.pop("knobs")))
    entry = Entry(**fields, targets=targets)
    for key, check in (("path", _check_path), ("before", _check_before), ("undo", _check_undo)):
        try:
            check(entry)
        except (UsageError, ValueError) as error:  # UnicodeEncodeError is one: a text that stands for no bytes
            raise ValueError(f"{key}: {error}") from error
    if unknown := set(entry.commands) - KNOWN:
        raise ValueError(f"commands: {min(unknown)[:60]!r} is no program that any version runs")
    return entry


def _check_path(entry: Entry) -> None:
    """ValueError for a path that is not below the root, or not one of its kind."""
    if entry.kind not in KINDS:
        raise ValueError(f"a write of the kind {entry.kind[:60]!r}, which no version makes")
    if entry.path.startswith("/") or ".." in entry.path.split("/"):
        raise ValueError("is not below the root")
    _check_name(entry.path)
    if entry.path.startswith(PREFIX):
        entry.path.encode()  # a message to the kernel holds text
    of_thread = _OF_THREADS.get(entry.kind)
    if of_thread and not of_thread.fullmatch(entry.path):
        raise ValueError("is no thread's")


def _check_before(entry: Entry) -> None:
    """ValueError for a before-image that no such path can have had."""
    if entry.before is None:
        if entry.kind in OF_THE_BOOT:
            raise ValueError("a kernel's attribute was there before")
    elif entry.kind == "scheduling":
        parse_scheduling(entry.before)
    elif entry.kind == "link":
        _check_name(entry.before)
    else:
        entry.before.encode("latin-1")


def _check_undo(entry: Entry) -> None:
    """ValueError or UsageError for what cannot bring the before-image back."""
    if entry.kind == "scheduling":
        parse_scheduling(entry.undo)
    elif entry.kind == "affinity" and not parse_cpulist(entry.undo):
        raise ValueError("a thread has at least one CPU")
    elif entry.kind == "edit":
        (entry.undo + entry.after).encode("latin-1")
    elif entry.kind != "link":
        entry.undo.encode()


def _check_name(text: str) -> None:
    if not text or b"\0" in os.fsencode(text):
        raise ValueError("is no name of a file")


def held_record(held: Mapping[str, Held]) -> dict[str, Any]:
    """The record of what is in force at the end of a run."""
    knobs = {
        knob: {**one._asdict(), "numbers": format_cpulist(one.numbers), "names": list(one.names)}
        for knob, one in held.items()
    }
    return {"type": "held", "knobs": knobs}
