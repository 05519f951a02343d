"""Which of our sysctls a site's sysctl.d files set at boot, and with which line. sysctl.d(5)."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from typing import NamedTuple

from tunectl.host.sysroot import Sysroot

# Of two files with the same name the one in the earlier directory counts, the other is not read.
_DIRECTORIES = ("etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d", "lib/sysctl.d")

KNOB_OF = {
    "kernel.nmi_watchdog": "kernel.nmi_watchdog",
    "kernel.watchdog": "kernel.nmi_watchdog",  # one switch for both detectors (kernel/watchdog.c)
    "kernel.watchdog_cpumask": "kernel.watchdog_cpumask",
    "kernel.timer_migration": "kernel.timer_migration",
    "kernel.sched_rt_runtime_us": "kernel.sched_rt_runtime_us",
    "kernel.numa_balancing": "mm.numa_balancing",
    "vm.swappiness": "mm.swappiness",
    "vm.stat_interval": "kernel.stat_interval",
}


class Assignment(NamedTuple):
    """One line of one file. A key with wildcards gives way to a key without."""

    key: str
    value: str
    line: int


class Setting(NamedTuple):
    """A sysctl of ours that a file sets; `wins` where it is the one in force after boot."""

    knob: str
    key: str
    value: str
    path: str  # with a leading slash
    line: int
    wins: bool


def parse_sysctl_d(text: str) -> list[Assignment]:
    """The assignments of one file, keys written with dots. `-key = value` ignores errors; `-key` alone sets nothing."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip()
        key, equals, value = bare.partition("=")
        if equals and not bare.startswith(("#", ";")):
            found.append(Assignment(normal_key(key.strip().removeprefix("-").strip()), value.strip(), number))
    return found


def normal_key(key: str) -> str:
    """`net/ipv4/conf/eth0.1/x` and `net.ipv4.conf.eth0/1.x` are one key: the first separator says which is which."""
    dot, slash = key.find("."), key.find("/")
    if slash >= 0 and (dot < 0 or slash < dot):
        return key.translate(str.maketrans("./", "/."))
    return key


def read_sysctl_settings(root: Sysroot) -> list[Setting]:
    """Every line that sets a sysctl of ours, in the order the files are applied. Never raises."""
    assignments = [(path, line) for path in _files(root) for line in parse_sysctl_d(root.get_text(path))]
    found = []
    for path, line in assignments:
        for key, knob in KNOB_OF.items():
            if fnmatch.fnmatchcase(key, line.key):
                found.append(Setting(knob, key, line.value, "/" + path, line.line, wins=False))
    winners = _winners(found, {("/" + path, line.line) for path, line in assignments if line.key not in KNOB_OF})
    return [setting._replace(wins=setting in winners) for setting in found]


def _files(root: Sysroot) -> list[str]:
    """The files in force, sorted by name. /etc/sysctl.conf counts only through a link to it (99-sysctl.conf)."""
    by_name: dict[str, str] = {}
    for directory in _DIRECTORIES:
        for name in root.listdir(directory):
            if name.endswith(".conf"):
                by_name.setdefault(name, f"{directory}/{name}")
    return [by_name[name] for name in sorted(by_name)]


def _winners(settings: Iterable[Setting], wildcards: set[tuple[str, int]]) -> set[Setting]:
    """The last line for each key; a key spelled out beats one that only a pattern names, wherever it stands."""
    last: dict[str, Setting] = {}
    for setting in settings:
        standing = last.get(setting.key)
        is_pattern = (setting.path, setting.line) in wildcards
        if standing and is_pattern and (standing.path, standing.line) not in wildcards:
            continue
        last[setting.key] = setting
    return set(last.values())
