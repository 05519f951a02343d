"""A tuner that was found on a host: the evidence, and what it writes. Pure data."""

from __future__ import annotations

from dataclasses import dataclass

from tunectl.command import as_data, as_place
from tunectl.fix import Fix
from tunectl.host.irqbalance import Ban
from tunectl.host.refusals import AS_ROOT
from tunectl.host.sysctld import Setting


@dataclass(frozen=True)
class FoundTuner:
    """One tuner on this host. `overwrites` are patterns of knobs, as fnmatch reads them."""

    name: str
    active: bool
    enabled: bool
    installed: bool
    overwrites: tuple[str, ...]
    evidence: tuple[str, ...]  # paths, with a leading slash
    detail: str = ""
    ban: Ban | None = None  # irqbalance: configured
    running_bans: tuple[Ban, ...] = ()  # irqbalance: of each daemon that runs
    profile: str = ""  # TuneD
    settings: tuple[Setting, ...] = ()  # what its configuration says it writes
    when: str = ""  # at what moments it writes
    answer: str = ""  # what `apply` does about that
    once: bool = False  # it writes at boot and ends: enabled is as good as running
    does: str = "sets"  # "will write", or "may write" where a condition may keep it from that
    program: bool = True  # False: files that the boot or udev reads
    unread: str = ""  # what was not read, and why, so that it is not known whether there is more
    unread_fix: Fix = AS_ROOT  # what makes that known

    @property
    def is_users_own(self) -> bool:
        """Is there nothing but jobs of users who are not root, and so cannot write what they name?"""
        return bool(self.settings) and not self.unread and all(setting.user for setting in self.settings)


def said_of(place: str, does: str, key: str, value: str) -> str:
    """`FILE:LINE sets KEY = VALUE`, without the value where only the writer knows it."""
    return f"{as_place(place)} {does} {key}" + (f" = {as_data(value)}" if value else "")
