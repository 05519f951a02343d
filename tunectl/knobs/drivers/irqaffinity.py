"""Each interrupt's affinity: asked for in smp_affinity_list, judged by effective_affinity_list.

Source: kernel/irq/proc.c; Documentation/core-api/irq/irq-affinity.rst.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tunectl.cpulist import CpuSet, parse_shown
from tunectl.errors import UsageError
from tunectl.host.folder import Folder, open_folder
from tunectl.host.sysroot import ABSENT_ERRNOS
from tunectl.knobs.row import Batch, Knob, Step, View
from tunectl.model import Reading, State


class IrqFacts(NamedTuple):
    """What the judge of one interrupt needs: where it may go, where it goes, and who owns it."""

    asked: CpuSet
    effective: CpuSet
    device: str | None  # "" for an interrupt without a driver; None where the host does not say
    settable: bool  # since 6.12 the kernel shows 0444 where it would refuse the write


class IrqAffinity:
    """All of /proc/irq/N."""

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading an interrupt; value: where it is delivered (or, where the kernel does not say, may be)."""
        good: dict[tuple[str, str], CpuSet] = {}  # thousands of interrupts share a few pairs of texts
        with open_folder(view.root, "proc/irq") as folder:
            numbers = sorted(filter(str.isdecimal, folder.names), key=int)
            if not numbers:
                yield Reading(knob.name, "", State.ABSENT, reason="this host has no /proc/irq")
            for number in numbers:
                yield self.read(knob, view, folder, number, want, good)

    def read(
        self, knob: Knob, view: View, folder: Folder, irq: str, want: CpuSet, good: dict[tuple[str, str], CpuSet]
    ) -> Reading:
        """One interrupt; `good` remembers what was found to satisfy `want`."""
        read = folder.read_value
        try:
            shown = read(irq, "smp_affinity_list")
            try:  # absent before 4.14, and empty until the interrupt is first started
                delivered = read(irq, "effective_affinity_list")
            except OSError:
                delivered = ""
            if known := good.get((shown, delivered)):
                return Reading(knob.name, irq, State.READ, known)
            asked, effective = parse_shown(shown), parse_shown(delivered)
        except OSError as error:
            state = State.ABSENT if error.errno in ABSENT_ERRNOS else State.UNREADABLE
            reason = f"/proc/irq/{irq}/smp_affinity_list: {error.strerror}"
            return Reading(knob.name, irq, state, reason=reason, errno=error.errno)
        except UsageError as error:
            return Reading(knob.name, irq, State.UNREADABLE, reason=f"/proc/irq/{irq}: {error}")
        if effective <= want and (not asked.isdisjoint(want) if effective else asked <= want) and (effective or asked):
            good[shown, delivered] = effective or asked
            return Reading(knob.name, irq, State.READ, effective or asked)
        return Reading(knob.name, irq, State.READ, effective or asked, facts=self.facts(view, irq, asked, effective))

    def facts(self, view: View, irq: str, asked: CpuSet, effective: CpuSet) -> IrqFacts:
        """Read only for an interrupt that is not where it should be."""
        path = f"proc/irq/{irq}/smp_affinity_list"
        mode = view.root.mode(path)
        actions = f"sys/kernel/irq/{irq}/actions"
        device = view.root.get(actions) if view.root.exists(actions) else None
        return IrqFacts(asked, effective, device, mode is None or bool(mode & 0o222))

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """One write an interrupt."""
        for knob, change in batch:
            path = f"proc/irq/{change.instance}/smp_affinity_list"
            yield Step("value", path, knob.codec.encode(change.value), (change,), knob.codec, refusable=True)

    def describe(self) -> tuple[str, ...]:
        """What is written, and what is judged."""
        return ("/proc/irq/N/smp_affinity_list", "/proc/irq/N/effective_affinity_list")
