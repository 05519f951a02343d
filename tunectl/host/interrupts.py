"""Interrupts: how often each came to each CPU (/proc/interrupts), and where the host may be told to send it.

Built for hundreds of CPUs and thousands of rows. The table has a column for each *online* CPU: the header says which,
and a column's place is never its CPU's number (fs/proc/interrupts.c, kernel/irq/proc.c).
"""

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import compress
from types import MappingProxyType
from typing import NamedTuple

from tunectl.cpulist import CpuSet
from tunectl.host.counters import rise
from tunectl.host.cpusets import read_cpu_list, shown_cpus
from tunectl.host.folder import open_folder
from tunectl.host.sysroot import Sysroot

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

    def column(self, cpu: int) -> dict[str, int]:
        """The count of each row that is kept by CPU, by label; empty where this CPU has no column."""
        if cpu not in self.cpus:
            return {}
        index, columns = self.cpus.index(cpu), len(self.cpus)
        return {label: row.counts[index] for label, row in self.rows.items() if len(row.counts) == columns}


def arrivals(before: Interrupts, after: Interrupts, cpu: int) -> dict[str, int]:
    """How often each row came to a CPU between two readings, by label, those that did.

    Nothing is known of a CPU that was off in one of them. A row that is new or began anew is of an interrupt that was
    requested meanwhile: all that it counts came since.
    """
    if cpu not in before.cpus:
        return {}
    earlier = before.column(cpu)
    counts = {label: rise(earlier.get(label, 0), now) for label, now in after.column(cpu).items()}
    return {
        label: came for label, count in counts.items() if (came := after.on(label, cpu) if count is None else count)
    }


def parse_interrupts(
    text: str, *, rows: Collection[str] | None = None, cpus: Collection[int] | None = None
) -> Interrupts:
    """The table; with `rows` only these labels, with `cpus` only these columns. A line that is no row is skipped."""
    # Not splitlines(): a device may have put \x0b or \x85 into its name.
    header, *lines = text.split("\n")
    columns = parse_columns(header)
    wanted = None if cpus is None else [index for index, cpu in enumerate(columns) if cpu in cpus]
    found: dict[str, Row] = {}
    for line in lines:
        label, colon, rest = line.partition(":")
        label = label.strip()
        if not colon or not label or (rows is not None and label not in rows):
            continue
        counts, description = split_row(rest, len(columns))
        if wanted is not None and len(counts) == len(columns):
            numbers = [int(counts[index]) for index in wanted]
        else:
            # Nearly all of a large table are zeros, and int() takes longer than all the rest.
            numbers = [0 if text == "0" else int(text) for text in counts]
        found[label] = Row(tuple(numbers), description)
    kept = columns if wanted is None else (columns[index] for index in wanted)
    return Interrupts(tuple(kept), found)


def parse_columns(header: str) -> tuple[int, ...]:
    """The CPUs that have a column, in the file's order. Pure."""
    return tuple(int(number) for number in _CPU_COLUMN.findall(header))


def split_row(rest: str, columns: int) -> tuple[list[str], str]:
    """What follows a row's colon: its counts as text, at most one for each column, and its description. Pure."""
    fields = rest.split(None, columns)
    counts = columns
    # int() takes more than the kernel prints, but whole rows at once: only odd ones go field by field.
    if len(fields) < columns or not "".join(fields[:columns]).isdecimal():
        counts = next((n for n, text in enumerate(fields[:columns]) if not text.isdecimal()), min(len(fields), columns))
        fields = rest.split(None, counts)
    return fields[:counts], fields[counts].strip() if len(fields) > counts else ""


def last_words(description: str) -> str:
    """What is bound to an interrupt, of a row's description: `IO-APIC    9-fasteoi   acpi`. Pure."""
    words = description.split("  ")  # chip, hwirq and actions stand apart by two spaces or more
    return words[-1].strip() if len(words) > 1 else description.rpartition(" ")[2]


REALTIME, VERSION = "sys/kernel/realtime", "proc/version"


class Irq(NamedTuple):
    """One interrupt line. `counts`: how often it came on each CPU since boot, zeros left out."""

    irq: int
    name: str  # the actions bound to it; "" where nothing is
    chip: str
    affinity: CpuSet  # where it may go
    effective: CpuSet  # where it goes; empty before it is started, or on kernels before 4.14
    settable: bool | None  # None: this kernel does not say (before 6.12)
    node: int | None = None
    counts: Mapping[int, int] = MappingProxyType({})

    @property
    def managed(self) -> str:
        """yes | no | unknown: does the kernel alone decide where it goes?"""
        return {True: "no", False: "yes", None: "unknown"}[self.settable]

    @property
    def where(self) -> CpuSet:
        """Where it is delivered, as well as this kernel tells."""
        return self.effective or self.affinity


def read_delivery(root: Sysroot, irq: int) -> CpuSet:
    """Where an interrupt is delivered, or may be where the kernel does not say; no CPU where there is none such."""
    place = f"proc/irq/{irq}"
    return read_cpu_list(root, f"{place}/effective_affinity_list") or read_cpu_list(root, f"{place}/smp_affinity_list")


def threads_always(root: Sysroot) -> bool:
    """Does this kernel run interrupts in threads whatever its command line says? PREEMPT_RT does, and says what it is.

    /sys/kernel/realtime came with the patches for it, /proc/version names it (init/Makefile, UTS_VERSION).
    """
    return root.get(REALTIME) == "1" or "PREEMPT_RT" in root.get(VERSION).split()


def tells_settable(modes: Iterable[int | None]) -> bool:
    """Do the modes of smp_affinity_list say which interrupts this kernel moves?

    Since 6.12 it shows 0444 for what it refuses to move, some on every host; where no line has that, the mode says
    nothing (kernel/irq/proc.c, register_irq_proc).
    """
    return any(mode is not None and not mode & 0o222 for mode in modes)


def read_irqs(root: Sysroot) -> tuple[Irq, ...]:
    """Every interrupt of /proc/irq in ascending order. Never raises for what a host lacks."""
    table = parse_interrupts(root.get_text("proc/interrupts"))
    with open_folder(root, "proc/irq") as lines, open_folder(root, "sys/kernel/irq") as described:
        names = sorted(filter(str.isdecimal, lines.names), key=int)
        modes = {name: lines.mode(name, "smp_affinity_list") for name in names}
        tells = tells_settable(modes.values())
        irqs = []
        for name in names:
            row, node = table.rows.get(name), lines.get(name, "node")
            irq = Irq(
                int(name),
                # /sys/kernel/irq came with 4.9, and a container may hide it.
                described.get(name, "actions").strip() or (last_words(row.description) if row else ""),
                described.get(name, "chip_name"),
                shown_cpus(lines.get(name, "smp_affinity_list")),
                shown_cpus(lines.get(name, "effective_affinity_list")),
                bool((modes[name] or 0) & 0o222) if tells else None,
                int(node) if node.isdecimal() else None,
                dict(compress(zip(table.cpus, row.counts, strict=False), row.counts)) if row else {},
            )
            irqs.append(irq)
        return tuple(irqs)
