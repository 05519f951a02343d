"""Interrupts as the host may be told to route them: /proc/irq, /sys/kernel/irq, with counts of /proc/interrupts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tunectl.cpulist import CpuSet
from tunectl.host.cpusets import read_cpu_list
from tunectl.host.interrupts import Interrupts, parse_interrupts
from tunectl.host.sysroot import Sysroot

REALTIME, VERSION = "sys/kernel/realtime", "proc/version"


@dataclass(frozen=True)
class Irq:
    """One interrupt line. `counts`: how often it came on each CPU since boot, zeros left out."""

    irq: int
    name: str  # the actions bound to it; "" where nothing is
    chip: str
    affinity: CpuSet  # where it may go
    effective: CpuSet  # where it goes; empty before it is started, or on kernels before 4.14
    settable: bool | None  # None: this kernel does not say (before 6.12)
    node: int | None = None
    counts: Mapping[int, int] = field(default_factory=dict)

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


def read_irqs(root: Sysroot) -> tuple[Irq, ...]:
    """Every interrupt of /proc/irq in ascending order. Never raises for what a host lacks."""
    numbers = sorted(int(name) for name in root.listdir("proc/irq") if name.isdecimal())
    table = parse_interrupts(root.get_text("proc/interrupts"))
    modes = {number: root.mode(f"proc/irq/{number}/smp_affinity_list") for number in numbers}
    # Since 6.12 the kernel shows 0444 for what it refuses to move; where no line has it, the mode says nothing
    # (kernel/irq/proc.c, register_irq_proc).
    tells = any(mode is not None and not mode & 0o222 for mode in modes.values())
    return tuple(
        _read(root, number, table, bool((modes[number] or 0) & 0o222) if tells else None) for number in numbers
    )


def _read(root: Sysroot, number: int, table: Interrupts, settable: bool | None) -> Irq:
    row = table.rows.get(str(number))
    per_cpu = dict(zip(table.cpus, row.counts, strict=False)) if row else {}
    node = root.get(f"proc/irq/{number}/node")
    return Irq(
        number,
        _name(root, number, row.description if row else ""),
        root.get(f"sys/kernel/irq/{number}/chip_name"),
        read_cpu_list(root, f"proc/irq/{number}/smp_affinity_list"),
        read_cpu_list(root, f"proc/irq/{number}/effective_affinity_list"),
        settable,
        int(node) if node.isdecimal() else None,
        {cpu: count for cpu, count in per_cpu.items() if count},
    )


def _name(root: Sysroot, number: int, description: str) -> str:
    """What is bound to it. /sys/kernel/irq came with 4.9, and a container may hide it: then the table's last words."""
    if actions := root.get(f"sys/kernel/irq/{number}/actions").strip():
        return actions
    words = description.split("  ")  # chip, hwirq and actions stand apart by two spaces or more
    return words[-1].strip() if len(words) > 1 else description.rpartition(" ")[2]
