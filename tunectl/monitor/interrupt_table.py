"""/proc/interrupts from look to look: megabytes on a large host, of which little is wanted and less has changed.

It is read in pieces that stay in the CPU's cache, each compared with what it was; only rows that lie in a changed
piece are looked at, and of those only the columns of isolated CPUs.
"""

from __future__ import annotations

import io
import os
import time
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import NamedTuple

from tunectl.cpulist import CpuSet
from tunectl.host.sysroot import Sysroot
from tunectl.monitor.interrupt_rows import (
    Layout,
    Row,
    counts_in,
    counts_of,
    description_of,
    isolated_cells,
    lay_out,
    name_of,
)

PATH = "proc/interrupts"
_PIECE = 1 << 17
TIMER, CALLS, RESCHEDULES, THERMAL = "LOC", "CAL", "RES", "TRM"
# The same by name, for ARM numbers its IPIs (arch/arm64/kernel/smp.c) and has a device interrupt for its timer.
_NAMED = {"Rescheduling interrupts": RESCHEDULES, "Function call interrupts": CALLS, "arch_timer": TIMER}
_LOCAL = frozenset({TIMER, CALLS, RESCHEDULES, THERMAL})


class Landed(NamedTuple):
    """A device interrupt that came to isolated CPUs since boot."""

    total: int
    name: str
    cpus: CpuSet  # where it came since it was last looked at; at first, wherever it ever came


