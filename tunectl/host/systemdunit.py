"""One unit as systemd will run it: its file, masks, drop-ins, conditions, and what wants it.

Source: systemd.unit(5), "Unit File Load Path", "Conditions and Asserts"; systemd.service(5), "Command lines".
"""

from __future__ import annotations

import shlex
import stat
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from tunectl.command import Command, all_of, argv, as_data
from tunectl.errors import TunectlError
from tunectl.fix import NOTHING, Fix, in_turn, to_decide, to_type
from tunectl.host.inifiles import parse_ini
from tunectl.host.run import run
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import files_in_force, files_of, unit_directories

NULL = "/dev/null"
YES, NO = ("yes", "on", "true", "1", "y", "t"), ("no", "off", "false", "0", "n", "f")  # its booleans, in any case
MARKS = "@-:+!"  # what may stand before the program of an Exec line, in any order
RELOAD = argv("sudo", "systemctl", "daemon-reload")
_ANALYZE = ("/usr/bin/systemd-analyze", "condition")
_SHOW = ("/usr/bin/systemctl", "show", "--property=ActiveState,Result,ExecMainStatus,Job", "--")
_TIMEOUT_S = 5.0
# What a boot to a login always reaches.
_TARGETS = ("multi-user.target", "basic.target", "sysinit.target", "default.target")


class Said(NamedTuple):
    """One assignment of a unit: its section, key and value, the file (without a leading slash), first and last line."""

    section: str
    key: str
    value: str
    file: str
    line: int
    last: int

    def __str__(self) -> str:
        return f"/{self.file}:{self.line}"


def mask_of(root: Sysroot, unit: str) -> str:
    """The file that masks a unit: a link to /dev/null, or an empty file; "" where nothing does."""
    main = next((path for path in files_of(root, unit)[:1] if path.endswith(f"/{unit}")), "")
    return main if main and _is_null(root, main) else ""


def _is_null(root: Sysroot, path: str) -> bool:
    link = root.readlink(path)
    if link:
        return link.endswith(NULL)  # in a recording it is relative
    try:
        return not root.read_bytes(path, 1)
    except OSError:
        return False


def read_unit(root: Sysroot, unit: str) -> list[Said]:
    """Every assignment of a unit, in the order in which systemd reads them. Never raises."""
    return [
        Said(one.section, one.key, one.value, file, one.line, one.last)
        for file in files_of(root, unit)
        for one in parse_ini(root.get_text(file))
    ]


def in_force(said: Iterable[Said], section: str, *keys: str) -> list[Said]:
    """The assignments of list-like keys that count: an empty one drops those of its key before it."""
    found: list[Said] = []
    for one in said:
        if one.section == section and one.key in keys:
            found = [*found, one] if one.value else [old for old in found if old.key != one.key]
    return found


def words_of(command: str) -> list[str]:
    """The words of an Exec line, without the marks before its program; none where systemd could not split it."""
    try:
        words = shlex.split(command.lstrip(MARKS))
    except ValueError:
        return []
    return [word.replace("%%", "%").replace("$$", "$") for word in words]


def taking_out(guilty: Sequence[Said], name: str) -> Fix:
    """How to take lines out of drop-ins; of a file that holds for other units, too, the operator decides."""
    commands, shared = list[Command](), []
    for file in dict.fromkeys(one.file for one in guilty):
        lines = sorted((one for one in guilty if one.file == file), key=lambda one: one.line)
        if f"/{name}.d/" not in file:
            said = "it holds for other units, too; drop-ins of those may say it instead"
            shared.append(to_decide(f"decide about {', '.join(map(as_data, lines))}: {said}"))
            continue
        script = ";".join(f"{one.line},{one.last}d" if one.last > one.line else f"{one.line}d" for one in lines)
        commands.append(argv("sudo", "sed", "-i", script, of=[f"/{file}"]))
    return in_turn(to_type(all_of([*commands, RELOAD])) if commands else NOTHING, *shared)


