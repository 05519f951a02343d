"""Which of two results hold the same run: a run that is there twice is one observation, and differs from nothing. Pure.

A copy may have other words beside its figures. A run is known by when it began and what it found: on one boot, no
counter of a CPU shows the same reading twice. A table of cases has no such reading: its time and its cases have to do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tunectl.shapes import CaseTable, Jitter

_Found = tuple[tuple[int, ...], ...]


def shared_runs(first: Sequence[Jitter], second: Sequence[Jitter]) -> Iterator[tuple[int, int]]:
    """The places of each run of the one list and the same run in the other."""
    places = defaultdict[_Found, list[int]](list)
    for place, run in enumerate(second):
        places[_found(run)].append(place)
    for place, run in enumerate(first):
        yield from ((place, one) for one in places[_found(run)] if _is_of_one_time(run, second[one]))


def _found(run: Jitter) -> _Found:
    return tuple((cpu.cpu, cpu.tsc_start, cpu.interruptions, cpu.stolen_ns, cpu.max_ns) for cpu in run.cpus)


def _is_of_one_time(one: Jitter, other: Jitter) -> bool:
    """A run inside a preflight has neither a time nor a host of its own."""
    known = ((one.at, other.at), (one.host.boot_id, other.host.boot_id))
    return all(not first or not second or first == second for first, second in known)


def is_same_table(first: CaseTable, second: CaseTable) -> bool:
    """Do both have the cases of one run?"""
    ones = (first.at, first.host.boot_id, first.cases), (second.at, second.host.boot_id, second.cases)
    return ones[0] == ones[1]
