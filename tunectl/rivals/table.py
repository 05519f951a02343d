"""The rivals: who they are, how each says what it writes, when it writes, and what `apply` does about it.

A new one is a row here (and, where it is a program, its units in host/managers.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from tunectl.host.managers import Manager, read_managers
from tunectl.host.sysctld import Setting
from tunectl.host.sysroot import Sysroot
from tunectl.rivals import directories, keyfiles
from tunectl.rivals.tuned import read_tuned

_AT_BOOT = "apply writes its own value; so does tunectl-apply.service after each boot, where apply_at_boot is enabled"
_COMES_BACK = "apply writes its own value and stops nobody's service: it stands until then, and verify names it"


class Rival(NamedTuple):
    """How one of them is asked. `settings` gives None where it cannot be known what it writes."""

    settings: Callable[[Sysroot], tuple[Setting, ...] | None] | None  # None: the patterns of host/managers.py
    when: str
    answer: str
    once: bool = False  # it writes once, at boot, and is gone: enabled is as good as running


PROGRAMS = {
    "tuned": Rival(
        read_tuned,
        "when it starts and when a profile is chosen; when it stops, the values of before come back",
        "apply writes its own value, and tunectl-apply.service runs after it at each boot; a profile that is chosen "
        "later writes over it. `tunectl propose --from-tuned` takes its set-up over, `tuned-adm off` ends it",
    ),
    "irqbalance": Rival(None, "about every ten seconds", "apply writes its ban list and restarts it"),
    "power-profiles-daemon": Rival(None, "when it starts and when a power profile is chosen", _COMES_BACK),
    "thermald": Rival(None, "when a temperature nears its limit", _COMES_BACK),
    "tlp": Rival(keyfiles.read_tlp, "at the end of the boot and when power is plugged in", _COMES_BACK, once=True),
    "auto-cpufreq": Rival(keyfiles.read_auto_cpufreq, "every few seconds, by load", _COMES_BACK),
    "system76-power": Rival(None, "when it starts and when a profile is chosen", _COMES_BACK),
    "cpupower": Rival(keyfiles.read_cpupower, "once, at boot", _AT_BOOT, once=True),
    "cpufrequtils": Rival(keyfiles.read_cpufrequtils, "once, at boot", _AT_BOOT, once=True),
    "ksmtuned": Rival(keyfiles.read_ksm, "as memory fills and empties", _COMES_BACK),
}
FILES = {
    "sysctl.d": Rival(directories.read_sysctl_d, "at boot, and when a package calls sysctl --system", _AT_BOOT),
    "tmpfiles.d": Rival(directories.read_tmpfiles_d, "at boot", _AT_BOOT),
    "sysfs.conf": Rival(directories.read_sysfs_conf, "at boot", _AT_BOOT),
    "udev rules": Rival(directories.read_udev_rules, "when the device appears or changes", _COMES_BACK),
    "GRUB": Rival(
        directories.read_grub_d,
        "when GRUB's menu is written",
        "apply's own file is read after every other, so it wins where the kernel takes the last of several; where "
        "it takes the first (isolcpus, nohz_full) the other setting has to go, and apply says so",
    ),
}


def read_rivals(root: Sysroot) -> list[Manager]:
    """The managers found on this host with what each writes, then the files that tune by themselves. Never raises."""
    return [*read_programs(root), *_files(root)]


def read_programs(root: Sysroot) -> list[Manager]:
    """Of read_rivals, those that are programs: they start and stop while the host runs. Never raises."""
    return [_told(root, manager, PROGRAMS[manager.name]) for manager in read_managers(root)]


def _told(root: Sysroot, manager: Manager, rival: Rival) -> Manager:
    known = replace(manager, when=rival.when, answer=rival.answer, once=rival.once)
    settings = rival.settings(root) if rival.settings else None
    if settings is None:
        return known
    return replace(known, settings=settings, overwrites=_written(settings))


def _files(root: Sysroot) -> Iterator[Manager]:
    for name, rival in FILES.items():
        settings = rival.settings(root) if rival.settings else ()
        if not settings:
            continue
        lines = [f"{_place(one)} sets {one.key} = {one.value}".removesuffix(" = ") for one in settings if one.wins]
        yield Manager(
            name,
            active=True,
            enabled=True,
            installed=True,
            overwrites=_written(settings),
            evidence=tuple(dict.fromkeys(setting.path for setting in settings)),
            detail="; ".join(lines),
            settings=settings,
            when=rival.when,
            answer=rival.answer,
            program=False,
        )


def _written(settings: tuple[Setting, ...]) -> tuple[str, ...]:
    return tuple(sorted({setting.knob for setting in settings if setting.wins}))


def _place(setting: Setting) -> str:
    return f"{setting.path}:{setting.line}" if setting.line else setting.path
