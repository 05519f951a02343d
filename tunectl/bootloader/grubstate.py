"""What a running GRUB script has changed so far, and what is left to rely on where two ways through it meet. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tunectl.bootloader.grubsyntax import Nodes

_ALWAYS_EXPORTED = ("root", "prefix", "grub_cpu", "grub_platform", "config_file", "config_directory", "chosen", "?")


class Origin(NamedTuple):
    """Where a value comes from: a place in a script, or a variable of an environment block."""

    where: str  # `/boot/grub/custom.cfg:3`, or the block's path
    variable: str = ""  # in the block


class Entry(NamedTuple):
    """A menuentry, or a submenu, whose block makes entries of its own."""

    title: str
    id: str
    submenu: bool
    args: tuple[str, ...]
    body: Nodes
    file: str
    at: str  # where it is defined
    doubt: str = ""  # why it may be missing from the menu


class Loaded(NamedTuple):
    """What a loader's command has loaded: the words behind it, or why they are not known."""

    command: str
    words: tuple[str, ...]
    doubt: str = ""


@dataclass
class State:
    """The variables, functions and entries; each name of a variable is in `values`, in `doubts`, or not set."""

    values: dict[str, str]
    doubts: dict[str, str] = field(default_factory=dict)  # why a value is not known
    origins: dict[str, Origin] = field(default_factory=dict)
    exported: dict[str, str] = field(default_factory=dict)  # what a new context keeps; a text: why that is not certain
    functions: dict[str, Nodes] = field(default_factory=dict)
    entries: tuple[Entry, ...] = ()
    loaded: Loaded | None = None

    def copy(self) -> State:
        """The same state, to go another way with."""
        return replace(
            self,
            values=dict(self.values),
            doubts=dict(self.doubts),
            origins=dict(self.origins),
            exported=dict(self.exported),
            functions=dict(self.functions),
        )

    def inner(self) -> State:
        """The context of a submenu or of `configfile`: an empty menu, and only what is exported."""
        new = self.copy()
        new.entries = ()
        for name in {*new.values, *new.doubts} - {*_ALWAYS_EXPORTED} - new.exported.keys():
            if not name.startswith("feature_"):
                new.unset(name)
        for name, why in new.exported.items():
            if why and name in new.values:
                new.doubt(name, why)
        return new

    def set(self, name: str, value: str, origin: Origin) -> None:
        """A variable with a known value."""
        self.doubts.pop(name, None)
        self.values[name] = value
        self.origins[name] = origin

    def doubt(self, name: str, why: str) -> None:
        """A variable whose value is not known."""
        self.values.pop(name, None)
        self.doubts[name] = why

    def unset(self, name: str) -> None:
        """A variable that is no longer there."""
        self.values.pop(name, None)
        self.doubts.pop(name, None)


def join(one: State, other: State, why: str) -> State | None:
    """What is certain where either state may be the real one; None where they differ in what cannot be in doubt."""
    if one.functions != other.functions:
        return None
    doubts = {**other.doubts, **one.doubts}
    names = one.values.keys() | other.values.keys()
    doubts |= {name: why for name in names - doubts.keys() if one.values.get(name) != other.values.get(name)}
    values = {name: value for name, value in one.values.items() if name not in doubts}
    loaded = one.loaded if one.loaded == other.loaded else Loaded("", (), why)
    entries = _joined(one.entries, other.entries, why)
    exported = dict.fromkeys(one.exported.keys() ^ other.exported.keys(), why) | {
        name: one.exported[name] or other.exported[name] for name in one.exported.keys() & other.exported.keys()
    }
    return State(values, doubts, {**other.origins, **one.origins}, exported, one.functions, entries, loaded)


def _joined(one: tuple[Entry, ...], other: tuple[Entry, ...], why: str) -> tuple[Entry, ...]:
    """The entries that both have in front; then those that only one of them has, each in doubt."""
    same = next((n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    if same is None:
        same = min(len(one), len(other))
    rest = (*one[same:], *other[same:])
    return (*one[:same], *(entry._replace(doubt=entry.doubt or why) for entry in rest))
