"""What irqbalance is told to leave alone: as systemd has read its unit, and as the running daemon was started.

Where systemd does not answer, or has not read the unit's files as they are now, the files are read here.

Source: irqbalance(1) and cputree.c: with IRQBALANCE_BANNED_CPULIST unset it bans the CPUs of isolcpus
and nohz_full by itself; set but EMPTY it bans nothing in older versions, and is as unset in newer ones (what a daemon
that was started with an empty list says at its socket decides); IRQBALANCE_BANNED_CPUS is the older, hex form.

What a running irqbalance bans now, by its own word: irqbalance-ui changes its list while it runs.

It listens at a socket that is named after its process, and answers root alone. Source: irqbalance.c (init_socket,
sock_handle) of 1.9: "setup" is answered with "SLEEP 10 BANNED 0000000c".
"""

import os
import re
import shlex
import socket
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import NamedTuple

from tunectl import kinds
from tunectl.command import all_of, as_data
from tunectl.cpulist import CpuSet, format_cpulist, parse_cpulist, parse_cpumask
from tunectl.errors import UsageError
from tunectl.fix import NOTHING, Fix, to_decide, to_type
from tunectl.host.ask import UnitState, read_unit_state
from tunectl.host.cpusets import ISOLATED, NOHZ_FULL, read_cpu_list
from tunectl.host.environmentfiles import parse_environment_file
from tunectl.host.procs import is_daemon, read_comms, service_of
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import patterns_of, systemd_version
from tunectl.host.systemdunit import Said, in_force, read_unit, taking_out, words_of

# Debian; RHEL and SUSE; upstream's own unit. A unit reads one of them, or both of the last.
_FILES = ("etc/default/irqbalance", "etc/sysconfig/irqbalance", "usr/lib/irqbalance/defaults.env", "etc/irqbalance.env")
UNIT = "irqbalance.service"
PATTERNS = (*_FILES, *patterns_of(UNIT))  # every file in which a ban may be configured, as shell patterns
_COMMENTS_END = 254  # the first systemd in which a backslash does not continue a comment (its NEWS)
LIST, MASK = "IRQBALANCE_BANNED_CPULIST", "IRQBALANCE_BANNED_CPUS"


class Ban(NamedTuple):
    """`cpus` is what is banned, None where irqbalance decides itself; `source` is file:line, or the process."""

    cpus: CpuSet | None
    source: str
    problem: str = ""  # a value irqbalance cannot read
    stray_pid: int = 0  # the process, where its service does not run it
    ignored: str = ""  # the line with a list that systemd leaves out, and why
    dropped: str = ""  # the line of its unit that keeps a configured list from it, or may do so
    ends: Fix = NOTHING  # what ends that
    unread: str = ""  # why what is banned is not known
    unasked: str = ""  # why nobody knows whether the list was changed since the daemon started

    def describe(self) -> str:
        """One phrase for people."""
        if self.unread:
            return f"what it bans is not known: {self.unread}" + (f" ({self.source})" if self.source else "")
        if self.problem:
            return f"ban list not readable: {self.problem} ({self.source})"
        if self.cpus is None:
            return "bans the CPUs the kernel isolates" + (f"; {self.ignored}" if self.ignored else "")
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
    values = [value for value, _ in _bans(environ.split("\0"), "").values()]
    return bool(values) and not any(values) and bans == automatic


def _configured(root: Sysroot) -> Ban:
    unit_lines, state = read_unit(root, UNIT), read_unit_state(root, UNIT)
    loaded = state if state and state.load == "loaded" and not state.needs_reload else None
    values, ignored = _of_unit(unit_lines, loaded), ""
    # EnvironmentFile= beats Environment= wherever they stand (systemd.exec(5)).
    for path in _environment_files(root, unit_lines, loaded):
        for assigned in parse_environment_file(root.get_text(path)):
            place = f"/{path}:{assigned.line}"
            if not is_meant_as_ban(assigned.name):
                continue
            version = systemd_version(root) if assigned.is_doubtful else _COMMENTS_END
            if not version:
                why = f"{place} stands below a comment that ends in a backslash, and is a part of it before systemd 254"
                return Ban(None, "", unread=why, ends=to_decide(f"take the backslash out above {place}"))
            if version < _COMMENTS_END:
                ignored = f"{place}: systemd {version} takes the line for a part of the comment above it"
            elif assigned.name in (LIST, MASK):
                values[assigned.name] = (assigned.value, place)
            else:
                ignored = f"{place}: systemd leaves the line out, {as_data(assigned.name)} is no name of a variable"
    for line in in_force(unit_lines, "Service", "UnsetEnvironment"):
        values = {name: value for name, value in values.items() if name not in line.value.split()}
    ban = _ban(values)._replace(ignored=ignored)
    guilty = _dropping(unit_lines)
    if not guilty:
        return ban
    starts = guilty.key == "ExecStart"
    # Without the line that drops the packaged command, the unit would have none at all.
    mending = taking_out(
        [line for line in _of_drop_ins(unit_lines) if line.key == "ExecStart"] if starts else [guilty], UNIT
    )
    restart = to_type(all_of(mending.commands).then(kinds.restart_irqbalance())) if mending.is_typed else mending
    dropped = f"{guilty} says {guilty.key}={guilty.value}"
    return ban._replace(dropped=dropped, ends=restart, unread=f"{dropped}; this is not followed" if starts else "")


