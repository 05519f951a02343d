"""Which CPU belongs to which package, as far as the samples tell: a package is what a fan cools. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tunectl.monitor.rules.history import History

HOST = "host"  # the subject of CPUs whose package no sample names
_TELLING = ("package_throttles", "sentinel_khz")


class Packages(NamedTuple):
    """CPU -> package0; and the package of all the CPUs that no sample places."""

    places: Mapping[int, str]
    otherwise: str

    def of(self, cpu: int | None) -> str:
        """The subject that stands for this CPU's package."""
        return self.places.get(cpu, self.otherwise) if cpu is not None else self.otherwise


def packages(history: History) -> Packages:
    """As the samples' subjects and CPUs tell, fresh or not: a package does not move."""
    places: dict[int, str] = {}
    known: set[str] = set()
    for quantity in _TELLING:
        for subject, sample in history.get(quantity).items():
            known.add(subject)
            places.update(dict.fromkeys(sample.cpus, subject))
    return Packages(places, known.pop() if len(known) == 1 else HOST)
