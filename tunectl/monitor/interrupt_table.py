"""/proc/interrupts, again in every snapshot, at little cost.

On a large host it is megabytes of text, of which little is needed and less has changed. It is read in pieces that fit
into the CPU's cache, and each piece is compared with what it was. Where a line changed, the columns of the isolated
CPUs are compared; only columns that changed are parsed as numbers.

kernel/irq/proc.c and arch/x86/kernel/irq.c print each count in a field of constant width after the label's colon, so
the columns of the isolated CPUs are slices of the line. Header, descriptions and rows that do not fit this are split by
host/interrupts.py, whose own reader takes every number of every row: too much to do each second.
"""

import io
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from tunectl.cpulist import CpuSet
from tunectl.durable import read_up_to
from tunectl.host.interrupts import PRIVATE, TIMERS, last_words, parse_columns, split_row
from tunectl.host.sysroot import LARGEST, Sysroot

_WIDTH = 11  # a space and ten digits: an unsigned int, in every kernel that is still kept


class Row:
    """One line. `cells` is where its first count begins; -1 where the counts are not in fields of one width."""

    __slots__ = ("cells", "label", "tag")

    def __init__(self, line: bytes, cpus: int) -> None:
        colon = line.find(b":", 0, 40)
        self.tag = line[: colon + 1]  # of a line that is no row, ""
        self.label = self.tag[:-1].decode("ascii", "backslashreplace").strip()
        cells = line[colon + 1 : colon + 2 + _WIDTH * cpus].rstrip(b"\n")
        last = cells[_WIDTH - 1 : _WIDTH * cpus : _WIDTH]
        # Is every field `_WIDTH` wide, right-aligned behind a space, and is there a space or nothing after the last?
        fits = len(cells) >= _WIDTH * cpus > 0 and not cells[::_WIDTH].strip(b" ") and last.isdigit()
        self.cells = colon + 1 if colon > 0 and fits and len(last) == cpus else -1


class Layout(NamedTuple):
    """One shape of the file: its rows, the CPUs of its columns, and which of them are the isolated CPUs'."""

    rows: list[Row]
    cpus: tuple[int, ...]
    wanted: tuple[int, ...]  # the isolated CPUs that have a column
    columns: tuple[int, ...]  # theirs
    slices: tuple[tuple[int, int], ...]  # the same, from a row's `cells`


def lay_out(header: bytes, lines: Sequence[bytes], isolated: frozenset[int]) -> Layout:
    """The shape of a table."""
    cpus = parse_columns(header.decode("ascii", "replace"))
    columns = tuple(index for index, cpu in enumerate(cpus) if cpu in isolated)
    rows = [Row(line, len(cpus)) for line in lines]
    return Layout(rows, cpus, tuple(cpus[index] for index in columns), columns, _slices(columns))


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
    return tuple(map(int, _split(line, row, layout)[0]))


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
    return _split(line, row, layout)[1]


def _split(line: bytes, row: Row, layout: Layout) -> tuple[list[str], str]:
    return split_row(line[len(row.tag) :].decode("utf-8", "backslashreplace"), len(layout.cpus))


PATH = "proc/interrupts"
_PIECE = 1 << 17
_BLOCK = 4  # lines that are compared at once
TIMER, CALLS, RESCHEDULES, THERMAL = "LOC", "CAL", "RES", "TRM"
# The same by name, for ARM numbers its IPIs (arch/arm64/kernel/smp.c) and has a device interrupt for its timer.
_NAMED = {"Rescheduling interrupts": RESCHEDULES, "Function call interrupts": CALLS, **dict.fromkeys(TIMERS, TIMER)}
_PRIVATE = re.compile(PRIVATE.encode())
_TIMERS = tuple(name.encode() for name in TIMERS)
_LOCAL = frozenset({TIMER, CALLS, RESCHEDULES, THERMAL})


class Landed(NamedTuple):
    """A device interrupt that came to isolated CPUs since boot."""

    counts: Mapping[int, int]  # by CPU, where it ever came
    name: str


class Changed(NamedTuple):
    """A line that differs: its row's number, or one below 0 for the header; what it is and what it was."""

    row: int
    line: bytes
    before: bytes


