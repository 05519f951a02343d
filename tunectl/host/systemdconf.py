"""Which files systemd and similar programs read, in which order: drop-in directories, units, the manager's own.

Source: systemd.unit(5), "Unit File Load Path"; systemd-system.conf(5).

The control groups of systemd's units: a unit that has one runs now. /sys/fs/cgroup/system.slice
"""

import re
from collections.abc import Iterable, Iterator

from tunectl.cpulist import CpuSet, parse_spaced
from tunectl.errors import UsageError
from tunectl.host.ask import VERSION, ask
from tunectl.host.shellvars import last_value
from tunectl.host.sysroot import Sysroot

# Earlier ones win. `systemctl set-property` writes into system.control.
_UNITS = tuple(
    f"{place}/systemd/{kind}"
    for place, kind in (
        ("etc", "system.control"),
        ("run", "system.control"),
        ("run", "transient"),
        ("run", "generator.early"),
        ("etc", "system"),
        ("run", "system"),
        ("run", "generator"),
        ("usr/local/lib", "system"),
        ("usr/lib", "system"),
        ("lib", "system"),
        ("run", "generator.late"),
    )
)
_PLACES = ("etc", "run", "usr/local/lib", "usr/lib", "lib")
MANAGER = "system.conf"


def directories_of(name: str) -> tuple[str, ...]:
    """Where systemd, udev, kmod and others look for a directory of this name, `sysctl.d`; the first counts."""
    return tuple(f"{place}/{name}" for place in _PLACES)


def files_in_force(root: Sysroot, directories: Iterable[str], suffix: str = ".conf") -> list[str]:
    """The files with this suffix, sorted by name; of two of one name the earlier directory's counts. Never raises."""
    by_name: dict[str, str] = {}
    for directory in directories:
        for name in root.listdir(directory):
            if name.endswith(suffix):
                by_name.setdefault(name, f"{directory}/{name}")
    return [by_name[name] for name in sorted(by_name)]


def files_of(root: Sysroot, name: str) -> list[str]:
    """The files that configure a unit, or a part of systemd (`system.conf`); what a later one says comes later."""
    mains, directories = _places(name)
    main = next((path for path in mains if root.exists(path)), None)
    dropins = files_in_force(root, directories)
    return [main, *dropins] if main else dropins


def patterns_of(name: str) -> tuple[str, ...]:
    """Every path at which files_of() looks, as shell patterns."""
    mains, directories = _places(name)
    return (*mains, *(f"{directory}/*.conf" for directory in directories))


def _places(name: str) -> tuple[list[str], list[str]]:
    """(where the unit's own file may be, the directories of its drop-ins), what wins first."""
    is_unit = not name.endswith(".conf")
    mains = [f"{place}/{name}" for place in (_UNITS if is_unit else directories_of("systemd"))]
    if not is_unit:
        return mains, [f"{main}.d" for main in mains]
    # `a-b-c.service` has drop-ins of `a-b-.service` and `a-.service`, too.
    stem, dot, kind = name.rpartition(".")
    dashes = [number for number, letter in enumerate(stem[:-1]) if letter == "-"]
    names = (name, *(f"{stem[: number + 1]}{dot}{kind}" for number in reversed(dashes)))
    own = [f"{place}/{each}.d" for place in _UNITS for each in names]
    return mains, own + [f"{place}/{kind}.d" for place in _UNITS]


def unit_directories(kind: str) -> tuple[str, ...]:
    """Where systemd looks for a directory of this name, `multi-user.target.wants`, beside its units; first wins."""
    return tuple(f"{place}/{kind}" for place in _UNITS)


def unit_names(root: Sysroot, suffix: str) -> list[str]:
    """The units of a kind (`.timer`) that this host has files for, by name. Never raises."""
    return sorted({name for place in _UNITS for name in root.listdir(place) if name.endswith(suffix)})


def starting_links(root: Sysroot, without: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """(the directory's name, the link's path) of each link that has a unit started: `multi-user.target.wants`, ....

    Sorted by the directory's name; of one name the first that systemd reads comes first. `without`: what the names of
    directories begin with that are not looked into. Never raises.
    """
    for kind in sorted({*unit_names(root, ".wants"), *unit_names(root, ".requires")}):
        if not kind.startswith(without):
            for place in unit_directories(kind):
                yield from ((kind, f"{place}/{unit}") for unit in sorted(root.listdir(place)))


def united(values: Iterable[str]) -> CpuSet:
    """A CPU set given in several assignments: each adds its CPUs, an empty one drops all before it (systemd.exec(5)).

    A value systemd cannot parse is left out, as systemd leaves it out.
    """
    cpus: CpuSet = frozenset()
    for value in values:
        try:
            cpus = cpus | parse_spaced(value) if value else frozenset()
        except UsageError:
            continue
    return cpus


# The first releases with 258, for a host that does not answer.
_WITH_258 = {"fedora": 43.0, "ubuntu": 26.04, "debian": 14.0, "arch": 0.0}


def systemd_version(root: Sysroot) -> int:
    """The version of systemd, as systemctl says or by the distribution's release; 0 where nothing tells."""
    if answer := re.match(r"systemd ([0-9]+)", ask(root, VERSION) or ""):
        return int(answer[1])
    text = root.get_text("etc/os-release") or root.get_text("usr/lib/os-release")
    release = re.match(r"[0-9]+(\.[0-9]+)?", last_value(text, "VERSION_ID") or "0")
    first = _WITH_258.get(last_value(text, "ID") or "")
    return 258 if first is not None and release and float(release[0]) >= first else 0


# Version 2; version 1, and both together.
SYSTEM_SLICES = (
    "sys/fs/cgroup/system.slice",
    "sys/fs/cgroup/systemd/system.slice",
    "sys/fs/cgroup/unified/system.slice",
)


def groups_of(root: Sysroot, unit: str) -> list[str]:
    """The control groups of a service in system.slice; none where it does not run. Never raises."""
    return [f"{slice_}/{unit}" for slice_ in SYSTEM_SLICES if root.exists(f"{slice_}/{unit}")]
