"""Where a boot goes, as it is declared: words of the kernel's command line, default.target, masks, and requirements.

systemd's own targets lead to multi-user.target, which starts our service. Of another target its own text and its links
count. What it starts in turn, and whether what is required can start, is not followed: a boot tells.

Source: kernel-command-line(7), systemd.unit= and the words of old runlevels; systemd-debug-generator(8), systemd.mask=
and systemd.wants=; systemd-run-generator(8), systemd.run=; bootup(7); systemd.unit(5), Wants=, Requires=, BindsTo=,
Upholds= and the directories of links.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tunectl.bootloader.cmdline import Arg, same_key
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import unit_directories
from tunectl.host.systemdunit import NULL, Said, mask_of, read_unit

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
_PULLS = frozenset({"Wants", "Requires", "BindsTo", "Upholds"})
_NEEDS = frozenset({"Requires", "BindsTo", "Requisite"})  # the last has nothing started
# systemd's own targets that lead to multi-user.target, and what each requires in its turn.
_CHAIN = ("graphical.target", "multi-user.target", "basic.target", "sysinit.target")
USUAL = {"graphical.target": _CHAIN, "runlevel5.target": ("runlevel5.target", *_CHAIN), "multi-user.target": _CHAIN[1:]}
USUAL |= {f"runlevel{level}.target": (f"runlevel{level}.target", *_CHAIN[1:]) for level in (2, 3, 4)}


class Goal(NamedTuple):
    """The unit that a boot goes to ("": systemd is not what it starts), and what says so: a word, or a file."""

    unit: str
    word: str = ""
    file: str = ""  # without a leading slash


def goal_files(unit: str) -> tuple[str, ...]:
    """What says where a boot goes, and what its targets have started, as shell patterns; no other unit's own file."""
    names = ("*.target", "*.target.d/*.conf")
    links = [f"*.target.{kind}/{name}" for kind in ("wants", "requires", "upholds") for name in ("*.target", unit)]
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
    if goal:
        return goal
    # By the link, or the file, that it is. systemd passes over a link to itself or to what is no target.
    for path in _lasting(unit_directories(_DEFAULT)):
        link = root.readlink(path)
        name = link.rpartition("/")[2]
        if link.endswith(NULL) or (not link and root.exists(path)):
            return Goal(_DEFAULT, file=path)
        if name.endswith(".target") and name != _DEFAULT:
            return Goal(name, file=path)
    return None


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
    """Is it declared that a boot to this goal starts a unit that multi-user.target wants? It may all the same."""
    if goal.unit in USUAL or any(same_key(arg.key, "systemd.wants") and _named(arg) == unit for arg in args):
        return True
    pulled = {word for said in _said(root, _first(goal)) if said.key in _PULLS for word in said.value.split()}
    names = {unit, *USUAL}
    kinds = [f"{first}.{kind}" for first in _first(goal) for kind in ("wants", "requires", "upholds")]
    places = [place for kind in kinds for place in _lasting(unit_directories(kind))]
    return bool(pulled & names) or any(names & set(root.listdir(place)) for place in places)


def way_of(goal: Goal) -> list[str]:
    """The units of a boot to this goal that have to start before our service does."""
    return list(dict.fromkeys([*_first(goal), *USUAL.get(goal.unit, USUAL["multi-user.target"])]))


def needs_of(root: Sysroot, goal: Goal) -> tuple[list[Said], list[str]]:
    """(lines, links) by which one of these requires what systemd's own targets do not."""
    way = way_of(goal)
    said = (line for line in _said(root, way) if line.key in _NEEDS and not {*line.value.split()} <= {*way})
    lines = [line for line in said if line.file != goal.file or goal.unit == _DEFAULT]  # of a link, by its own name
    places = [place for unit in way for place in _lasting(unit_directories(f"{unit}.requires"))]
    links = [f"{place}/{name}" for place in places for name in root.listdir(place) if name not in way]
    return lines, [
        link for link in links if not root.readlink(link).endswith(NULL) and not link.endswith("/tunectl-apply.service")
    ]


def _said(root: Sysroot, units: Iterable[str]) -> list[Said]:
    return [
        said for unit in units for said in read_unit(root, unit) if said.section == "Unit" and _lasting([said.file])
    ]


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
    """Has this host a file for a unit, or is it one of systemd's own targets?"""
    return unit in (*USUAL, *RESCUE) or any(map(root.exists, unit_directories(unit)))
