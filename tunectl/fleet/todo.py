"""What to do on which hosts: the `actions` of their documents, each once, in the order of a host's own list. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tunectl.fix import APPLY, REBOOT
from tunectl.fleet.causes import shape, without_numbers
from tunectl.shapes import Action


class Doing(NamedTuple):
    """One action of one host. `stage` says where it stands between the others: before apply, apply, ..."""

    stage: int
    command: str  # "" where there is something to decide
    decide: str
    targets: int
    reboot: bool

    @property
    def alike(self) -> tuple[int, str, str]:
        """What it has in common with the same action on another host."""
        return self.stage, shape(self.command), without_numbers(self.decide)


def doings(actions: Sequence[Action]) -> tuple[Doing, ...]:
    """A document's actions, each with its place."""
    commands = [one.command for one in actions]
    return tuple(
        Doing(_stage(commands, place), one.command, one.decide, len(one.mends), one.reboot)
        for place, one in enumerate(actions)
    )


def _stage(commands: Sequence[str], place: int) -> int:
    own, later = commands[place], commands[place + 1 :]
    if own == APPLY or own == REBOOT.tasks[0].text:
        return 1 if own == APPLY else 3
    if APPLY in later:
        return 0
    is_before_all = bool(own) and REBOOT.tasks[0].text not in commands and APPLY not in commands
    return 2 if REBOOT.tasks[0].text in later else 0 if is_before_all else 4


def todo_body(hosts: Iterable[tuple[str, Sequence[Doing]]]) -> list[dict[str, Any]]:
    """[{command | alike | decide, hosts, targets, reboot}]: `alike` is a command that differs in its numbers."""
    found: dict[tuple[int, str, str], dict[str, list[Doing]]] = {}
    for name, each in hosts:
        for one in each:
            found.setdefault(one.alike, {}).setdefault(name, []).append(one)
    ordered = sorted(found.items(), key=lambda one: (one[0][0], -len(one[1])))
    return [_body(of) for _, of in ordered]


def _body(of: Mapping[str, Sequence[Doing]]) -> dict[str, Any]:
    every = [one for each in of.values() for one in each]
    first, same = every[0], len({(one.command, one.decide) for one in every}) == 1
    if first.command:
        what = {"command": first.command} if same else {"alike": shape(first.command)}
    else:
        what = {"decide": first.decide if same else without_numbers(first.decide)}
    return {
        **what,
        "hosts": list(of),
        "targets": sum(one.targets for one in every),
        "reboot": any(one.reboot for one in every),
    }