class InterruptTable:
    """The last reading. `error` says why there is none."""

    def __init__(self, root: Sysroot, isolated: CpuSet) -> None:
        self.error = "not read yet"
        self.at = 0.0  # time.monotonic(), at the end of the reading: the per-CPU rows are the last
        self.cost_s = 0.0  # CPU time of one reading
        self.landed: dict[int, Landed] = {}
        self.shapes = 0  # how often the rows or columns have become others
        self._root = root
        self._isolated = isolated
        self._file: io.FileIO | None = None
        self._piece = bytearray(_PIECE)
        self._text = bytearray()
        self._size = -1
        self._layout: Layout = lay_out(self._text, 0, isolated)
        self._header = b""
        self._starts: list[int] = []
        self._local: dict[str, Row] = {}
        self._counts: dict[str, tuple[int, ...]] = {}

    def on(self, name: str) -> Mapping[int, int]:
        """{CPU: count} of LOC, CAL, RES or TRM; empty where this host has no such row."""
        return dict(zip(self._layout.cpus, self._counts.get(name, ()), strict=False))

    def read(self) -> None:
        """Reads it anew. Never raises."""
        start = time.thread_time()
        try:
            changed, size = self._compare()
            self.cost_s = time.thread_time() - start
            self.error = "" if size else f"/{PATH} is empty"
            if size != self._size or not self._still(changed):
                self._size = size
                self._learn()
            else:
                self._update(changed)
        except (OSError, ValueError) as error:
            self.error = f"/{PATH}: {getattr(error, 'strerror', None) or error}"
            self._let_go()
        self.at = time.monotonic()

    def _compare(self) -> tuple[list[tuple[int, int]], int]:
        """Takes over what has changed; returns where that is (from, to), and how long the file is."""
        file = self._file = self._file or self._open()
        if not self._root.live and not os.fstat(file.fileno()).st_nlink:  # a recorded host's was replaced
            self._let_go()
            file = self._file = self._open()
        file.seek(0)
        changed: list[tuple[int, int]] = []
        offset = 0
        while count := _fill(file, self._piece):
            piece = self._piece if count == _PIECE else self._piece[:count]
            with memoryview(self._text)[offset : offset + count] as old:
                same = piece == old
            if not same:
                self._text[offset : offset + count] = piece
                changed.append((offset, offset + count))
            offset += count
        return changed, offset

    def _open(self) -> io.FileIO:
        return io.FileIO(self._root.open(PATH))

    def _let_go(self) -> None:
        if self._file:
            self._file.close()
        self._file = None

    def _learn(self) -> None:
        """The file has another shape than before: a CPU or an interrupt came or went. Nothing is lost by that."""
        self.shapes += 1
        del self._text[self._size :]
        self._layout = layout = lay_out(self._text, self._size, self._isolated)
        before, self.landed = self.landed, {}
        self._starts = [row.start for row in layout.rows]
        self._header = bytes(self._text[: self._starts[0] if self._starts else self._size])
        zeros = [b"          0" * ((last - first) // 11) for first, last in layout.slices]
        self._local, self._counts = {}, {}
        for row in layout.rows:
            row.old = isolated_cells(self._text, row, layout)
            if row.old == zeros:
                row.old = zeros  # one copy for the thousands that never came
            name = self._local_name(row)
            if name:
                self._local[name] = row
                self._counts[name] = counts_of(self._text, row, layout)
            elif row.label.isdigit() and any(cells.strip(b" 0") for cells in row.old):
                self._land(row, frozenset(), before.get(int(row.label)))

    def _local_name(self, row: Row) -> str:
        """LOC, CAL, RES or TRM, or "". Only rows that may be ARM's are named for it: there are thousands."""
        if row.label in _LOCAL:
            return row.label
        if row.label.startswith("IPI"):
            return _NAMED.get(description_of(self._text, row, self._layout), "")
        if row.label.isdigit() and self._text.find(b"arch_timer", row.start, row.end) >= 0:
            return _NAMED.get(name_of(self._text, row, self._layout), "")
        return ""

    def _still(self, changed: list[tuple[int, int]]) -> bool:
        """Are the rows where they were? An interrupt may be freed and another of the same length come."""
        text = self._text
        if not text.startswith(self._header):
            return False
        return all(text.startswith(row.tag, row.start - 1) for row in self._touched(changed))

    def _touched(self, changed: list[tuple[int, int]]) -> list[Row]:
        """The rows that lie, in part, in one of these places."""
        found: list[Row] = []
        last = 0
        for first, end in changed:
            begin = max(bisect_right(self._starts, first) - 1, last)
            last = bisect_left(self._starts, end)
            found += self._layout.rows[begin:last]
        return found

    def _update(self, changed: list[tuple[int, int]]) -> None:
        text, layout = self._text, self._layout
        slices = layout.slices
        local = {id(row): name for name, row in self._local.items()}
        for row in self._touched(changed):
            if name := local.get(id(row)):
                self._counts[name] = counts_of(text, row, layout)
            elif row.cells >= 0:
                base = row.cells
                for (first, last), old in zip(slices, row.old, strict=False):
                    if text[base + first : base + last] != old:
                        self._moved(row)
                        break
            elif isolated_cells(text, row, layout) != row.old:
                self._moved(row)

    def _moved(self, row: Row) -> None:
        before, row.old = row.old, isolated_cells(self._text, row, self._layout)
        if row.label.isdigit():
            old, new = counts_in(before), counts_in(row.old)
            where = frozenset(cpu for cpu, now, then in zip(self._layout.wanted, new, old, strict=False) if now != then)
            self._land(row, where, None)

    def _land(self, row: Row, where: CpuSet, before: Landed | None) -> None:
        counts = counts_in(row.old)
        if before and before.total == sum(counts):
            where = before.cpus
        cpus = where or frozenset(cpu for cpu, count in zip(self._layout.wanted, counts, strict=False) if count)
        self.landed[int(row.label)] = Landed(sum(counts), name_of(self._text, row, self._layout), cpus)


def _fill(file: io.FileIO, piece: bytearray) -> int:
    """Fills the piece, or reads to the end: procfs gives no more than a few rows at a time."""
    filled = file.readinto(piece) or 0
    if filled in (0, len(piece)):
        return filled
    with memoryview(piece) as view:
        while filled < len(piece) and (more := file.readinto(view[filled:])):
            filled += more
    return filled
