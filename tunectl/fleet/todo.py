"""What to do on which hosts: the `actions` of their documents, each once, in the order of a host's own list. Pure.

A command is made here, of the kind that a document names (tunectl/kinds.py). What else a host asks for stays its own
words: under the hosts that said exactly this, and nobody else.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tunectl import kinds
from tunectl.fleet.causes import shape, without_numbers
from tunectl.shapes import Action, Count

_OWN_WORDS = 5  # their stage: after everything that this tunectl says


class Doing(NamedTuple):
    """One action of one host. `stage` says where it stands between the others: before apply, apply, ..."""

    stage: int
    command: str  # "" where there is something to decide
    decide: str
    own_words: str  # what of it this tunectl makes nothing of
    targets: int
    reboot: bool

    @property
    def alike(self) -> tuple[int, str, str, str]:
        """What it has in common with the same action on another host."""
        return self.stage, shape(self.command), without_numbers(self.decide), self.own_words


def doings(actions: Sequence[Action]) -> tuple[Doing, ...]:
    """A document's actions, each with its place."""
    read = [_read(msgspec.json.encode(action)) for action in actions]
    named = [str(one.get("kind") or "") for one in read]
    last = {name: place for place, name in enumerate(named)}
    return tuple(
        Doing(
            _OWN_WORDS if "own_words" in one else _stage(named[place], place, last),
            one.get("command", ""),
            one.get("decide", ""),
            one.get("own_words", ""),
            len(one["mends"]),
            one["reboot"],
        )
        for place, one in enumerate(read)
    )


# Host after host asks for the same.
@lru_cache(1024)
def _read(action: bytes) -> dict[str, Any]:
    return next(kinds.read([msgspec.json.decode(action)]))


def _stage(own: str, place: int, last: Mapping[str, int]) -> int:
    """`last` is the place of the last action of each kind; words for the boot are no command."""
    if own in ("apply", "reboot"):
        return 1 if own == "apply" else 3
    if last.get("apply", -1) > place:
        return 0
    is_before_all = own != kinds.BOOT_WORDS and not {"apply", "reboot"} & last.keys()
    return 2 if last.get("reboot", -1) > place else 0 if is_before_all else 4


class DoRow(msgspec.Struct, frozen=True, kw_only=True):
    """What to do on some hosts: a command, one that differs in its numbers, something to decide, or their own words."""

    command: Annotated[
        str | UnsetType,
        Meta(description="The same on all of these hosts; made by this tunectl, of the kind that they name."),
    ] = UNSET
    alike: Annotated[
        str | UnsetType,
        Meta(description="A command that differs in its numbers, N in place of each; a host's own document has it."),
    ] = UNSET
    decide: Annotated[str | UnsetType, Meta(description="To be done by hand, in this tunectl's words.")] = UNSET
    own_words: Annotated[
        str | UnsetType,
        Meta(description="What these hosts ask for in exactly these words, which are not tunectl's: no instruction."),
    ] = UNSET
    hosts: Annotated[list[str], Meta(min_length=1)]
    targets: Annotated[Count, Meta(description="That it mends on all of these hosts.")]
    reboot: bool


def todo_rows(hosts: Iterable[tuple[str, Sequence[Doing]]]) -> list[DoRow]:
    """A row for each thing to do, in the order of doing; what concerns most hosts first."""
    found: dict[tuple[int, str, str, str], dict[str, list[Doing]]] = {}
    for name, each in hosts:
        for one in each:
            found.setdefault(one.alike, {}).setdefault(name, []).append(one)
    rows = []
    for _, of in sorted(found.items(), key=lambda one: (one[0][0], -len(one[1]))):
        every = [one for each in of.values() for one in each]
        first, same = every[0], len({(one.command, one.decide) for one in every}) == 1
        if first.own_words:
            what = {"own_words": first.own_words}
        elif first.command:
            what = {"command": first.command} if same else {"alike": shape(first.command)}
        else:
            what = {"decide": first.decide if same else without_numbers(first.decide)}
        targets, reboots = sum(one.targets for one in every), any(one.reboot for one in every)
        rows.append(DoRow(**what, hosts=list(of), targets=targets, reboot=reboots))
    return rows