def is_meant_as_ban(name: str) -> bool:
    """Does what is written before a `=` end in one of the two names?"""
    return name.rpartition(" ")[2] in (LIST, MASK)


def _of_unit(unit_lines: Sequence[Said], loaded: UnitState | None) -> dict[str, tuple[str, str]]:
    """{name: (value, place)} of Environment=: as systemd has read it, or else as we read the unit's files."""
    values: dict[str, tuple[str, str]] = {}
    for line in in_force(unit_lines, "Service", "Environment"):
        with suppress(ValueError):  # systemd takes none of a line where a quote has no partner
            values |= _bans(shlex.split(line.value), str(line))
    if loaded is None:
        return values
    known = _bans(loaded.environment, f"Environment= of {UNIT}")
    return {name: (value, values.get(name, ("", place))[1]) for name, (value, place) in known.items()}


def _environment_files(root: Sysroot, unit_lines: Sequence[Said], loaded: UnitState | None) -> Iterator[str]:
    """The files that the unit reads, without a leading slash, in order.

    Every distribution's unit names one. Where none is named and systemd does not say so itself, the unit was not
    recorded whole, or an init script runs.
    """
    if loaded is None and not any(line.key == "EnvironmentFile" for line in unit_lines):
        yield from _FILES
    declared = [line.value.removeprefix("-") for line in in_force(unit_lines, "Service", "EnvironmentFile")]
    for place in loaded.environment_files if loaded else declared:
        directory, _, pattern = place.lstrip("/").rpartition("/")
        names = sorted(root.listdir(directory)) if set("*?[") & set(pattern) else [pattern]
        yield from (f"{directory}/{name}" for name in names if name == pattern or fnmatchcase(name, pattern))


def _of_drop_ins(unit_lines: Sequence[Said]) -> list[Said]:
    return [line for line in unit_lines if line.section == "Service" and not line.file.endswith(f"/{UNIT}")]


def _dropping(unit_lines: Sequence[Said]) -> Said | None:
    """The line of a drop-in that keeps a ban from the daemon's environment, or may do so; None where none does."""
    has_files = in_force(unit_lines, "Service", "EnvironmentFile")
    unset = in_force(unit_lines, "Service", "UnsetEnvironment")
    starts = in_force(unit_lines, "Service", "ExecStart")
    for line in _of_drop_ins(unit_lines):
        if line.key == "EnvironmentFile" and not line.value and not has_files:
            return line
        if line in unset and {LIST, MASK} & set(line.value.split()):
            return line
        # Started by env(1), or another program that does it: which environment the daemon has, only that knows.
        programs = [word.rpartition("/")[2] for word in words_of(line.value)]
        if line in starts and ("env" in programs or "irqbalance" not in programs):
            return line
    return None


def _bans(assignments: Iterable[str], place: str) -> dict[str, tuple[str, str]]:
    """{name: (value, place)} of the bans among `NAME=value` words; of two to one name the later one counts."""
    words = (word.partition("=") for word in assignments)
    return {name: (value, place) for name, _, value in words if name in (LIST, MASK)}


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
    return _ban(_bans(environ.split("\0"), f"process {pid}"))._replace(stray_pid=stray, unasked=answer.unasked)


def _ban(values: Mapping[str, tuple[str, str]]) -> Ban:
    """Versions differ in which variable wins where both say something: only what both ban is sure to be banned."""
    lists = [
        (parse, *values[name])
        for name, parse in ((LIST, parse_cpulist), (MASK, parse_cpumask))
        if name in values and (values[name][0] or name == LIST)  # an empty mask counts as none
    ]
    try:
        sets = [parse(value) if value else frozenset[int]() for parse, value, _ in lists]
    except UsageError as error:
        return Ban(None, lists[0][2], str(error))
    if not sets:
        return Ban(None, "")
    return Ban(frozenset.intersection(*sets), ", ".join(source for _, _, source in lists))


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
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(_TIMEOUT_S)
        asking.connect(address)
        peer = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        if _CREDENTIALS.unpack(peer)[:2] == (pid, 0):  # anybody may take a name that begins with @
            own = _CREDENTIALS.pack(os.getpid(), os.getuid(), os.getgid())
            asking.sendmsg([b"setup"], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, own)])
            answer = b""
            while (part := asking.recv(_BYTES)) and len(answer) < _BYTES:
                answer += part
            text = answer.decode("ascii", "replace")
    cpus = parse_answer(text)
    return Answer(cpus, "" if cpus is not None else f"it did not say at its socket {shown} what it bans now")


def parse_answer(text: str) -> CpuSet | None:
    """The CPUs of its answer; None where it is none."""
    match = _BANNED.search(text)
    with suppress(UsageError):
        return parse_cpumask(match[1]) if match else None
    return None


def _address(root: Sysroot, pid: int) -> str:
    """Where it listens; "" where it does not: it may be built without irqbalance-ui."""
    own = (f"/run/irqbalance/irqbalance{pid}.sock", f"/run/irqbalance{pid}.sock", f"@irqbalance{pid}.sock")
    lines = map(str.split, root.get_text(_SOCKETS).split("\n"))
    names = (words[-1] for words in lines if words)  # anybody may bind a name that holds a newline
    return next((name.replace("@", "\0", 1) for name in names if name in own), "")
