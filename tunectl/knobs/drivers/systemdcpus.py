"""CPU sets in systemd's configuration: a drop-in of ours beside each unit's files, sorted last.

Source: systemd.resource-control(5), AllowedCPUs=; systemd-system.conf(5), CPUAffinity=. Both add up over several
assignments, and an empty one drops what came before: our file begins with an empty one.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from tunectl.bootloader.otherreaders import manager_cpus
from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.fix import REBOOT, Fix
from tunectl.host.cpusets import read_cpu_list
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import patterns_of, united
from tunectl.host.systemdunit import Said, in_force, read_unit
from tunectl.knobs.drivers.bootline import boot_lines, place_of, removal_fix
from tunectl.knobs.drivers.cpuset import lack_of
from tunectl.knobs.row import Batch, Knob, Step, View, if_readable, missing
from tunectl.model import Reading, State

_SYSTEM = "etc/systemd/system"
_HEADER = "# Written by `tunectl apply`; `tunectl restore` removes it.\n"
_GROUPS = "sys/fs/cgroup"
# A unit that runs one program is given its CPUs along with the slice beside it: nothing else can be started there.
_BESIDE = {"init.scope": "system.slice"}
KEPT = ("init.scope", "system.slice", "user.slice", "machine.slice")  # every process outside our own slice is in one
_AT_ONCE = ("etc/systemd/system.control/", "run/systemd/system.control/")  # what `systemctl set-property` writes


class Place(NamedTuple):
    """One unit (or the manager), and where its CPU set is written and seen."""

    name: str  # init.scope, system.slice, system.conf
    section: str
    key: str
    file: str  # ours
    shows: str = ""  # the cpuset that the kernel made of it; "" where no file shows it
    unit: str = ""  # the text before the section, where the whole unit is ours


def kept(name: str) -> Place:
    """A drop-in beside a unit that holds processes. It does nothing on a host without that unit."""
    shows = f"{_GROUPS}/{name}/cpuset.cpus.effective"
    section = name.rpartition(".")[2].capitalize()
    return Place(name, section, "AllowedCPUs", f"{_SYSTEM}/{name}.d/zz-tunectl.conf", shows)


class Overriding(NamedTuple):
    """systemd.cpu_affinity= on the kernel's line, which counts more than any file: this boot's, and the next one's.

    `next` is None where the next line is not known, or has no such word; `next_known` tells which.
    """

    this: CpuSet | None
    next: CpuSet | None
    next_known: bool
    word: str  # the one that counts: the next line's, or this one's
    place: str
    fix: Fix  # takes it out


class UnitFacts(NamedTuple):
    """What the judge needs beside the configured CPUs."""

    unit: str
    effective: CpuSet | None  # None where the kernel does not show it
    group: bool  # is its control group there? systemd makes it when something starts in the unit
    shows: str
    file: str
    own: CpuSet  # what our file alone says
    said: tuple[Said, ...]  # the lines that count
    later: tuple[Said, ...]  # all that is read after our file, or would be; an empty one drops what ours says
    at_once: tuple[Said, ...]  # every line by which `systemctl set-property` gave the unit CPUs
    word: Overriding | None = None  # what stands on the kernel's line and counts more than any file


class SystemdCpus(NamedTuple):
    """The CPU sets of these places; the value read is the one configured."""

    places: tuple[Place, ...]

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading for each place; where nothing is wanted, only for places that have our file."""
        root = view.root
        if gone := missing(knob.name, view, _SYSTEM):
            yield gone
            return
        lack = lack_of(root) if want is not None and any(place.shows for place in self.places) else ""
        if lack:
            yield Reading(knob.name, "", State.ABSENT, reason=lack)
            return
        for place in self.places:
            if want is None and not root.exists(place.file):
                continue
            with root.noting() as denied:
                facts = _look(root, place)
            facts = facts._replace(word=None if place.shows or place.unit else _overriding(view))
            instance = place.name if len(self.places) > 1 else ""
            yield if_readable(Reading(knob.name, instance, State.READ, united_of(facts.said), facts=facts), denied)

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """One file a place, and systemd is told once."""
        for knob, change in batch:
            assert isinstance(knob.driver, SystemdCpus)
            place = next(place for place in knob.driver.places if change.instance in ("", place.name))
            told = ("reload-systemd", "start-in-slices") if place.shows else ("reload-systemd",)
            if change.value is None:
                yield Step("removal", place.file, "", (change,), commands=told)
                continue
            check = partial(_read_back, place=place, want=change.value)
            yield Step("file", place.file, render(place, change.value), (change,), commands=told, read_back=check)

    def stands(self, root: Sysroot) -> bool:
        """Is a file of ours there?"""
        return any(root.get_text(place.file).startswith(_HEADER) for place in self.places)

    def describe(self) -> tuple[str, ...]:
        """Our files, and where their effect shows."""
        return tuple("/" + path for place in self.places for path in (place.file, place.shows) if path)

    def reads(self) -> tuple[str, ...]:
        """Every file that configures the units, and where the effect shows."""
        shown = tuple(place.shows for place in self.places if place.shows)
        groups = tuple(_marker(place.name) for place in self.places if place.shows)
        offered = (f"{_GROUPS}/cgroup.controllers",) if shown else ("proc/cmdline",)
        return (*(path for place in self.places for path in patterns_of(place.name)), *shown, *groups, *offered)


