"""What samples are about: CPUs, cores and packages, by the names of their subjects. Pure."""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from tunectl.cpulist import CpuSet
from tunectl.monitor.model import Sample
from tunectl.monitor.rules.history import History

HOST = "host"  # the subject of CPUs whose package no sample names
_TELLING = ("package_throttles", "sentinel_khz")  # their samples name packages and the CPUs in them


def celsius(millidegrees: float) -> str:
    """95000 -> 95 C"""
    return f"{millidegrees / 1000:g} C"


@lru_cache(maxsize=16384)
def cpu_of(subject: str) -> int | None:
    """cpu12 -> 12, core12 -> 12 (its lowest sibling); None for anything else."""
    for prefix in ("cpu", "core"):
        digits = subject.removeprefix(prefix)
        if digits != subject and digits.isascii() and digits.isdigit():
            return int(digits)
    return None


def members(sample: Sample) -> CpuSet:
    """The CPUs a sample speaks of: those it names, else the one its subject is."""
    cpu = cpu_of(sample.subject)
    return sample.cpus if sample.cpus or cpu is None else frozenset({cpu})


class Packages(NamedTuple):
    """CPU -> package0; and the package of all the CPUs that no sample places."""

    places: Mapping[int, str]
    otherwise: str

    def of(self, cpu: int | None) -> str:
        """The subject that stands for this CPU's package."""
        return self.places.get(cpu, self.otherwise) if cpu is not None else self.otherwise


def packages(history: History) -> Packages:
    """As the samples' subjects and CPUs say, fresh or not: a package does not move."""
    told = (
        (sample.whole or subject, sample.cpus)
        for quantity in _TELLING
        for subject, sample in history.get(quantity).items()
    )
    return _places(tuple(dict.fromkeys(told)))


@lru_cache(maxsize=8)
def _places(told: tuple[tuple[str, CpuSet], ...]) -> Packages:
    known = {subject for subject, _ in told if subject != HOST}
    places = {cpu: subject for subject, cpus in told for cpu in cpus}
    return Packages(places, known.pop() if len(known) == 1 else HOST)