def is_wanted(root: Sysroot, unit: str) -> bool:
    """Does a link have a target start it? Of links of one name the first directory's counts, and one may be a mask."""
    targets = [*_TARGETS, root.readlink("etc/systemd/system/default.target").rpartition("/")[2]]
    kinds = [f"{target}.{kind}" for target in filter(None, targets) for kind in ("wants", "requires")]
    found = (files_in_force(root, unit_directories(kind), unit) for kind in kinds)
    links = [path for paths in found for path in paths if path.endswith(f"/{unit}")]
    return any(not root.readlink(path).endswith(NULL) for path in links)


def unmet(root: Sysroot, said: Sequence[Said]) -> tuple[list[Said], Said | None]:
    """(the conditions and assertions that keep a unit from starting, one that cannot be judged here).

    Without `|` all must hold, of those with `|` one must.
    """
    failing: list[Said] = []
    doubtful = None
    for prefix in ("Condition", "Assert"):
        wanted: list[Said] = []
        for one in said:
            if one.section == "Unit" and one.key.startswith(prefix):
                wanted = [*wanted, one] if one.value else []  # an empty one drops every condition before it
        judged = [(one, _holds(root, one.key.removeprefix(prefix), one.value.replace("|", "", 1))) for one in wanted]
        musts = [(one, holds) for one, holds in judged if not one.value.startswith("|")]
        options = [(one, holds) for one, holds in judged if one.value.startswith("|")]
        failing += [one for one, holds in musts if holds is False]
        if all(holds is False for _, holds in options):
            failing += [one for one, _ in options]
        unknown = [one for one, holds in musts if holds is None]
        unknown += [one for one, holds in options if holds is None and not any(true for _, true in options)]
        doubtful = doubtful or next(iter(unknown), None)
    return failing, doubtful


def _holds(root: Sysroot, kind: str, value: str) -> bool | None:
    """Does one condition hold now? None where that cannot be known."""
    negated, argument = value.startswith("!"), value.removeprefix("!").strip()
    path = argument.lstrip("/")
    if kind == "PathExists":
        holds: bool | None = root.mode(path) is not None
    elif kind == "KernelCommandLine":
        words = root.get("proc/cmdline").split()
        holds = any(word == argument or ("=" not in argument and word.startswith(f"{argument}=")) for word in words)
    elif kind == "PathExistsGlob":
        directory, _, pattern = path.rpartition("/")
        known = not set("*?[") & set(directory)
        holds = any(fnmatchcase(name, pattern) for name in root.listdir(directory)) if known else None
    elif kind == "FileNotEmpty":
        holds = _is_filled(root, path)
    elif kind == "DirectoryNotEmpty":
        holds = bool(root.listdir(path))
    else:
        return _asked(root, f"Condition{kind}={value}")
    return holds if holds is None else holds is not negated


def _is_filled(root: Sysroot, path: str) -> bool:
    """Is it a regular file with something in it? Who may write there may also put a FIFO there: it is not opened."""
    try:
        status = root.lstat(root.real(path))
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size > 0


def read_state(root: Sysroot, unit: str) -> dict[str, str]:
    """What systemd says of a unit: ActiveState, Result, ExecMainStatus, Job ("": none waits). Empty where it cannot."""
    if not root.live or not root.exists("run/systemd/system"):
        return {}
    try:
        done = run((*_SHOW, unit), timeout_s=_TIMEOUT_S)
    except TunectlError:
        return {}
    return dict(line.partition("=")[::2] for line in done.stdout.splitlines()) if not done.returncode else {}


def _asked(root: Sysroot, condition: str) -> bool | None:
    """systemd's own answer, on a host that it runs."""
    if not root.live or not root.exists("run/systemd/system") or not root.exists(_ANALYZE[0].lstrip("/")):
        return None
    try:
        return run((*_ANALYZE, condition), timeout_s=_TIMEOUT_S).returncode == 0
    except TunectlError:
        return None
