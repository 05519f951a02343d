"""What drop-ins leave of the lists that say what a service of ours may do: one that only adds takes nothing away. Pure.

A line adds to its list, one with `~` takes from it, and an empty one begins anew: for some keys with everything, for
others with nothing.

Source: systemd.exec(5); systemd.resource-control(5), DeviceAllow=. `systemd-analyze security` shows what it comes to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tunectl.host.systemdunit import NO, YES, Said

_CAPABILITIES, _DEVICES, _FAMILIES = "CapabilityBoundingSet", "DeviceAllow", "RestrictAddressFamilies"
_NAMESPACES, _CALLS, _ARCHITECTURES = "RestrictNamespaces", "SystemCallFilter", "SystemCallArchitectures"
KEYS = frozenset({_CAPABILITIES, _DEVICES, _FAMILIES, _NAMESPACES, _CALLS, _ARCHITECTURES})
_NOTHING_FROM_EMPTY = (_CAPABILITIES, _DEVICES)
# Groups of system calls of which none is in @system-service or @mount: whoever takes one away takes nothing from us.
OTHER_CALLS = frozenset({"@clock", "@cpu-emulation", "@debug", "@module", "@obsolete", "@raw-io", "@reboot", "@swap"})


class _List(NamedTuple):
    """What may be done: what is named, or everything (None), but for what was taken away again."""

    allowed: frozenset[str] | None = None
    denied: frozenset[str] = frozenset()


def taken_away(said: Sequence[Said], unit: str) -> list[Said]:
    """The lines of other files than `unit` that take from its lists what it has there. Without them they are whole."""
    return [one for key in sorted(KEYS) for one in _of_key(key, said, unit)]


def _of_key(key: str, said: Sequence[Said], unit: str) -> list[Said]:
    lines = [one for one in said if (one.section, one.key) == ("Service", key)]
    own, others = [one for one in lines if one.file == unit], [one for one in lines if one.file != unit]
    needed = _played(own)
    if _leaves(key, _played([*own, *others]), needed):
        return []
    return [one for one in others if not _leaves(key, _then(needed, one), needed)] or others


def _leaves(key: str, found: _List, needed: _List) -> bool:
    """Is all of what is needed still allowed? A system call that is taken away may be in a group that is needed."""
    if needed.allowed is None:
        return found == needed
    denied = found.denied if key == _CALLS else found.denied & needed.allowed
    return not denied and (found.allowed is None or needed.allowed <= found.allowed)


def _played(lines: Iterable[Said]) -> _List:
    """What the lines come to, one after the other."""
    found = _List()
    for one in lines:
        found = _then(found, one)
    return found


def _then(before: _List, one: Said) -> _List:
    """The list with one line more."""
    key, value = one.key, one.value
    anew = _anew(key, value)
    if anew is not None:
        return anew
    takes, words = value.startswith("~") and key != _DEVICES, _words(key, value)
    allowed, denied = before
    if takes:
        away = words - OTHER_CALLS if allowed is None or key == _CALLS else frozenset()
        return _List(None if allowed is None else allowed - words, denied | away)
    if allowed is None and not denied:
        return _List(words)
    return _List(None if allowed is None else allowed | words, denied - words)


def _anew(key: str, value: str) -> _List | None:
    """The list that a value begins, whatever was said before; None for one that goes on with what there is."""
    word = value.lower()
    if not value:
        return _List(frozenset() if key in _NOTHING_FROM_EMPTY else None)
    if (key, word) == (_FAMILIES, "none") or (key == _NAMESPACES and word in YES):
        return _List(frozenset())
    if (key, word) == (_CAPABILITIES, "~") or (key == _NAMESPACES and word in NO):
        return _List()
    return None


def _words(key: str, value: str) -> frozenset[str]:
    if key == _DEVICES:  # a device and what may be done with it
        return frozenset({value})
    words = value.removeprefix("~").split()
    if key == _CALLS:  # a call may name the error that it answers with
        words = [word.partition(":")[0] for word in words]
    return frozenset(word.upper() if key == _CAPABILITIES else word for word in words)
