"""Which of the values asked for here another tuner writes, too, and another value than ours. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from tunectl.errors import UsageError
from tunectl.host.managers import Manager
from tunectl.host.sysctld import Setting
from tunectl.knobs import KNOBS
from tunectl.knobs.codecs import satisfies
from tunectl.rivals.places import normal_path, places

# Several requests stand side by side, and the kernel goes by the strictest: nobody overwrites another's.
_SHARED = frozenset({"cpuidle.dma_latency_us"})


class Conflict(NamedTuple):
    """One knob that two write. `value` is the other's text, "" where that shows only when it writes."""

    knob: str
    value: str
    place: str  # file:line, "" where none says so
    key: str = ""  # its name there

    def __str__(self) -> str:
        said = f"{self.key or self.knob}{' = ' if self.value else ''}{self.value}"
        return f"{said} ({self.place})" if self.place else said


def is_at_work(manager: Manager) -> bool:
    """Does it write on this host: does it run, or did it at boot? TuneD without a profile runs and writes nothing."""
    if manager.name == "tuned" and not manager.profile:
        return False
    return manager.active or (manager.enabled and manager.once)


def conflicts(manager: Manager, settings: Mapping[str, Any]) -> list[Conflict]:
    """The knobs of `settings` ({knob: value}) that it sets otherwise. One that agrees is no matter."""
    if not is_at_work(manager):
        return []
    settings = {knob: value for knob, value in settings.items() if knob not in _SHARED}
    if manager.settings or not manager.overwrites:
        against = [one for one in manager.settings if one.wins and one.knob in settings and _differs(one, settings)]
        return [Conflict(one.knob, one.value, _place(one), one.key if one.line else "") for one in against]
    matching = (knob for knob in settings if any(fnmatchcase(knob, pattern) for pattern in manager.overwrites))
    return [Conflict(knob, "", "") for knob in sorted(matching)]


def _place(setting: Setting) -> str:
    return f"{setting.path}:{setting.line}" if setting.line else ""


def _differs(setting: Setting, settings: Mapping[str, Any]) -> bool:
    knob, desired = KNOBS[setting.knob], settings[setting.knob]
    if setting.value == desired:  # a word that stands for a value of the machine, such as hardware-max
        return False
    codec = places().codecs.get(normal_path(setting.key), knob.codec)
    try:
        return not satisfies(knob.match, codec.decode(setting.value), desired)
    except (ValueError, TypeError, UsageError):
        return True  # not known, or a text that the kernel refuses: the operator should know


def told(managers: Iterable[Manager], settings: Mapping[str, Any]) -> list[str]:
    """One sentence for each manager that is against us: what it writes, when, and what `apply` does about it."""
    said = []
    for manager in managers:
        against = conflicts(manager, settings)
        if manager.name == "irqbalance" and "irqbalance.banned_cpus" in settings:
            continue  # its ban list is in the plan itself
        if against:
            name = f"{manager.name} (profile {manager.profile})" if manager.profile else manager.name
            said.append(f"{name} writes {', '.join(map(str, against))}, {manager.when}: {manager.answer}")
    return said
