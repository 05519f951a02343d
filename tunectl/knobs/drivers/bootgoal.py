"""What a boot starts: the unit that it goes to, by the kernel's command line or by default.target, and what that wants.

Source: kernel-command-line(7), systemd.unit= and the words of old runlevels; systemd-debug-generator(8), systemd.mask=
and systemd.wants=; systemd-run-generator(8), systemd.run=; bootup(7); systemd.unit(5), Wants=, Requires=, BindsTo=,
Upholds= and the directories of links.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from stat import S_ISREG
from typing import NamedTuple

from tunectl.bootloader.cmdline import Arg, same_key
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import files_in_force, unit_directories
from tunectl.host.systemdunit import NULL, mask_of, read_unit

_DEFAULT = "default.target"
RESCUE = ("rescue.target", "emergency.target")
# Words without a value that stand for a target (systemd's src/basic/unit-file.c).
_WORDS = {
    **dict.fromkeys(("emergency", "-b"), "emergency.target"),
    **dict.fromkeys(("rescue", "single", "-s", "s", "S", "1"), "rescue.target"),
    **dict.fromkeys(("2", "3", "4"), "multi-user.target"),
    "5": "graphical.target",
}
_INIT = ("init", "systemd")  # how the file of a boot's first program is called where that is systemd
_PULLS = ("Wants", "Requires", "BindsTo", "Upholds")
_NEEDS = ("Requires", "BindsTo", "Requisite")  # the last has nothing started
_OF_FILES = (".target", ".service", ".socket", ".timer", ".path")  # others systemd makes up itself
_LINKS = {"wants": "Wants", "requires": "Requires", "upholds": "Upholds"}
# Of systemd's own targets, where a recording has not got their files.
_KNOWN = {
    "graphical.target": ("multi-user.target",),
    "multi-user.target": ("basic.target",),
    "basic.target": ("sysinit.target",),
    "sysinit.target": (),
    "rescue.target": ("sysinit.target",),
    "runlevel5.target": ("graphical.target",),
    **dict.fromkeys(("runlevel2.target", "runlevel3.target", "runlevel4.target"), ("multi-user.target",)),
}


class Goal(NamedTuple):
    """The unit that a boot goes to ("": systemd is not what it starts), and what says so: a word, or a file."""

    unit: str
    word: str = ""
    file: str = ""  # without a leading slash


class Pull(NamedTuple):
    """A unit that another one has started, and what says so: a file, and its line, 0 for a link; "" for systemd."""

    unit: str
    file: str  # without a leading slash
    line: int
    key: str  # by which it is declared; of a link, the key that it stands for

    def __str__(self) -> str:
        return f"/{self.file}:{self.line}" if self.line else f"/{self.file}"


class Obstacle(NamedTuple):
    """Why a unit cannot start: it requires one that is not there, or that is masked (`mask`, a word or a file)."""

    pull: Pull
    mask: Arg | str = ""

    def __str__(self) -> str:
        by = f"/{self.mask}" if isinstance(self.mask, str) else str(self.mask)
        return f"{self.pull} requires {self.pull.unit}, " + (f"which {by} masks" if self.mask else "which is not there")


def goal_files(unit: str) -> tuple[str, ...]:
    """What says where a boot goes, and what its targets have started, as shell patterns; no other unit's own file."""
    names = ("*.target", "*.target.d/*.conf")
    links = [f"*.target.{kind}/{name}" for kind in _LINKS for name in ("*.target", unit)]
    return tuple(path for name in (*names, *links) for path in unit_directories(name))


def goal_of(root: Sysroot, args: Sequence[Arg]) -> Goal | None:
    """Where a boot with this command line goes; None where no file says what default.target is (a recording)."""
    goal: Goal | None = None
    for arg in args:
        if same_key(arg.key, "systemd.unit") and arg.value:
            goal = Goal(arg.value, str(arg))
        elif arg.value is None and arg.key in _WORDS:
            goal = Goal(_WORDS[arg.key], arg.key)
    # systemd-run-generator: such a command takes the place of default.target.
    runs = [arg for arg in args if same_key(arg.key, "systemd.run") and arg.value]
    if runs and goal is None:
        goal = Goal("kernel-command-line.target", str(runs[-1]))
    programs = [arg for arg in args if arg.key == "init" and arg.value]
    if programs and (programs[-1].value or "").rpartition("/")[2] not in _INIT:
        return Goal("", str(programs[-1]))
    return goal or _default(root)


def _default(root: Sysroot) -> Goal | None:
    """By the link, or the file, that default.target is. systemd passes over a link to itself or to what is no target,
    and over a directory.
    """
    for path in _lasting(unit_directories(_DEFAULT)):
        link = root.readlink(path)
        name = link.rpartition("/")[2]
        if link.endswith(NULL) or (not link and _is_file(root, path)):
            return Goal(_DEFAULT, file=path)
        if name.endswith(".target") and name != _DEFAULT:
            return Goal(name, file=path)
    return None


