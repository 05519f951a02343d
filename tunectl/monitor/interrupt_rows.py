"""Where the rows and columns of /proc/interrupts lie, by bytes. Pure.

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
    """One line. `old` is what its isolated columns held when last looked at; `cells` is -1 for an odd row."""

    __slots__ = ("cells", "end", "label", "old", "start", "tag")

    def __init__(self, tag: bytes, start: int, end: int, cells: int) -> None:
        self.tag = tag  # the line before's newline, the label and its colon
        self.label = tag[1:-1].decode("ascii", "backslashreplace").strip()
        self.start = start  # of the line
        self.end = end  # of the line, without its newline
        self.cells = cells  # where the first field begins
        self.old: list[bytes] = []


class Layout(NamedTuple):
    """One shape of the file: the CPUs of its columns, its rows in order, the slices that the isolated CPUs are in."""

    cpus: tuple[int, ...]
    rows: list[Row]
    slices: tuple[tuple[int, int], ...]  # from a row's `cells`
    wanted: tuple[int, ...]  # the isolated CPUs, in the slices' order
    columns: tuple[int, ...]  # theirs, for an odd row


def lay_out(text: bytearray, size: int, isolated: frozenset[int]) -> Layout:
    """The shape of the first `size` bytes."""
    header_end = text.find(b"\n", 0, size)
    header = bytes(text[: max(header_end, 0)])
    cpus = tuple(int(number) for number in _CPU.findall(header))
    columns = tuple(index for index, cpu in enumerate(cpus) if cpu in isolated)
    rows = []
    start = header_end + 1
    while 0 < start < size:
        end = text.find(b"\n", start, size)
        end = size if end < 0 else end
        colon = text.find(b":", start, min(end, start + 40))
        if colon > 0:
            fits = _fits(text[colon + 1 : min(colon + 2 + _WIDTH * len(cpus), end)], len(cpus))
            rows.append(Row(bytes(text[start - 1 : colon + 1]), start, end, colon + 1 if fits else -1))
        start = end + 1
    return Layout(cpus, rows, _slices(columns), tuple(cpus[index] for index in columns), columns)


def _fits(cells: bytearray, count: int) -> bool:
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


def counts_of(text: bytearray, row: Row, layout: Layout) -> tuple[int, ...]:
    """A row's count for each of the layout's CPUs; fewer where it has fewer (ERR, MIS)."""
    if row.cells >= 0:
        return tuple(map(int, text[row.cells : row.cells + _WIDTH * len(layout.cpus)].split()))
    fields = bytes(text[row.start : row.end]).partition(b":")[2].split(None, len(layout.cpus))[: len(layout.cpus)]
    whole = next((n for n, field in enumerate(fields) if not field.isdigit()), len(fields))
    return tuple(map(int, fields[:whole]))


def isolated_cells(text: bytearray, row: Row, layout: Layout) -> list[bytes]:
    """What the isolated columns hold, as bytes that differ where a count does."""
    if row.cells >= 0:
        return [bytes(text[row.cells + first : row.cells + last]) for first, last in layout.slices]
    counts = counts_of(text, row, layout)
    return [b" %d" % counts[column] for column in layout.columns if column < len(counts)]


def counts_in(cells: list[bytes]) -> tuple[int, ...]:
    """The counts of isolated_cells(), in the order of the layout's `wanted`."""
    return tuple(map(int, b" ".join(cells).split()))


def description_of(text: bytearray, row: Row, layout: Layout) -> str:
    """What stands behind the counts: `IO-APIC    9-fasteoi   acpi`, `Rescheduling interrupts`."""
    line = bytes(text[row.start : row.end]).partition(b":")[2].decode("utf-8", "backslashreplace")
    rest = line.split(None, len(layout.cpus))
    return rest[len(layout.cpus)].strip() if len(rest) > len(layout.cpus) else ""


def name_of(text: bytearray, row: Row, layout: Layout) -> str:
    """What is bound to the interrupt: the words after chip and trigger, `40-edge  eth0-rx-0`."""
    words = description_of(text, row, layout).split("  ")
    return words[-1].strip() if len(words) > 1 else words[0].rpartition(" ")[2]
