"""Swap: what the kernel swaps to now, and what has it do so at the next boot. /proc/swaps, fstab(5), systemd.swap(5).

Source: mm/swapfile.c (swaps_proc_ops); systemd-fstab-generator(8): `noauto` keeps a line from the boot.
"""

import re
from typing import NamedTuple

from tunectl.command import argv
from tunectl.fix import Fix, to_type
from tunectl.host.filesystem import unescaped
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import starting_links, unit_directories
from tunectl.host.systemdunit import mask_of

FSTAB = "etc/fstab"
SWAPS = "proc/swaps"
_UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]+\.swap")


class Starter(NamedTuple):
    """What swaps at each boot: the file, the line (0: a unit's file), and the command that ends that."""

    file: str  # without a leading slash
    line: int
    ends: Fix

    def __str__(self) -> str:
        return f"/{self.file}:{self.line}" if self.line else f"/{self.file}"


def read_swaps(root: Sysroot) -> list[str]:
    """The devices and files that are swapped to now. OSError where that cannot be read."""
    rows = [line.split() for line in root.read_text(SWAPS).split("\n")[1:]]
    return [unescaped(row[0]) for row in rows if row]


def read_starters(root: Sysroot) -> list[Starter]:
    """The lines of fstab and the units that have swap started at boot. Never raises."""
    found = []
    for number, line in enumerate(root.get_text(FSTAB).split("\n"), 1):
        fields = line.split()
        is_swap = fields[2:3] == ["swap"] and not fields[0].startswith("#")
        if is_swap and "noauto" not in "".join(fields[3:4]).split(","):
            found.append(Starter(FSTAB, number, to_type(argv("sudo", "sed", "-i", f"{number}s/^/#/", f"/{FSTAB}"))))
    links = (link for kind, link in starting_links(root) if "target" in kind and link.endswith(".swap"))
    for unit in sorted({link.rpartition("/")[2] for link in links}):
        place = next((path for path in unit_directories(unit) if root.exists(path)), "")
        # The generator's own units come from fstab.
        from_fstab = "fstab-generator" in root.get_text(place)
        if place and not from_fstab and not mask_of(root, unit) and _UNIT.fullmatch(unit):
            found.append(Starter(place, 0, to_type(argv("sudo", "systemctl", "mask", of=[unit]))))
    return found
