"""CPU sets in systemd's configuration: a drop-in of ours beside each unit's files, sorted last.

Source: systemd.resource-control(5), AllowedCPUs=; systemd-system.conf(5), CPUAffinity=. Both add up over several
assignments, and an empty one drops what came before: our file begins with an empty one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.host.cpusets import read_cpu_list
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdconf import assignments, patterns_of, united
from tunectl.knobs.row import Batch, Knob, Step, View, if_readable, missing
from tunectl.model import Reading, State

_SYSTEM = "etc/systemd/system"
_HEADER = "# Written by `tunectl apply`; `tunectl restore` removes it.\n"


class Place(NamedTuple):
    """One unit (or the manager), and where its CPU set is written and seen."""

    name: str  # init.scope, system.slice, system.conf
    section: str
    key: str
    file: str  # ours
    shows: str = ""  # the cpuset that the kernel made of it; "" where no file shows it
    unit: str = ""  # the text before the section, where the whole unit is ours


def dropin(name: str, section: str, key: str = "AllowedCPUs") -> Place:
    """A drop-in beside a unit. It does nothing on a host without that unit."""
    shows = f"sys/fs/cgroup/{name}/cpuset.cpus.effective"
    return Place(name, section, key, f"{_SYSTEM}/{name}.d/zz-tunectl.conf", shows)


class UnitFacts(NamedTuple):
    """What the judge needs beside the configured CPUs."""

    effective: CpuSet | None  # None where the kernel does not show it
    shows: str
    file: str
    last: str  # the file that is read last


class SystemdCpus(NamedTuple):
    """The CPU sets of these places; the value read is the one configured."""

    places: tuple[Place, ...]

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading for each place; where nothing is wanted, only for places that have our file."""
        root = view.root
        if gone := missing(knob.name, view, _SYSTEM):
            yield gone
            return
        for place in self.places:
            if want is None and not root.exists(place.file):
                continue
            with root.noting() as denied:
                assigned = assignments(root, place.name, place.section, place.key)
            effective = read_cpu_list(root, place.shows) if place.shows and root.exists(place.shows) else None
            facts = UnitFacts(effective, place.shows, place.file, assigned[-1].file if assigned else "")
            instance = place.name if len(self.places) > 1 else ""
            found = Reading(knob.name, instance, State.READ, united(assigned), facts=facts)
            yield if_readable(found, denied)

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """One file a place, and systemd is told once."""
        for knob, change in batch:
            assert isinstance(knob.driver, SystemdCpus)
            place = next(one for one in knob.driver.places if change.instance in ("", one.name))
            told = ("reload-systemd",)
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
        return (*(path for place in self.places for path in patterns_of(place.name)), *shown)


def render(place: Place, cpus: CpuSet) -> str:
    """Our file: the CPUs, whatever other files said before."""
    key = place.key
    return f"{_HEADER}{place.unit}[{place.section}]\n{key}=\n{key}={format_cpulist(cpus)}\n"


def _read_back(root: Sysroot, place: Place, want: CpuSet) -> str | None:
    """What is wrong with the written configuration: a file that sorts after ours adds CPUs or replaces them."""
    assigned = assignments(root, place.name, place.section, place.key)
    stands = united(assigned)
    if stands == want:
        return None
    last = f", because /{assigned[-1].file} is read last" if assigned and assigned[-1].file != place.file else ""
    return f"{place.key}= of {place.name} is {format_cpulist(stands) or 'empty'}{last}"
