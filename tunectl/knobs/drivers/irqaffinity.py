"""Each interrupt's affinity: asked for in smp_affinity_list, judged by effective_affinity_list.

IrqAffinity is all of them, QueueIrqs those of the NICs that the host file names, each on one CPU of its own where there
are enough.

One that nobody has requested cannot fire. What its mask shows is that of the boot: request_irq() puts an interrupt for
which nobody has chosen CPUs on the default mask of that moment. Some refuse every write, such as the cascade of the two
PICs, interrupt 2.
Source: kernel/irq/proc.c; kernel/irq/manage.c, irq_setup_affinity(); arch/x86/kernel/i8259.c (i8259A_chip has no
irq_set_affinity); Documentation/core-api/irq/irq-affinity.rst.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from tunectl.command import as_data
from tunectl.cpulist import CpuSet, format_cpulist, parse_shown
from tunectl.errors import UsageError
from tunectl.host.folder import Folder, open_folder
from tunectl.host.interrupts import tells_settable
from tunectl.host.nics import read_local_cpus, read_vectors
from tunectl.host.sysroot import ABSENT_ERRNOS, Sysroot
from tunectl.knobs.drivers.nicfile import absent, interfaces
from tunectl.knobs.row import Batch, Knob, Step, View, missing
from tunectl.model import Reading, State


class IrqFacts(NamedTuple):
    """What the judge of one interrupt needs: where it may be delivered, where it is, and its driver."""

    asked: CpuSet
    effective: CpuSet
    device: str | None  # "" for an interrupt without a driver; None where the host does not say
    settable: bool | None  # None: this kernel does not say (before 6.12)
    unused: bool = False  # nobody has requested it, and nobody has chosen CPUs for it


@dataclass(frozen=True)
class _Open:
    """Thousands of interrupts, read below two directories that are held open."""

    lines: Folder  # /proc/irq: where each may go
    described: Folder  # /sys/kernel/irq: what is bound to it

    @cached_property
    def tells(self) -> bool:
        """Does this kernel say which it would move? A walk over all, where one is astray."""
        return tells_settable(self.lines.mode(irq, "smp_affinity_list") for irq in self.lines.names if irq.isdecimal())


@contextmanager
def _open_irqs(root: Sysroot) -> Iterator[_Open]:
    with open_folder(root, "proc/irq") as lines, open_folder(root, "sys/kernel/irq") as described:
        yield _Open(lines, described)


class IrqAffinity:
    """All of /proc/irq/N."""

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading an interrupt; value: where it is delivered (or, where the kernel does not say, may be)."""
        good: dict[tuple[str, str], CpuSet] = {}  # thousands of interrupts share a few pairs of texts
        with _open_irqs(view.root) as irqs:
            numbers = sorted(filter(str.isdecimal, irqs.lines.names), key=int)
            if gone := missing(knob.name, view, "proc/irq"):
                yield gone
            elif irqs.lines.problem:
                yield _unlisted(knob, "", irqs.lines.problem)
            elif not numbers:
                yield Reading(knob.name, "", State.ABSENT, reason="/proc/irq lists no interrupt")
            for number in numbers:
                yield self.read(knob, view, irqs, number, want, good)

    def read(
        self, knob: Knob, view: View, irqs: _Open, irq: str, want: CpuSet, good: dict[tuple[str, str], CpuSet]
    ) -> Reading:
        """One interrupt; `good` remembers what was found to satisfy `want`."""
        read = irqs.lines.read_value
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
        value = effective or asked
        if value <= want and asked <= want and value:
            good[shown, delivered] = value
            return Reading(knob.name, irq, State.READ, value)
        facts = self.facts(view, irqs, irq, asked, effective)
        # Where it is now is right, and the mask lets it go elsewhere.
        lax = value <= want and not asked.isdisjoint(want)
        return Reading(knob.name, irq, State.READ, asked if lax else value, facts=facts)

    def facts(self, view: View, irqs: _Open, irq: str, asked: CpuSet, effective: CpuSet) -> IrqFacts:
        """Read only for an interrupt that is not where it should be."""
        mode, device = irqs.lines.mode(irq, "smp_affinity_list"), None
        with suppress(OSError):
            device = irqs.described.read_value(irq, "actions")
        settable = bool((mode or 0) & 0o222) if irqs.tells else None
        unused = settable is not False and device == "" and asked >= view.scope.online
        return IrqFacts(asked, effective, device, settable, unused)

    def steps(self, view: View, batch: Batch) -> Iterator[Step]:
        """One write an interrupt."""
        for knob, change in batch:
            path = f"proc/irq/{change.instance}/smp_affinity_list"
            yield Step("value", path, knob.codec.encode(change.value), (change,), knob.codec, refusable=True)

    def describe(self) -> tuple[str, ...]:
        """What is written, and what is judged."""
        return ("/proc/irq/N/smp_affinity_list", "/proc/irq/N/effective_affinity_list")

    def reads(self) -> tuple[str, ...]:
        """Where each may be delivered, where it is, and which driver it belongs to."""
        directory = "proc/irq/[0-9]*"
        lists = (f"{directory}/smp_affinity_list", f"{directory}/effective_affinity_list")
        return (*lists, "sys/kernel/irq/[0-9]*/actions")


def spread(irqs: Sequence[int], cpus: CpuSet, local: CpuSet) -> dict[int, int]:
    """One CPU for each interrupt, in turn; those near the device (`local`) where there is one among `cpus`."""
    order = sorted(cpus & local or cpus)
    return {irq: order[turn % len(order)] for turn, irq in enumerate(irqs)} if order else {}


def _unlisted(knob: Knob, instance: str, error: OSError) -> Reading:
    return Reading(knob.name, instance, State.UNREADABLE, reason=f"/proc/irq: {error.strerror}", errno=error.errno)


class QueueIrqs(IrqAffinity):
    """Of /proc/irq/N, those that are vectors of a named interface: written like all others."""

    def observe(self, knob: Knob, view: View, want: Any) -> Iterator[Reading]:
        """One reading an interrupt; `wanted` is the CPU that is to be its own."""
        with _open_irqs(view.root) as irqs:
            for nic, problem in interfaces(view):
                if irqs.lines.problem:
                    yield _unlisted(knob, nic, irqs.lines.problem)
                    continue
                vectors = () if problem else read_vectors(view.root, nic)
                if not vectors:
                    reason = problem or f"{as_data(nic)} has no interrupt of its own"
                    yield Reading(knob.name, nic, absent(nic), reason=reason)
                if vectors and not want & view.scope.online:
                    reason = f"none of the CPUs {format_cpulist(want)} is online: there is nowhere to place them"
                    yield Reading(knob.name, nic, State.UNREADABLE, reason=reason)
                local = read_local_cpus(view.root, nic) if vectors else frozenset[int]()
                for irq, cpu in spread(vectors, want & view.scope.online, local).items():
                    yield self._pinned(knob, view, irqs, str(irq), frozenset({cpu}))

    def _pinned(self, knob: Knob, view: View, irqs: _Open, irq: str, own: CpuSet) -> Reading:
        """Also right only if it may go nowhere else: otherwise the next change of any mask may move it."""
        reading = self.read(knob, view, irqs, irq, own, {})._replace(wanted=own)
        if reading.state is State.READ and reading.facts is None:
            asked = parse_shown(irqs.lines.get(irq, "smp_affinity_list"))
            if asked != own:
                return reading._replace(facts=self.facts(view, irqs, irq, asked, reading.value))
        return reading
