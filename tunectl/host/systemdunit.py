"""One unit as its files declare it: its file, masks, drop-ins, and what wants it.

Source: systemd.unit(5), "Unit File Load Path"; systemd.service(5), "Command lines".
"""

import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from tunectl.command import Command, all_of, argv, as_data
from tunectl.fix import NOTHING, Fix, in_turn, to_decide, to_type
from tunectl.host.inifiles import parse_ini
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import files_in_force, files_of, unit_directories

NULL = "/dev/null"
YES = ("yes", "on", "true", "1", "y", "t")  # its booleans, in any case
MARKS = "@-:+!"  # what may stand before the program of an Exec line, in any order
RELOAD = argv("sudo", "systemctl", "daemon-reload")
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
    if main and (link := root.readlink(main)):
        return main if link.endswith(NULL) else ""  # in a recording it is relative
    with suppress(OSError):
        return "" if not main or root.read_bytes(main, 1) else main
    return ""


def read_unit(root: Sysroot, unit: str) -> list[Said]:
    """Every assignment of a unit, in the order in which systemd reads them. Never raises."""
    return [
        Said(option.section, option.key, option.value, file, option.line, option.last)
        for file in files_of(root, unit)
        for option in parse_ini(root.get_text(file))
    ]


def in_force(lines: Iterable[Said], section: str, *keys: str) -> list[Said]:
    """The assignments of list-like keys that count: an empty one drops those of its key before it."""
    kept: list[Said] = []
    for line in lines:
        if line.section == section and line.key in keys:
            kept = [*kept, line] if line.value else [old for old in kept if old.key != line.key]
    return kept


def words_of(command: str) -> list[str]:
    """The words of an Exec line, without the marks before its program; none where systemd could not split it."""
    try:
        words = shlex.split(command.lstrip(MARKS))
    except ValueError:
        return []
    return [word.replace("%%", "%").replace("$$", "$") for word in words]


def taking_out(guilty: Sequence[Said], *names: str) -> Fix:
    """How to take lines out of the drop-ins of these; of a file that holds for other units the operator decides."""
    commands, shared = list[Command](), []
    for file in dict.fromkeys(one.file for one in guilty):
        lines = sorted((one for one in guilty if one.file == file), key=lambda one: one.line)
        if not any(f"/{name}.d/" in file for name in names):
            scope = "it holds for other units, too; drop-ins of those may say it instead"
            shared.append(to_decide(f"decide about {', '.join(map(as_data, lines))}: {scope}"))
            continue
        script = ";".join(f"{line.line},{line.last}d" if line.last > line.line else f"{line.line}d" for line in lines)
        commands.append(argv("sudo", "sed", "-i", script, of=[f"/{file}"]))
    return in_turn(to_type(all_of([*commands, RELOAD])) if commands else NOTHING, *shared)


def is_wanted(root: Sysroot, unit: str) -> bool:
    """Does a link that lasts have a target start it? Of one name the first directory's counts; one may be a mask."""
    targets = [*_TARGETS, root.readlink("etc/systemd/system/default.target").rpartition("/")[2]]
    kinds = [f"{target}.{kind}" for target in filter(None, targets) for kind in ("wants", "requires")]
    lasting = ([place for place in unit_directories(kind) if not place.startswith("run/")] for kind in kinds)
    found = (files_in_force(root, places, unit) for places in lasting)
    links = [path for paths in found for path in paths if path.endswith(f"/{unit}")]
    return any(not root.readlink(path).endswith(NULL) for path in links)