class InterruptTable:
    """The last reading, at a time by `now`, in seconds. `error` says why there is none."""

    def __init__(self, root: Sysroot, isolated: CpuSet, now: Callable[[], float] = time.monotonic) -> None:
        self.error = "not read yet"
        self.at = 0.0  # now(), at the end of the reading: the per-CPU rows are the last
        self.cost_s = 0.0  # CPU time of one reading
        self.landed: dict[int, Landed] = {}
        self.landings = 0  # how often `landed` has changed
        self.shapes = 0  # how often the rows or columns have become others
        self._root = root
        self._isolated = isolated
        self._now = now
        self._file: io.FileIO | None = None
        self._piece = bytearray(_PIECE)
        self._blocks: list[bytes] = []  # of a few lines each, the header first and alone
        self._lengths: list[tuple[int, ...]] = []  # of each block's lines
        self._layout: Layout = lay_out(b"", (), isolated)
        self._local: dict[int, str] = {}  # the row's number: LOC, CAL, RES or TRM
        self._counts: dict[str, tuple[int, ...]] = {}

    def on(self, name: str) -> Mapping[int, int]:
        """{CPU: count} of LOC, CAL, RES or TRM; empty where this host has no such row."""
        return dict(zip(self._layout.cpus, self._counts.get(name, ()), strict=False))

    def row(self, name: str) -> tuple[int, ...]:
        """The counts alone, in the order of `cpus`: the same object as long as none has changed."""
        return self._counts.get(name, ())

    @property
    def cpus(self) -> tuple[int, ...]:
        """The CPUs that have a column."""
        return self._layout.cpus

    def read(self) -> None:
        """Reads it again. Never raises."""
        start = time.thread_time()
        try:
            changed = self._compare()
            self.cost_s = time.thread_time() - start
            if changed is None:
                self._learn()
            else:
                self._update(changed)
            self.error = "" if self._layout.rows else f"/{PATH} is empty"
        except (OSError, ValueError) as error:
            self.error = f"/{PATH}: {getattr(error, 'strerror', None) or error}"
            self._let_go()
        self.at = self._now()

    def _compare(self) -> list[Changed] | None:
        """Takes over what has changed, and returns it, line by line.

        None where the table has another shape than before: a CPU or an interrupt came or went.
        """
        file = self._rewound()
        piece, blocks = self._piece, self._blocks
        changed: list[Changed] = []
        number, kept = 0, 0  # the next block; how much of it the piece already holds
        while filled := _fill(file, piece, kept):
            at = 0
            filled += kept
            for block in islice(blocks, number, None):
                end = at + len(block)
                if end > filled:
                    break
                if not piece.startswith(block, at):
                    new = blocks[number] = bytes(piece[at:end])
                    changed += self._differing(number, block, new)
                at = end
                number += 1
            kept = filled - at
            if kept == len(piece) or number == len(blocks):
                break
            piece[:kept] = piece[at:filled]
        # Each row is still the one it was? An interrupt may be freed, and another with a line of the same length come.
        rows, is_whole = self._layout.rows, number == len(blocks) and not kept and not _fill(file, piece, 0)
        is_same = all(row >= 0 and line.endswith(b"\n") and line.startswith(rows[row].tag) for row, line, _ in changed)
        return changed if is_whole and is_same else None

    def _differing(self, number: int, before: bytes, now: bytes) -> Iterator[Changed]:
        """The lines of a block that are others than they were."""
        at, row = 0, _BLOCK * (number - 1)
        for length in self._lengths[number]:
            end = at + length
            if now[at:end] != before[at:end]:
                yield Changed(row, now[at:end], before[at:end])
            at = end
            row += 1

    def _rewound(self) -> io.FileIO:
        if self._file and not self._root.live and not os.fstat(self._file.fileno()).st_nlink:
            self._let_go()  # a recorded host's was replaced
        self._file = self._file or io.FileIO(self._root.open(PATH))
        self._file.seek(0)
        return self._file

    def _let_go(self) -> None:
        if self._file:
            self._file.close()
        self._file = None

    def _learn(self) -> None:
        """The table in its new shape. The counts are all in it: nothing is lost."""
        lines = read_up_to(self._rewound().fileno(), LARGEST).split(b"\n")
        last = lines.pop()
        header, *lines = [line + b"\n" for line in lines] + ([last] if last else []) or [b""]
        self._layout = layout = lay_out(header, lines, self._isolated)
        self.shapes += bool(self._blocks[0:1] != [b""] or header)  # one that stays empty is no news
        groups = [[header], *(lines[first : first + _BLOCK] for first in range(0, len(lines), _BLOCK))]
        self._blocks = [b"".join(group) for group in groups]
        self._lengths = [tuple(map(len, group)) for group in groups]
        self.landings += 1
        before, self.landed = self.landed, {}
        self._local, self._counts = {}, {}
        for number, (line, row) in enumerate(zip(lines, layout.rows, strict=True)):
            if name := self._local_name(line, row):
                self._local[number] = name
                self._counts[name] = counts_of(line, row, layout)
            elif row.label.isdigit() and came(line, row, layout):
                self._land(line, row, before.get(int(row.label)))

    def _local_name(self, line: bytes, row: Row) -> str:
        """LOC, CAL, RES or TRM, or "". Only rows that may be ARM's are named for it: there are thousands."""
        if row.label in _LOCAL:
            return row.label
        if row.label.startswith("IPI"):
            return _NAMED.get(description_of(line, row, self._layout), "")
        if row.label.isdigit() and any(name in line for name in _TIMERS):
            return _NAMED.get(last_words(description_of(line, row, self._layout)), "")
        return ""

    def _update(self, changed: list[Changed]) -> None:
        layout = self._layout
        for number, line, before in changed:
            row = layout.rows[number]
            if name := self._local.get(number):
                self._counts[name] = counts_of(line, row, layout)
            elif row.label.isdigit() and differ(line, before, row, layout):
                self._land(line, row, self.landed.get(int(row.label)))

    def _land(self, line: bytes, row: Row, known: Landed | None) -> None:
        if _PRIVATE.search(line):
            return
        layout, came_to = self._layout, known.counts if known else ()
        counts = zip(layout.wanted, isolated_counts(line, row, layout), strict=False)
        self.landings += 1
        # A count that wrapped may stand at 0.
        landed = {cpu: count for cpu, count in counts if count or cpu in came_to}
        self.landed[int(row.label)] = Landed(landed, last_words(description_of(line, row, layout)))


def _fill(file: io.FileIO, piece: bytearray, start: int) -> int:
    """Fills the piece from `start`, or reads to the end: procfs gives no more than a few lines at a time."""
    filled = start
    with memoryview(piece) as view:
        while filled < len(piece) and (more := file.readinto(view[filled:])):
            filled += more
    return filled - start
