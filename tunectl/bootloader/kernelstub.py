"""kernelstub (Pop!_OS): its configuration, from which it writes systemd-boot entries with every kernel.

Both are edited: the entries, so that the next boot has the arguments, and the configuration, so that the next kernel
has. kernelstub puts root= and the like in front by itself.
Source: kernelstub's README and configuration file (user.kernel_options); systemd-boot(7).
"""

from __future__ import annotations

from tunectl.bootloader.edits import files_family, read
from tunectl.bootloader.entries import in_order, read_entries
from tunectl.bootloader.family import Family, Holder, Look, Point, Upcoming
from tunectl.bootloader.forms import KERNELSTUB
from tunectl.bootloader.systemdboot import default_entry
from tunectl.host.sysroot import Sysroot

CONFIGURATION = "etc/kernelstub/configuration"


def look(root: Sysroot) -> Look:
    """The configuration, the entries made from it, and the one that is booted next."""
    try:
        entries = read_entries(root)
        text = read(root, CONFIGURATION) or ""
    except OSError as error:
        return Look((), Upcoming((), f"cannot read {error.filename}: {error.strerror}"))
    default = default_entry(root, in_order(entries))
    if default is None:
        return Look((), Upcoming((), "there is no boot entry in loader/entries"))
    lines = KERNELSTUB.lines(text)
    source = Point(f"/{CONFIGURATION}", None if isinstance(lines, str) else lines[0])
    problem = f"/{default.path} is a recovery entry, and the default" if default.rescue else ""
    if isinstance(lines, str):
        problem = f"/{CONFIGURATION}: {lines}"
    holders = (Holder(CONFIGURATION, KERNELSTUB), *(entry.holder for entry in entries if not entry.rescue))
    return Look(holders, Upcoming((Point(f"/{default.path}", default.line), source), problem))


FAMILY: Family = files_family(look)
