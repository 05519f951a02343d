"""What is written by files that no program of its own stands behind: sysctl.d, tmpfiles.d, udev's rules, GRUB's."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tunectl.bootloader.grubsettings import configured
from tunectl.host.sysctld import Setting, last_wins, read_sysctl_settings
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import files_in_force
from tunectl.tuners.places import knob_at, places

_TMPFILES = ("etc/tmpfiles.d", "run/tmpfiles.d", "usr/local/lib/tmpfiles.d", "usr/lib/tmpfiles.d", "lib/tmpfiles.d")
_RULES = ("etc/udev/rules.d", "run/udev/rules.d", "usr/local/lib/udev/rules.d", "usr/lib/udev/rules.d")
# `w /sys/kernel/mm/ksm/run - - - - 0`; w+ and w! are the same for us.
_WRITE = re.compile(r"^w[+!=~^$-]*\s+(\S+)\s+\S+\s+\S+\s+\S+\s+\S+\s+(.*)$")
_SET = re.compile(r"""\b(ATTR|SYSCTL)\{([^}]+)\}\s*=(?!=)\s*"([^"]*)\"""")
_RUN = re.compile(r"""\bRUN(?:\{program\})?\s*\+?=\s*"([^"]*)\"""")
_IN_PROGRAM = re.compile(r"(/(?:sys|proc)/[A-Za-z0-9_./*%{}$-]+)")
_SUBSYSTEM = re.compile(r"""\bSUBSYSTEM\s*==\s*"([^"]*)\"""")
# Where the attributes of a subsystem's devices are, as knobs know them.
_DEVICE = {"cpu": "/sys/devices/system/cpu/cpuN", "node": "/sys/devices/system/node/nodeN"}
_DEVICE |= {"workqueue": "/sys/devices/virtual/workqueue", "net": "/sys/class/net/NAME"}


def read_sysctl_d(root: Sysroot) -> tuple[Setting, ...]:
    """sysctl.d(5), with the sysctls that stand behind rows of the table."""
    return tuple(read_sysctl_settings(root, places().sysctls))


def read_tmpfiles_d(root: Sysroot) -> tuple[Setting, ...]:
    """Lines of type `w`: systemd-tmpfiles writes them at boot (tmpfiles.d(5)), before any service starts."""
    found = []
    for path in files_in_force(root, _TMPFILES):
        for number, line in enumerate(root.get_text(path).split("\n"), 1):
            match = _WRITE.match(line.strip())
            if match and (knob := knob_at(match[1])):
                found.append(Setting(knob, match[1], match[2].strip(), "/" + path, number, wins=True))
    return tuple(last_wins(found))


def read_sysfs_conf(root: Sysroot) -> tuple[Setting, ...]:
    """/etc/sysfs.conf and sysfs.d of sysfsutils: paths below /sys, written once at boot."""
    found = []
    for path in ("etc/sysfs.conf", *files_in_force(root, ("etc/sysfs.d",))):
        for number, line in enumerate(root.get_text(path).split("\n"), 1):
            key, equals, value = line.partition("#")[0].partition("=")
            if equals and (knob := knob_at(f"sys/{key.strip().lstrip('/')}")):
                found.append(Setting(knob, f"/sys/{key.strip()}", value.strip(), "/" + path, number, wins=True))
    return tuple(last_wins(found))


def read_udev_rules(root: Sysroot) -> tuple[Setting, ...]:
    """ATTR{} and SYSCTL{} assignments, and kernel paths in programs that a rule runs (udev(7))."""
    found = []
    for path in files_in_force(root, _RULES, ".rules"):
        # A backslash at the end continues a rule; its first line names it.
        text = re.sub(r"\\\n", "  ", root.get_text(path))
        for number, rule in enumerate(text.split("\n"), 1):
            if not rule.lstrip().startswith("#"):
                found += [Setting(*what, "/" + path, number, wins=True) for what in _of_rule(rule)]
    return tuple(last_wins(found))


def _of_rule(rule: str) -> Iterator[tuple[str, str, str]]:
    """(knob, key, value) of one rule."""
    subsystem = _SUBSYSTEM.search(rule)
    base = _DEVICE.get(subsystem[1], "") if subsystem else ""
    for kind, name, value in _SET.findall(rule):
        if kind == "SYSCTL" and (knob := places().sysctls.get(name.replace("/", "."))):
            yield knob, name, value
        elif kind == "ATTR" and base and (knob := knob_at(f"{base}/{name}")):
            yield knob, f"{base}/{name}", value
    for program in _RUN.findall(rule):
        for place in _IN_PROGRAM.findall(program):
            if knob := knob_at(re.sub(r"\$number|%n|\$kernel|%k", "N", place).replace("/N/", "/cpuN/")):
                yield knob, place, ""


def read_grub_d(root: Sysroot) -> tuple[Setting, ...]:
    """Boot arguments of ours in files of GRUB that are not ours; the cloud images' own among them."""
    if not root.exists("etc/default/grub.d"):
        return ()
    found = []
    for arg, where in configured(root, without_ours=True).placed:
        path, _, line = where.rpartition(":")
        if knob := places().arguments.get(arg.key):
            number = int(line) if line.isdecimal() else 0
            found.append(Setting(knob, arg.key, arg.value or "", path if number else where, number, wins=True))
    return tuple(found)
