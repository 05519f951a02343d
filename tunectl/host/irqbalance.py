"""What irqbalance is told to leave alone: configured, and as the running daemon was started.

Source: irqbalance(1) and cputree.c: with IRQBALANCE_BANNED_CPULIST unset it bans the CPUs of isolcpus
and nohz_full by itself; set but EMPTY it bans nothing; IRQBALANCE_BANNED_CPUS is the older, hex form.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tunectl.cpulist import CpuSet, format_cpulist, parse_cpulist, parse_cpumask
from tunectl.errors import UsageError
from tunectl.host.inifiles import parse_ini
from tunectl.host.shellvars import assignments
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import files_in_force

# Debian; RHEL and SUSE; upstream's own unit. A unit reads one of them, or both of the last.
_FILES = ("etc/default/irqbalance", "etc/sysconfig/irqbalance", "usr/lib/irqbalance/defaults.env", "etc/irqbalance.env")
_DROP_INS = "etc/systemd/system/irqbalance.service.d"
PATTERNS = (*_FILES, f"{_DROP_INS}/*.conf")  # every file in which a ban may be configured, as shell patterns
_LIST, _MASK = "IRQBALANCE_BANNED_CPULIST", "IRQBALANCE_BANNED_CPUS"


class Ban(NamedTuple):
    """`cpus` is what is banned, None where irqbalance decides itself; `source` is file:line, or the process."""

    cpus: CpuSet | None
    source: str
    problem: str = ""  # a value irqbalance cannot read
    stray_pid: int = 0  # the process, where its service does not run it

    def describe(self) -> str:
        """One phrase for people."""
        if self.problem:
            return f"ban list not readable: {self.problem} ({self.source})"
        if self.cpus is None:
            return "bans the CPUs the kernel isolates"
        return f"bans {format_cpulist(self.cpus) if self.cpus else 'nothing'} ({self.source})"


def read_configured_ban(root: Sysroot) -> Ban:
    """The ban list the next start of irqbalance will have. Never raises."""
    values: dict[str, tuple[str, str]] = {}
    # EnvironmentFile= beats Environment= wherever they stand (systemd.exec(5)).
    for path in files_in_force(root, (_DROP_INS,)):
        for name, value, line in parse_unit(root.get_text(path)):
            values[name] = (value, f"/{path}:{line}")
    for path in _FILES:
        for name, value, line in parse_environment(root.get_text(path)):
            values[name] = (value, f"/{path}:{line}")
    return _ban(values)


def parse_unit(text: str) -> Iterator[tuple[str, str, int]]:
    """(variable, value, line) of each ban that a unit's Environment= sets, in order."""
    for option in parse_ini(text):
        if (option.section, option.key) == ("Service", "Environment"):
            for word in _words(option.value):
                name, _, value = word.partition("=")
                if name in (_LIST, _MASK):
                    yield name, value, option.line


def _words(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError:  # a quote without its partner: systemd takes no variable from it either
        return []


def parse_environment(text: str) -> Iterator[tuple[str, str, int]]:
    """(variable, value, line) of each ban in an EnvironmentFile=, in order.

    Of an unquoted value systemd takes the whole line: a comment behind a list makes it one that irqbalance cannot read.
    """
    for one in assignments(text):
        if one.name in (_LIST, _MASK):
            yield one.name, text[one.start : one.end].strip().strip("\"'"), one.line


def read_running_ban(root: Sysroot, pid: int) -> Ban | None:
    """The ban list of a running daemon.

    Only root may read its environment. For others the result is None where its service started it, because then the
    configured list holds; where somebody else started it, nobody knows with which list, and that is a problem.
    """
    group = root.get_text(f"proc/{pid}/cgroup")
    stray = bool(group) and "irqbalance" not in group
    environ = root.get_text(f"proc/{pid}/environ")
    if not environ:
        why = "its service did not start it, and only root may see with what list"
        return Ban(None, f"process {pid}", why, pid) if stray else None
    values = {}
    for item in environ.split("\0"):
        name, _, value = item.partition("=")
        if name in (_LIST, _MASK):
            values[name] = (value, f"process {pid}")
    return _ban(values)._replace(stray_pid=pid if stray else 0)


def _ban(values: Mapping[str, tuple[str, str]]) -> Ban:
    """Versions differ in which variable wins where both say something: only what both ban is sure to be banned."""
    said = [
        (parse, *values[name])
        for name, parse in ((_LIST, parse_cpulist), (_MASK, parse_cpumask))
        if name in values and (values[name][0] or name == _LIST)  # an empty mask counts as none
    ]
    try:
        sets = [parse(value) if value else frozenset[int]() for parse, value, _ in said]
    except UsageError as error:
        return Ban(None, said[0][2], str(error))
    if not sets:
        return Ban(None, "")
    return Ban(frozenset.intersection(*sets), ", ".join(source for _, _, source in said))
