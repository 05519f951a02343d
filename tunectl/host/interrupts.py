"""/proc/interrupts. Pure; built for hundreds of CPUs and thousands of rows.

It has a column for each *online* CPU: the header says which, and a column's place is never its CPU's number
(fs/proc/interrupts.c, kernel/irq/proc.c).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

# Rows with a number that are no device's, belong to one CPU each and cannot be moved: the GIC's interrupts 16 to 31
# (timer, performance counters), a RISC-V hart's own, and Xen's event channels of a CPU. As /proc/interrupts describes
# them: drivers/irqchip/irq-gic*.c, irq-riscv-intc.c; drivers/xen/events/events_base.c.
PRIVATE = r"GIC\S*\s+(1[6-9]|2\d|3[01])\s|RISC-V INTC|xen-percpu"
# The timer of a CPU among them, by its handler's name.
TIMERS = ("arch_timer", "riscv-timer")
_CPU_COLUMN = re.compile(r"CPU(\d+)")


class Row(NamedTuple):
    """One line: a count for each of `Interrupts.cpus`, or one in all (ERR, MIS), and what follows them."""

    counts: tuple[int, ...]
    description: str


class Interrupts(NamedTuple):
    """`cpus` are the columns kept, in the file's order; `rows` are keyed by label: "24", "LOC", "NET_RX"."""

    cpus: tuple[int, ...]
    rows: dict[str, Row]

    def on(self, label: str, cpu: int) -> int:
        """The count of one row on one CPU; 0 where there is no such row or column."""
        row = self.rows.get(label)
        if row is None or cpu not in self.cpus:
            return 0
        column = self.cpus.index(cpu)
        return row.counts[column] if column < len(row.counts) else 0


def parse_interrupts(
    text: str, *, rows: Collection[str] | None = None, cpus: Collection[int] | None = None
) -> Interrupts:
    """The table; with `rows` only these labels, with `cpus` only these columns. A line that is no row is skipped."""
    # Not splitlines(): a device may have put \x0b or \x85 into its name.
    header, *lines = text.split("\n")
    columns = [int(number) for number in _CPU_COLUMN.findall(header)]
    wanted = None if cpus is None else [index for index, cpu in enumerate(columns) if cpu in cpus]
    found: dict[str, Row] = {}
    for line in lines:
        label, colon, rest = line.partition(":")
        label = label.strip()
        if colon and label and (rows is None or label in rows):
            found[label] = _row(rest, len(columns), wanted)
    kept = columns if wanted is None else [columns[index] for index in wanted]
    return Interrupts(tuple(kept), found)


def _row(rest: str, columns: int, wanted: list[int] | None) -> Row:
    fields = rest.split(None, columns)
    counts = columns
    # int() takes more than the kernel prints, but whole rows at once: only odd ones go field by field.
    if len(fields) < columns or not all(map(str.isdecimal, fields[:columns])):
        counts = next((n for n, text in enumerate(fields[:columns]) if not text.isdecimal()), min(len(fields), columns))
        fields = rest.split(None, counts)
    description = fields[counts].strip() if len(fields) > counts else ""
    if wanted is not None and counts == columns:
        return Row(tuple([int(fields[index]) for index in wanted]), description)
    return Row(tuple(map(int, fields[:counts])), description)
