"""The interrupts of the NICs that the host file names, each on one CPU of its own where there are enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tunectl.cpulist import CpuSet, format_cpulist, parse_shown
from tunectl.host.folder import Folder, open_folder
from tunectl.host.nics import read_local_cpus, read_vectors
from tunectl.knobs.drivers.irqaffinity import IrqAffinity
from tunectl.knobs.drivers.nicfile import interfaces
from tunectl.knobs.row import Knob, View
from tunectl.model import Reading, State


def spread(irqs: Sequence[int], cpus: CpuSet, local: CpuSet) -> dict[int, int]:
    """One CPU for each interrupt, in turn; those near the device (`local`) where there is one among `cpus`."""
    order = sorted(cpus & local or cpus)
    return {irq: order[turn % len(order)] for turn, irq in enumerate(irqs)} if order else {}


class QueueIrqs(IrqAffinity):
    """Of /proc/irq/N, those that are vectors of a named interface: written like all others."""

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading an interrupt; `wanted` is the CPU that is to be its own."""
        with open_folder(view.root, "proc/irq") as folder:
            for nic, problem in interfaces(view):
                irqs = () if problem else read_vectors(view.root, nic)
                if not irqs:
                    reason = problem or f"{nic} has no interrupt of its own"
                    yield Reading(knob.name, nic, State.ABSENT, reason=reason)
                if irqs and not want & view.scope.online:
                    reason = f"none of the CPUs {format_cpulist(want)} is online: there is nowhere to place them"
                    yield Reading(knob.name, nic, State.UNREADABLE, reason=reason)
                local = read_local_cpus(view.root, nic) if irqs else frozenset[int]()
                for irq, cpu in spread(irqs, want & view.scope.online, local).items():
                    yield self._pinned(knob, view, folder, str(irq), frozenset({cpu}))

    def _pinned(self, knob: Knob, view: View, folder: Folder, irq: str, own: CpuSet) -> Reading:
        """Delivered there is not enough: while it may go elsewhere, the next change of any mask may move it."""
        reading = self.read(knob, view, folder, irq, own, {})._replace(wanted=own)
        if reading.state is State.READ and reading.facts is None:
            asked = parse_shown(view.root.get(f"proc/irq/{irq}/smp_affinity_list"))
            if asked != own:
                return reading._replace(facts=self.facts(view, irq, asked, reading.value))
        return reading
