"""The journal's records: what a write was, as an entry and as the record that stands in the file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import NoneType
from typing import Any, NamedTuple

from tunectl.cpulist import format_cpulist, parse_cpulist
from tunectl.errors import UsageError
from tunectl.model import Held, Scalar, Target, parse_target
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


# On disk these fields keep the names that they were first written with.
_NAMES = {"targets": "knobs", "notified": "told"}
_OTHERS = frozenset(("type", *_NAMES.values()))
_TYPES: dict[str, type | tuple[type, ...]] = {
    "seq": int,
    "boot_id": str,
    "kind": str,
    "path": str,
    "before": (str, NoneType),
    "undo": str,
    "after": str,
    "mode": (int, NoneType),
    "shown": NoneType,  # later records say these two
    "errno": NoneType,
}
_TYPED = [(Entry._fields.index(name), kind) for name, kind in _TYPES.items()]


def before_record(entry: Entry) -> dict[str, Any]:
    """The record of a write that is about to be made: what becomes of it, later records say."""
    names = [str(target) for target in entry.targets]
    fields = entry._replace(shown=None, errno=None, notified=False)._asdict() | {"targets": names}
    return {"type": "before", **{_NAMES.get(name, name): value for name, value in fields.items()}}


def entry_of(record: dict[str, Any]) -> Entry:
    """The entry of a `before` record. AttributeError, KeyError, TypeError or ValueError for any other."""
    fields = {name: value for name, value in record.items() if name not in _OTHERS}
    fields["targets"] = tuple([parse_target(name) for name in texts(record["knobs"])])
    fields["commands"] = texts(record["commands"])
    entry = Entry(**fields)
    for place, kind in _TYPED:  # a host has thousands of entries, and each command reads them all
        if not isinstance(entry[place], kind):
            raise TypeError("a field of another type")
    if isinstance(entry.seq, bool) or isinstance(entry.mode, bool) or entry.seq < 1:
        raise TypeError("no number")
    if entry.mode is not None and not 0 <= entry.mode <= 0o7777:
        raise ValueError("no mode of a file")
    if entry.kind not in KINDS or entry.path.startswith("/") or ".." in entry.path.split("/"):
        raise ValueError("no path below the root")
    _require_bytes(entry)
    if not KNOWN.issuperset(entry.commands):
        raise ValueError("a program that no version runs")
    return entry


def texts(value: object) -> tuple[str, ...]:
    """A list of texts from a record. TypeError for anything else."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise TypeError("no list of texts")
    return tuple(value)


def _require_bytes(entry: Entry) -> None:
    """ValueError (UnicodeEncodeError is one) for a path or text that stands for no bytes."""
    before = entry.original or ""
    os.fsencode(entry.path)
    if entry.kind == "link":
        os.fsencode(before)
    else:
        before.encode("latin-1")
        entry.undo.encode("latin-1" if entry.kind == "edit" else "utf-8")
    if not entry.path or "\0" in entry.path + (before if entry.kind == "link" else ""):
        raise ValueError("no path")


def held_record(held: Mapping[str, Held]) -> dict[str, Any]:
    """The record of what is in force at the end of a run."""
    knobs = {
        knob: {**one._asdict(), "numbers": format_cpulist(one.numbers), "names": list(one.names)}
        for knob, one in held.items()
    }
    return {"type": "held", "knobs": knobs}


def held_of(record: dict[str, Any]) -> dict[str, Held]:
    """The inverse. AttributeError, KeyError, TypeError or ValueError for what no version writes."""
    found = {}
    for knob, fields in record["knobs"].items():
        try:
            numbers = parse_cpulist(fields["numbers"])
        except UsageError as error:
            raise ValueError("no list of numbers") from error
        names = texts(fields["names"])
        one = Held(fields["value"], os.fspath(fields["at"]), os.fspath(fields["kernel"]), numbers, names)
        if not isinstance(one.value, Scalar):
            raise TypeError("a value of another type")
        found[knob] = one
    return found
