"""The file system that a file is on, and what the kernel has put between it and the disks.

A boot loader sees disks where the kernel sees LVM, RAID and encryption, and writes to few file systems.
Source: proc_pid_mountinfo(5); Documentation/ABI/testing/sysfs-block-dm (dm/uuid, whose beginning names who made the
device: LVM-, CRYPT-, DMRAID-, mpath-); Documentation/admin-guide/md.rst (the directory md of an array).
"""

import re
from typing import NamedTuple

from tunectl.host.sysroot import Sysroot

_MOUNTS = "proc/self/mountinfo"
_PATHS_TO_ONE_DISK = "mpath-"
_PART = re.compile(r"part[0-9]+-")


class Place(NamedTuple):
    """Where a file lies."""

    kind: str  # the file system's: ext4, vfat
    read_only: bool
    layers: tuple[str, ...] = ()  # between it and the disks, as one says it: "LVM", "encryption", "software RAID"


def read_place(root: Sysroot, path: str) -> Place | None:
    """The file system of a path, links followed; None where the mounts are not known (a recording)."""
    file = "/" + root.real(path)
    place, longest, device = None, 0, ""
    for line in root.get_text(_MOUNTS).splitlines():
        mine, _, theirs = line.partition(" - ")
        words, rest = mine.split(), theirs.split()
        if len(words) < 6 or len(rest) < 3:
            continue
        point = unescaped(words[4])
        inside = point == "/" or f"{file}/".startswith(f"{point}/")
        if inside and len(point) >= longest:  # a later mount hides an earlier one
            longest, device = len(point), words[2]
            place = Place(rest[0], "ro" in f"{words[5]},{rest[2]}".split(","))
    return place._replace(layers=_layers(root, device)) if place else None


def mount_of(root: Sysroot, fd: int) -> str:
    """The mount point that an open file of ours lies below; "" where it is not known.

    By the mount's number, which stays the open file's own: what is mounted or unmounted there since does not count.
    """
    found = re.search(r"^mnt_id:\s*(\d+)$", root.get_text(f"proc/self/fdinfo/{fd}"), re.MULTILINE)
    mounts = (line.split() for line in root.get_text(_MOUNTS).splitlines())
    return next((unescaped(words[4]) for words in mounts if found and words[0] == found[1]), "")


def unescaped(word: str) -> str:
    """A word of a table of mounts or swaps: a blank, a newline and a backslash stand there as their octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), word)


def _layers(root: Sysroot, device: str) -> tuple[str, ...]:
    """What makes a block device of others. A partition of an array is below the array's own directory."""
    block = root.real(f"sys/dev/block/{device}")
    places = (block, block.rpartition("/")[0])
    layers = ["software RAID"] if any(root.exists(f"{place}/md") for place in places) else []
    mapped = next((uuid for place in places if (uuid := root.get(f"{place}/dm/uuid"))), "")
    by = _PART.sub("", mapped, count=1)
    if root.exists(f"{block}/dm") and not by.startswith(_PATHS_TO_ONE_DISK):
        names = {"LVM-": "LVM", "CRYPT-": "encryption", "DMRAID-": "firmware RAID"}
        layers.append(next((name for begin, name in names.items() if by.startswith(begin)), "the device mapper"))
    return tuple(layers)
