"""Figures of `probe contention`, as its pages write them: tables of the steps, and what was counted. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from tunectl.report.cases import shown
from tunectl.shapes import FEWEST_P99_9, Contention, ContentionCase
from tunectl.wording import nanoseconds, plural

_RANKS = (("50", "P50"), ("99", "P99"), ("99.9", "P99.9"), ("max", "longest"))
_STEPS = (("taking_ns", "Take a buffer"), ("handing_ns", "Hand it over"), ("giving_ns", "Give it back"))
_COUNTS = ("allocations", "sleeps", "preempted", "page faults")
COUNTED = "Counts: sender and receiver"


class Part(NamedTuple):
    """A table: a row for each case, its name first."""

    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]


def contention_conditions(result: Contention) -> list[str]:
    """Under what conditions the cases were measured: sentences."""
    found = []
    for case in result.cases[:1]:
        more = f"; {plural(case.threads - 2, 'more thread')} take and give back" if case.threads > 2 else ""
        found.append(f"buffers of up to {case.bytes:,} bytes, {case.rate:,} a second{more}")
    if any(case.n < FEWEST_P99_9 for case in result.cases if case.n):
        found.append(f"P99.9 needs {FEWEST_P99_9:,} buffers")
    return found


def parts(result: Contention) -> list[Part]:
    """The tables of all cases that were measured, void ones among them."""
    listed = shown(result)
    if not listed:
        return []
    header = ("", *(name for _, name in _RANKS))
    whole = [(case.name, *_ranks({**(case.percentiles_ns or {}), "max": case.max_ns}, case)) for case in listed]
    made = [Part("Due to had", header, whole)]
    for name, title in _STEPS:
        made.append(Part(title, header, [(case.name, *_ranks(getattr(case, name) or {}, case)) for case in listed]))
    counts = []
    for case in listed:
        pairs = [" + ".join(f"{n:,}" for n in pair) for pair in (case.sleeps, case.preemptions, case.page_faults)]
        counts.append((case.name, f"{case.allocations:,}", *pairs))
    return [*made, Part(COUNTED, ("", *_COUNTS), counts)]


def _ranks(spread: Mapping[str, float | None], case: ContentionCase) -> list[str]:
    return [nanoseconds(spread.get(key)) if case.n else "void" for key, _ in _RANKS]
