"""What irqbalance is told to leave alone: configured, and as the running daemon was started.

Source: irqbalance(1) and cputree.c: with IRQBALANCE_BANNED_CPULIST unset it bans the CPUs of isolcpus
and nohz_full by itself; set but EMPTY it bans nothing in older versions, and is as unset in newer ones (what a daemon
that was started with an empty list says at its socket decides); IRQBALANCE_BANNED_CPUS is the older, hex form.

What a running irqbalance bans now, by its own word: irqbalance-ui changes its list while it runs.

It listens at a socket that is named after its process, and answers root alone. Source: irqbalance.c (init_socket,
sock_handle) of 1.9: "setup" is answered with "SLEEP 10 BANNED 0000000c".
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from tunectl import kinds
from tunectl.command import all_of
from tunectl.cpulist import CpuSet, format_cpulist, parse_cpulist, parse_cpumask
from tunectl.errors import UsageError
from tunectl.fix import NOTHING, Fix, to_type
from tunectl.host.cpusets import ISOLATED, NOHZ_FULL, read_cpu_list
from tunectl.host.procs import is_daemon, read_comms, service_of
from tunectl.host.shellvars import assignments
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import patterns_of
from tunectl.host.systemdunit import Said, in_force, read_unit, taking_out, words_of

# Debian; RHEL and SUSE; upstream's own unit. A unit reads one of them, or both of the last.
_FILES = ("etc/default/irqbalance", "etc/sysconfig/irqbalance", "usr/lib/irqbalance/defaults.env", "etc/irqbalance.env")
UNIT = "irqbalance.service"
PATTERNS = (*_FILES, *patterns_of(UNIT))  # every file in which a ban may be configured, as shell patterns
_LIST, _MASK = "IRQBALANCE_BANNED_CPULIST", "IRQBALANCE_BANNED_CPUS"


class Ban(NamedTuple):
    """`cpus` is what is banned, None where irqbalance decides itself; `source` is file:line, or the process."""

    cpus: CpuSet | None
    source: str
    problem: str = ""  # a value irqbalance cannot read
    stray_pid: int = 0  # the process, where its service does not run it
    dropped: str = ""  # the line of its unit that keeps a configured list from it
    ends: Fix = NOTHING  # what ends that
    unread: str = ""  # what this user was denied: what is banned is not known
    unasked: str = ""  # why nobody knows whether the list was changed since the daemon started

    def describe(self) -> str:
        """One phrase for people."""
        if self.unread:
            return f"what it bans is not known: {self.unread}" + (f" ({self.source})" if self.source else "")
        if self.problem:
            return f"ban list not readable: {self.problem} ({self.source})"
        if self.cpus is None:
            return "bans the CPUs the kernel isolates"
        return f"bans {format_cpulist(self.cpus) if self.cpus else 'nothing'} ({self.source})"


def read_configured_ban(root: Sysroot) -> Ban:
    """The ban list the next start of irqbalance will have; `unread` where a file of it was denied. Never raises."""
    with root.noting() as denied:
        ban = _configured(root)
    if denied:
        return Ban(None, "", unread=str(denied))
    return ban._replace(cpus=None, source="") if ban.cpus == frozenset() and _takes_empty_for_unset(root) else ban


def _takes_empty_for_unset(root: Sysroot) -> bool:
    """What the irqbalance of this host makes of an empty list; False where none that runs shows it, and to users."""
    automatic = read_cpu_list(root, ISOLATED) | read_cpu_list(root, NOHZ_FULL)
    comms = read_comms(root) if automatic else ()
    pids = [pid for pid, comm in comms if comm == "irqbalance" and is_daemon(root, pid, (UNIT,))]
    environs = {pid: root.get_text(f"proc/{pid}/environ") for pid in pids}
    return any(shows_empty_is_unset(text, ask(root, pid).cpus, automatic) for pid, text in environs.items())


def shows_empty_is_unset(environ: str, bans: CpuSet | None, automatic: CpuSet) -> bool:
    """Was it started with an empty list, and bans what one does that has none?"""
    values = [item.partition("=")[2] for item in environ.split("\0") if item.startswith((f"{_LIST}=", f"{_MASK}="))]
    return bool(values) and not any(values) and bans == automatic


def _configured(root: Sysroot) -> Ban:
    values: dict[str, tuple[str, str]] = {}
    said = read_unit(root, UNIT)
    # EnvironmentFile= beats Environment= wherever they stand (systemd.exec(5)).
    for one in in_force(said, "Service", "Environment"):
        for name, value in _variables(one.value):
            values[name] = (value, str(one))
    for path in _FILES:
        for name, value, line in parse_environment(root.get_text(path)):
            values[name] = (value, f"/{path}:{line}")
    guilty = _dropping(said, values)
    if not guilty or not values:
        return _ban(values)
    kept: Mapping[str, tuple[str, str]] = {}
    if guilty.key == "EnvironmentFile":
        kept = {name: value for name, value in values.items() if _is_in(value[1], said)}
    elif guilty.key == "ExecStart":
        kept = _handed_on(guilty, values)
    # Without the line that drops the packaged command, the unit would have none at all.
    lines = [one for one in _of_drop_ins(said) if one.key == "ExecStart"] if guilty.key == "ExecStart" else [guilty]
    mending = taking_out(lines, UNIT)
    restart = to_type(all_of(mending.commands).then(kinds.restart_irqbalance())) if mending.is_typed else mending
    return _ban(kept)._replace(dropped=f"{guilty} says {guilty.key}={guilty.value}", ends=restart)


def _is_in(place: str, said: Sequence[Said]) -> bool:
    """Is it a line of the unit itself, and not of a file that it reads?"""
    return any(str(one) == place for one in said)


def _of_drop_ins(said: Sequence[Said]) -> list[Said]:
    return [one for one in said if one.section == "Service" and not one.file.endswith(f"/{UNIT}")]


def _dropping(said: Sequence[Said], values: Mapping[str, tuple[str, str]]) -> Said | None:
    """The line of a drop-in that takes the ban from the daemon's environment; None where none does."""
    own = _of_drop_ins(said)
    empty = next((one for one in own if one.key == "EnvironmentFile" and not one.value), None)
    if empty and not in_force(said, "Service", "EnvironmentFile"):
        return empty
    for one in own:
        if one in in_force(said, "Service", "UnsetEnvironment") and {_LIST, _MASK} & set(one.value.split()):
            return one
        if one in in_force(said, "Service", "ExecStart") and _handed_on(one, values) != values:
            return one
    return None


