"""Deliveries to isolated CPUs, by device and by kind. /proc/interrupts

One reading costs the kernel a number for each interrupt and CPU: where that is much, it is read less often than the
host is looked at. The counts only rise, so nothing is missed by that, only seen later.
"""

from collections.abc import Iterable

from tunectl.cpulist import CpuSet
from tunectl.monitor.interrupt_table import CALLS, PATH, RESCHEDULES, THERMAL, TIMER, Landed
from tunectl.monitor.model import Freshness, Sample
from tunectl.monitor.watched_host import Source, WatchedHost

_NAME = "interrupts"
_SHARE = 0.01  # of one CPU, at most
_OLDEST_S = 10.0
_LOCAL = {"timer_ticks": TIMER, "function_calls": CALLS, "reschedules": RESCHEDULES, "thermal_interrupts": THERMAL}


class _Kept:
    """The samples, remade only where a count has changed."""

    def __init__(self) -> None:
        self.next_at = 0.0
        self.shapes = 0
        self.rows: dict[str, tuple[int, ...]] = {}
        self.local: dict[str, dict[int, Sample]] = {}
        self.landings = -1
        self.device: dict[int, tuple[Landed, dict[int, Sample]]] = {}

    def refresh(self, host: WatchedHost) -> None:
        """What the table says now."""
        table = host.table
        if table.shapes != self.shapes:
            self.shapes, self.rows, self.local = table.shapes, {}, {}
        for quantity, name in _LOCAL.items():
            row = table.row(name)
            if row is not self.rows.get(quantity):
                self.rows[quantity] = row
                cpus = frozenset(table.cpus) if name == THERMAL else host.isolated
                self._remake(quantity, dict(zip(table.cpus, row, strict=False)), cpus)
        if table.landings != self.landings:
            self.landings = table.landings
            self.device = {irq: self._device(irq, landed) for irq, landed in table.landed.items()}

    def _remake(self, quantity: str, counts: dict[int, int], cpus: CpuSet) -> None:
        samples = self.local.setdefault(quantity, {})
        for cpu in cpus & counts.keys():
            if cpu not in samples or samples[cpu].value != counts[cpu]:
                samples[cpu] = Sample(quantity, f"cpu{cpu}", counts[cpu], _NAME, cpus=frozenset({cpu}))

    def _device(self, irq: int, landed: Landed) -> tuple[Landed, dict[int, Sample]]:
        known, kept = self.device.get(irq, (None, dict[int, Sample]()))
        if known is landed:
            return landed, kept
        samples, whole = {}, f"irq{irq}"
        for cpu, count in landed.counts.items():
            subject, cpus = f"{whole}.cpu{cpu}", frozenset({cpu})
            sample = Sample("interrupts", subject, count, _NAME, kind=landed.name, cpus=cpus, whole=whole)
            samples[cpu] = kept[cpu] if sample == kept.get(cpu) else sample
        return landed, samples


def read(host: WatchedHost) -> Iterable[Sample]:
    """The counts of isolated CPUs, TRM of every CPU, and the device interrupts that ever came to an isolated one."""
    kept = host.keep(_NAME, _Kept)
    table = host.table
    if host.changed or host.taken_at >= kept.next_at:
        table.read()
        host.table_read = True
        kept.next_at = host.taken_at + min(max(table.cost_s / _SHARE - 0.5, 0.0), _OLDEST_S)
    if table.error:
        reason, cpus = table.error, host.isolated
        return [Sample(name, "host", None, _NAME, Freshness.NO_DATA, reason, cpus) for name in ("interrupts", *_LOCAL)]
    kept.refresh(host)
    local = [sample for samples in kept.local.values() for sample in samples.values()]
    return local + [sample for _, samples in kept.device.values() for sample in samples.values()]


SOURCE = Source(
    _NAME,
    (f"/{PATH}",),
    "nobody: the kernel adds up what it keeps in memory (kernel/irq/proc.c, arch/x86/kernel/irq.c)",
    "always; a counter starts again at 0 when its interrupt is freed and requested again",
    read,
)
