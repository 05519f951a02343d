"""What is written by files that no program of its own stands behind: sysctl.d, tmpfiles.d, GRUB's."""

import re
from fnmatch import fnmatchcase

from tunectl.bootloader.grubsettings import configured
from tunectl.host.sysctld import Setting, last_wins, read_sysctl_settings
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import directories_of, files_in_force
from tunectl.knobs import KNOBS
from tunectl.knobs.codecs import CPULIST
from tunectl.tuners.places import knob_at, places

_WRITE = re.compile(r"^w([+!=~^$-]*)\s+(\S+)\s+\S+\s+\S+\s+\S+\s+\S+\s+(.*)$")  # `w /sys/kernel/mm/ksm/run - - - - 0`


def read_sysctl_d(root: Sysroot) -> tuple[Setting, ...]:
    """sysctl.d(5), with the sysctls that stand behind rows of the table."""
    return tuple(read_sysctl_settings(root, places().sysctls))


def read_tmpfiles_d(root: Sysroot) -> tuple[Setting, ...]:
    """Lines of type `w`: systemd-tmpfiles writes them at boot (tmpfiles.d(5)), before any service starts.

    Of several lines for one path the first counts, in the order of the files' names; of several `w+`, all.
    """
    found: list[Setting] = []
    added: dict[str, bool] = {}  # by path: is it the first line's to be added to?
    for path in files_in_force(root, directories_of("tmpfiles.d")):
        for number, line in enumerate(root.get_text(path).split("\n"), 1):
            match = _WRITE.match(line.strip())
            if not match or not (knob := knob_at(match[2])):
                continue
            adds = "+" in match[1]
            is_first = match[2] not in added
            if is_first or (adds and added[match[2]]):
                added.setdefault(match[2], adds)
                found.append(Setting(knob, match[2], match[3].strip(), "/" + path, number, wins=True))
    return tuple(last_wins(found, _rewrites))


def read_sysfs_conf(root: Sysroot) -> tuple[Setting, ...]:
    """/etc/sysfs.conf and sysfs.d of sysfsutils: paths below /sys, written once at boot."""
    found = []
    for path in ("etc/sysfs.conf", *files_in_force(root, ("etc/sysfs.d",))):
        for number, line in enumerate(root.get_text(path).split("\n"), 1):
            key, equals, value = line.partition("#")[0].partition("=")
            if equals and (knob := knob_at(f"sys/{key.strip().lstrip('/')}")):
                found.append(Setting(knob, f"/sys/{key.strip()}", value.strip(), "/" + path, number, wins=True))
    return tuple(last_wins(found, _rewrites))


def _rewrites(later: Setting, earlier: Setting) -> bool:
    """Is what one line writes written again by a later one, by the same name or a pattern?"""
    return later.knob == earlier.knob and fnmatchcase(earlier.key, later.key)


def read_grub_d(root: Sysroot) -> tuple[Setting, ...]:
    """Boot arguments of ours in files of GRUB that are not ours; the cloud images' own among them.

    One of CPUs that names none sets nothing that another could differ from: verify judges what the kernel made of it.
    """
    if not root.exists("etc/default/grub.d"):
        return ()
    found = []
    for arg, where in configured(root, without_ours=True).placed:
        path, _, line = where.rpartition(":")
        knob = places().arguments.get(arg.key)
        if knob and (arg.value is not None or KNOBS[knob].codec is not CPULIST):
            number = int(line) if line.isdecimal() else 0
            found.append(Setting(knob, arg.key, arg.value or "", path if number else where, number, wins=True))
    return tuple(found)