def render(place: Place, cpus: CpuSet) -> str:
    """Our file: the CPUs, whatever other files said before."""
    key = place.key
    return f"{_HEADER}{place.unit}[{place.section}]\n{key}=\n{key}={format_cpulist(cpus)}\n"


def unsettled_slices(root: Sysroot) -> list[str]:
    """The slices that have other CPUs than their files say: systemd gives them theirs when something starts there.

    One without a control group has no process, and gets its CPUs along with the first. Never raises.
    """
    found: dict[str, None] = {}
    for name in KEPT:
        group = f"{_GROUPS}/{name}"
        if root.exists(_marker(name)) and read_cpu_list(root, f"{group}/cpuset.cpus") != united_of(
            _every(root, kept(name))
        ):
            found[_BESIDE.get(name, name)] = None
    return list(found)


def _marker(name: str) -> str:
    """A file that every control group has."""
    return f"{_GROUPS}/{name}/cgroup.controllers"


def united_of(said: Iterable[Said]) -> CpuSet:
    """The CPUs that these lines give together."""
    return united(one.value for one in said)


def _every(root: Sysroot, place: Place) -> list[Said]:
    return [one for one in read_unit(root, place.name) if (one.section, one.key) == (place.section, place.key)]


def _look(root: Sysroot, place: Place) -> UnitFacts:
    every = _every(root, place)
    # Drop-ins are read by name, after the unit's own file; of two of one name systemd reads one.
    later = [line for line in every if line.file != place.file and ".d/" in line.file]
    if not place.unit:  # ours is no unit's own file
        ours = place.file.rpartition("/")[2]
        later = [line for line in later if line.file.rpartition("/")[2] >= ours]
    return UnitFacts(
        place.name,
        read_cpu_list(root, place.shows) if place.shows and root.exists(place.shows) else None,
        bool(place.shows) and root.exists(_marker(place.name)),
        place.shows,
        place.file,
        united_of(line for line in every if line.file == place.file),
        tuple(in_force(every, place.section, place.key)),
        tuple(later),
        tuple(line for line in every if line.file.startswith(_AT_ONCE)),
    )


def _overriding(view: View) -> Overriding | None:
    """What the two lines say of the manager's CPUs; None where neither says anything. Absent CPUs count for nothing."""
    lines = boot_lines(view)
    this, after = manager_cpus(lines.this), manager_cpus(lines.next or ())
    counts = after or this
    if counts is None:
        return None
    word, place = str(counts[0]), place_of(view, str(counts[0])) if after else ""
    fix = removal_fix(view, word, reboot=this is not None) if after or lines.next is None else REBOOT
    present = view.scope.present
    return Overriding(
        this and this[1] & present, after and after[1] & present, lines.next is not None, word, place, fix
    )


def _read_back(root: Sysroot, place: Place, want: CpuSet) -> str | None:
    """What is wrong with the written configuration: a file that sorts after ours adds CPUs or replaces them."""
    every = _every(root, place)
    stands = united_of(every)
    if stands == want:
        return None
    last = f", because {every[-1]} is read last" if every and every[-1].file != place.file else ""
    return f"{place.key}= of {place.name} is {format_cpulist(stands) or 'empty'}{last}"
