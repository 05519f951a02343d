"""udev's rules in udev's order, and which of them may keep a network card from having units started.

A rule is judged by the keys that are known of an event beforehand: what it is about, the action, the names of the cards
that are there. Of any other key nobody knows whether it will match. Source: udev(7); systemd.device(5).
"""

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from tunectl.host.inifiles import continued_lines
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import directories_of, files_in_force

DIRECTORIES = directories_of("udev/rules.d")
_KEY = re.compile(
    r"""[\s,]*+([^\s={]+?)(?=[\s={]|[-+!:]=)(?:\{([^}]*)\})?\s*(==|!=|\+=|-=|:=|=)\s*[ei]*"((?:\\"|[^"])*+)\""""
)
_OF_UNITS = re.compile(r"SYSTEMD_WANTS|SYSTEMD_READY|\bTAG\s*(?:-=|:?=(?!=))")  # no other file needs a closer look
_ACTIONS = ("add", "move")


class Key(NamedTuple):
    """One part of a rule, `ENV{SYSTEMD_WANTS}+="x.service"`."""

    name: str
    attribute: str
    operator: str
    value: str

    def __str__(self) -> str:
        place = f"{self.name}{{{self.attribute}}}" if self.attribute else self.name
        return f'{place}{self.operator}"{self.value}"'


class Rule(NamedTuple):
    """One rule, its file (without a leading slash), its first and last line."""

    file: str
    line: int
    last: int
    keys: tuple[Key, ...]

    def __str__(self) -> str:
        return f"/{self.file}:{self.line}"

    @property
    def assigns(self) -> tuple[Key, ...]:
        """What it does, without what it is about."""
        return tuple(key for key in self.keys if key.operator not in ("==", "!="))


def parse_rules(text: str, file: str) -> Iterator[Rule]:
    """The rules of one file; a backslash at the end of a line continues a rule. One that udev ignores is none."""
    for line in continued_lines(text, between="", comments="#", anywhere=True):
        keys, at = [], 0
        while match := _KEY.match(line.text, at):
            keys.append(Key(match[1], match[2] or "", match[3], match[4]))
            at = match.end()
        if keys and not line.text[at:].strip(" \t\r,"):  # where something else stands there, udev ignores the line
            yield Rule(file, line.first, line.last, tuple(keys))


def rules_against_units(root: Sysroot, ours: str) -> Iterator[tuple[Rule, Key]]:
    """Each rule that may undo the one in the file called `ours`, which has a unit started for each card, and by what.

    The event is that of a card that is plugged in or whose driver is loaded: SYSTEMD_WANTS is still to name the unit at
    the end, the tag `systemd` to be there, and SYSTEMD_READY not to be 0. Never raises.
    """
    names = [name for name in root.listdir("sys/class/net") if root.exists(f"sys/class/net/{name}/device")]
    for path in files_in_force(root, DIRECTORIES, ".rules"):
        name, label, text = path.rpartition("/")[2], "", root.get_text(path)
        rules = list(parse_rules(text, path)) if name != ours and _OF_UNITS.search(text) else []
        labels = [key.value for rule in rules for key in rule.keys if key.name == "LABEL"]
        for rule in rules:
            goals = {key.name: key.value for key in rule.keys}
            if goals.get("LABEL") in labels[:1]:
                label = "" if labels.pop(0) == label else label
            matches = [_matches(key, names) for key in rule.keys if key.operator in ("==", "!=")]
            if label or False in matches:
                continue
            label = goals.get("GOTO", "") if None not in matches and goals.get("GOTO") in labels else ""
            yield from ((rule, key) for key in rule.assigns if _takes_units(key, is_before=name < ours))


def _takes_units(key: Key, *, is_before: bool) -> bool:
    """`is_before`: what it says of units and tags is said anew by ours."""
    if (key.name, key.attribute) == ("ENV", "SYSTEMD_READY"):
        return key.value == "0" and key.operator != "+="
    if is_before or key.operator == "+=":
        return False
    if (key.name, key.attribute) == ("ENV", "SYSTEMD_WANTS"):  # other units in its place, or none
        return "$env{SYSTEMD_WANTS}" not in key.value
    return key.name == "TAG" and (key.value == "systemd") is (key.operator == "-=")


def _matches(key: Key, names: Sequence[str]) -> bool | None:
    """Does a condition hold for the event of a card? None where that cannot be known."""
    if key.name in ("SUBSYSTEM", "ACTION", "KERNEL", "NAME") or (key.name, key.attribute) == ("ENV", "INTERFACE"):
        values = {"SUBSYSTEM": ("net",), "ACTION": _ACTIONS}.get(key.name, names)
        # One card or action is enough to lose something by.
        return any(is_one_of(value, key.value) is (key.operator == "==") for value in values)
    if key.name == "TAG" and key.value == "systemd":
        return key.operator == "=="
    if key.name == "DEVPATH" and "/virtual/" in key.value:
        return key.operator == "!="
    return None


def is_one_of(value: str, pattern: str) -> bool:
    """Is a value meant by the patterns of a key, `eth*|en*`?"""
    return any(fnmatchcase(value, word) for word in pattern.split("|"))
