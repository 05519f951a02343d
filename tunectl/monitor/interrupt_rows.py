"""Where the columns of /proc/interrupts lie, by bytes. Pure.

kernel/irq/proc.c and arch/x86/kernel/irq.c print each count in a field of constant width after the label's colon, so
the columns of the isolated CPUs are slices. What does not fit that is split and counted, row by row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_CPU = re.compile(rb"CPU(\d+)")
_WIDTH = 11  # a space and ten digits: an unsigned int, in every kernel that is still kept


class Row:
    """One line. `cells` is where its first count begins; -1 where the counts are not in fields of one width."""

    __slots__ = ("cells", "label", "tag")

    def __init__(self, line: bytes, cpus: int) -> None:
        colon = line.find(b":", 0, 40)
        self.tag = line[: colon + 1]  # of a line that is no row, ""
        self.label = self.tag[:-1].decode("ascii", "backslashreplace").strip()
        fits = colon > 0 and _fits(line[colon + 1 : colon + 2 + _WIDTH * cpus].rstrip(b"\n"), cpus)
        self.cells = colon + 1 if fits else -1


class Layout(NamedTuple):
    """One shape of the file: its rows, the CPUs of its columns, and which of them are the isolated CPUs'."""

    rows: list[Row]
    cpus: tuple[int, ...]
    wanted: tuple[int, ...]  # the isolated CPUs that have a column
    columns: tuple[int, ...]  # theirs
    slices: tuple[tuple[int, int], ...]  # the same, from a row's `cells`


def lay_out(header: bytes, lines: Sequence[bytes], isolated: frozenset[int]) -> Layout:
    """The shape of a table."""
    cpus = tuple(int(number) for number in _CPU.findall(header))
    columns = tuple(index for index, cpu in enumerate(cpus) if cpu in isolated)
    rows = [Row(line, len(cpus)) for line in lines]
    return Layout(rows, cpus, tuple(cpus[index] for index in columns), columns, _slices(columns))


def _fits(cells: bytes, count: int) -> bool:
    """Is every field `_WIDTH` wide, right-aligned behind a space, and is there a space or nothing after the last?"""
    whole = len(cells) >= _WIDTH * count > 0
    last = cells[_WIDTH - 1 : _WIDTH * count : _WIDTH]
    return whole and not cells[::_WIDTH].strip(b" ") and last.isdigit() and len(last) == count


def _slices(columns: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Columns that stand side by side are one slice."""
    found: list[list[int]] = []
    for column in columns:
        if found and found[-1][1] == column * _WIDTH:
            found[-1][1] += _WIDTH
        else:
            found.append([column * _WIDTH, (column + 1) * _WIDTH])
    return tuple((first, last) for first, last in found)


def counts_of(line: bytes, row: Row, layout: Layout) -> tuple[int, ...]:
    """A row's count for each of the layout's CPUs; fewer where it has fewer (ERR, MIS)."""
    if row.cells >= 0:
        return tuple(map(int, line[row.cells : row.cells + _WIDTH * len(layout.cpus)].split()))
    fields = line[len(row.tag) :].split(None, len(layout.cpus))[: len(layout.cpus)]
    whole = next((n for n, field in enumerate(fields) if not field.isdigit()), len(fields))
    return tuple(map(int, fields[:whole]))


def isolated_counts(line: bytes, row: Row, layout: Layout) -> tuple[int, ...]:
    """The counts of `wanted`, as far as the row has them."""
    if row.cells >= 0:
        cells = [line[row.cells + first : row.cells + last] for first, last in layout.slices]
        return tuple(map(int, b"".join(cells).split()))
    counts = counts_of(line, row, layout)
    return tuple(counts[column] for column in layout.columns if column < len(counts))


def came(line: bytes, row: Row, layout: Layout) -> bool:
    """Did it ever come to an isolated CPU?"""
    if row.cells < 0:
        return any(isolated_counts(line, row, layout))
    return any(line[row.cells + first : row.cells + last].strip(b" 0") for first, last in layout.slices)


def differ(one: bytes, other: bytes, row: Row, layout: Layout) -> bool:
    """Do the isolated CPUs' columns of two readings differ?"""
    if row.cells < 0:
        return isolated_counts(one, row, layout) != isolated_counts(other, row, layout)
    base = row.cells
    for first, last in layout.slices:  # noqa: SIM110 - for every changed line; a generator costs more than it saves
        if one[base + first : base + last] != other[base + first : base + last]:
            return True
    return False


def description_of(line: bytes, row: Row, layout: Layout) -> str:
    """What stands behind the counts: `IO-APIC    9-fasteoi   acpi`, `Rescheduling interrupts`."""
    rest = line[len(row.tag) :].decode("utf-8", "backslashreplace").split(None, len(layout.cpus))
    return rest[len(layout.cpus)].strip() if len(rest) > len(layout.cpus) else ""


def name_of(line: bytes, row: Row, layout: Layout) -> str:
    """What is bound to the interrupt: the words after chip and trigger, `40-edge  eth0-rx-0`."""
    words = description_of(line, row, layout).split("  ")
    return words[-1].strip() if len(words) > 1 else words[0].rpartition(" ")[2]