def _handed_on(start: Said, values: Mapping[str, tuple[str, str]]) -> Mapping[str, tuple[str, str]]:
    """What is left of the bans where env(1) starts the daemon with other variables than systemd gave it."""
    words = words_of(start.value)
    if not words or words[0].rpartition("/")[2] != "env":
        return values
    kept = dict(values)
    for word, after in pairwise([*words[1:], ""]):
        name, equals, value = word.removeprefix("--unset=").removeprefix("-u").partition("=")
        if word in ("-i", "-", "--ignore-environment"):
            kept = {}
        elif word in ("-u", "--unset"):
            kept.pop(after, None)
        elif equals and name in (_LIST, _MASK):
            kept[name] = (value, str(start))
        elif word.startswith(("-u", "--unset=")):
            kept.pop(name, None)
    return kept


def _variables(value: str) -> Iterator[tuple[str, str]]:
    """The bans in the value of an Environment=."""
    for word in _words(value):
        name, _, text = word.partition("=")
        if name in (_LIST, _MASK):
            yield name, text


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
    """The ban list of a running daemon: what it answers at its socket, or else what its environment says.

    Only root may have either. For others the result is None where its service started it and it has no socket, because
    then the configured list holds; where somebody else started it, with which list is `unread`.
    """
    stray = pid if root.get_text(f"proc/{pid}/cgroup") and "irqbalance" not in service_of(root, pid) else 0
    path = f"proc/{pid}/environ"
    with root.noting() as denied:
        environ = root.get_text(path)
    answer = ask(root, pid)
    if answer.cpus is not None:
        return Ban(answer.cpus, f"process {pid} says so", stray_pid=stray)
    if not environ and not stray:
        return read_configured_ban(root)._replace(unasked=answer.unasked) if answer.unasked else None
    if denied or not root.exists(path):  # a recording holds no environments
        why = "its service did not start it, and only root may see with what list"
        return Ban(None, f"process {pid}", stray_pid=stray, unread=why)
    values = {}
    for item in environ.split("\0"):
        name, _, value = item.partition("=")
        if name in (_LIST, _MASK):
            values[name] = (value, f"process {pid}")
    return _ban(values)._replace(stray_pid=stray, unasked=answer.unasked)


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


_SOCKETS = "proc/net/unix"
_TIMEOUT_S = 1.0
_BYTES = 65536  # each banned interrupt takes some 60
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid
_BANNED = re.compile(r"\bBANNED ([0-9a-fA-F,]+)\s*\0?$")


class Answer(NamedTuple):
    """`cpus` is what is banned, None where nobody said; `unasked` says why not, "" where nobody can change it."""

    cpus: CpuSet | None
    unasked: str = ""


def ask(root: Sysroot, pid: int) -> Answer:
    """The ban of a daemon that runs. It may take a second; never raises."""
    address = _address(root, pid) if root.live else ""
    if not address:
        return Answer(None)
    shown = address.replace("\0", "@")
    if os.geteuid():
        return Answer(None, f"only root may ask at its socket {shown} whether its list was changed since it started")
    text = ""
    with suppress(OSError):
        text = _asked(address, pid)
    cpus = parse_answer(text)
    return Answer(cpus, "" if cpus is not None else f"it did not say at its socket {shown} what it bans now")


def parse_answer(text: str) -> CpuSet | None:
    """The CPUs of its answer; None where it is none."""
    found = _BANNED.search(text)
    with suppress(UsageError):
        return parse_cpumask(found[1]) if found else None
    return None


def _address(root: Sysroot, pid: int) -> str:
    """Where it listens; "" where it does not: it may be built without irqbalance-ui."""
    own = (f"/run/irqbalance/irqbalance{pid}.sock", f"/run/irqbalance{pid}.sock", f"@irqbalance{pid}.sock")
    lines = map(str.split, root.get_text(_SOCKETS).split("\n"))
    names = (words[-1] for words in lines if words)  # anybody may bind a name that holds a newline
    return next((name.replace("@", "\0", 1) for name in names if name in own), "")


def _asked(address: str, pid: int) -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(_TIMEOUT_S)
        asking.connect(address)
        peer = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        if _CREDENTIALS.unpack(peer)[0] != pid:  # anybody may take a name that begins with @
            return ""
        own = _CREDENTIALS.pack(os.getpid(), os.getuid(), os.getgid())
        asking.sendmsg([b"setup"], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, own)])
        answer = b""
        while (part := asking.recv(_BYTES)) and len(answer) < _BYTES:
            answer += part
        return answer.decode("ascii", "replace")