def _is_file(root: Sysroot, path: str) -> bool:
    try:
        return S_ISREG(root.lstat(path).st_mode)
    except OSError:
        return False


def _lasting(paths: Iterable[str]) -> list[str]:
    """Those that the next boot finds as well: what generators made of this boot's line, and all in /run, go with it."""
    return [path for path in paths if not path.startswith("run/")]


def masking(args: Sequence[Arg], unit: str) -> Arg | None:
    """The word of a command line that masks a unit."""
    return next((arg for arg in args if same_key(arg.key, "systemd.mask") and _named(arg) == unit), None)


def _named(arg: Arg) -> str:
    name = arg.value or ""
    return name if "." in name else f"{name}.service"  # as systemctl takes a name without a suffix


def leads_to(root: Sysroot, goal: Goal, unit: str, args: Sequence[Arg]) -> bool:
    """Does a boot with this command line that goes to `goal` start a unit, along what each unit on the way pulls in?

    Conditions count for nothing here: what a unit pulls in starts, too, where its own condition does not hold.
    """
    waiting, seen = deque(_first(goal)), {""}
    if goal.unit and barred(root, goal.unit, args):
        return False
    if goal.unit and any(same_key(arg.key, "systemd.wants") and _named(arg) == unit for arg in args):
        return True
    while waiting:
        one = waiting.popleft()
        if one in seen or barred(root, one, args):
            continue
        seen.add(one)
        pulled = {pull.unit for pull in _pulls(root, one) if pull.key in _PULLS}
        if unit in pulled:
            return True
        waiting.extend(sorted(pulled, key=lambda name: not name.endswith(".target")))
    return False


def obstacle_of(root: Sysroot, goal: Goal, args: Sequence[Arg]) -> Obstacle | None:
    """What keeps the unit that a boot goes to from starting: systemd starts nothing then of what it would pull in."""
    waiting, seen = deque(_first(goal)), set[str]()
    while waiting:
        one = waiting.popleft()
        if one in seen:
            continue
        seen.add(one)
        for pull in (pull for pull in _pulls(root, one) if pull.key in _NEEDS):
            mask = barred(root, pull.unit, args)
            if mask or is_missing(root, pull.unit):
                return Obstacle(pull, mask)
            waiting.append(pull.unit)
    return None


def is_missing(root: Sysroot, unit: str) -> bool:
    """Is there surely no such unit? A recording has targets alone, and an old one none."""
    known = _OF_FILES if root.live else (".target",)
    if not unit.endswith(known) or "%" in unit or is_there(root, unit):
        return False
    template = re.sub(r"@.*(?=\.)", "@", unit)
    return any(map(root.exists, unit_directories("basic.target"))) and not is_there(root, template)


def _first(goal: Goal) -> list[str]:
    """The unit; what is said of default.target holds for the unit that it is a link to."""
    return [goal.unit, _DEFAULT] if goal.file else [goal.unit]


def barred(root: Sysroot, unit: str, args: Sequence[Arg]) -> Arg | str:
    """The word, or the file, that masks a unit in a boot with this command line; "" where nothing does."""
    return masking(args, unit) or "".join(_lasting([mask_of(root, unit)]))


def lasting_mask(root: Sysroot, unit: str) -> str:
    """The file that masks a unit, in the next boot, too: what a generator made of this boot's line goes with it."""
    path = mask_of(root, unit)
    return "" if "/generator" in path else path


def is_there(root: Sysroot, unit: str) -> bool:
    """Has this host a file for a unit, or is it one of systemd's own?"""
    return unit in (*_KNOWN, *RESCUE) or any(map(root.exists, unit_directories(unit)))


def _pulls(root: Sysroot, unit: str) -> Iterator[Pull]:
    """The units that one has started along with it, or needs, under each of its names."""
    for name in _names(root, unit):
        yield from (Pull(known, "", 0, "Wants") for known in _KNOWN.get(name, ()))
        for said in read_unit(root, name):
            if said.section == "Unit" and said.key in {*_PULLS, *_NEEDS} and _lasting([said.file]):
                yield from (Pull(word, said.file, said.line, said.key) for word in said.value.split())
        for kind, key in _LINKS.items():
            links = files_in_force(root, _lasting(unit_directories(f"{name}.{kind}")), "")
            there = (path for path in links if not root.readlink(path).endswith(NULL))
            yield from (Pull(path.rpartition("/")[2], path, 0, key) for path in there)


def _names(root: Sysroot, unit: str) -> list[str]:
    """A unit's name, and the names of what it is a link to: what is said of one of them is said of the unit."""
    names = [unit]
    while True:
        path = next((path for path in unit_directories(names[-1]) if root.exists(path)), "")
        target = root.readlink(path).rpartition("/")[2] if path else ""
        if not target or target in names:
            return names
        names.append(target)
