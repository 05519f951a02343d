"""Deliveries to isolated CPUs, by device and by kind. /proc/interrupts

One reading costs the kernel a number for each interrupt and CPU: where that is much, it is read less often than the
host is looked at. The counts only rise, so nothing is missed by that, only seen later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tunectl.monitor.eyes import Eyes
from tunectl.monitor.interrupt_table import CALLS, PATH, RESCHEDULES, THERMAL, TIMER, Landed
from tunectl.monitor.model import Health, Sample
from tunectl.monitor.sources.source import Source

_NAME = "interrupts"
_SHARE = 0.01  # of one CPU, at most
_OLDEST_S = 10.0
_LOCAL = {"timer_ticks": TIMER, "function_calls": CALLS, "reschedules": RESCHEDULES}


class _Kept:
    """The samples by what they were made of: most look as in the look before."""

    def __init__(self) -> None:
        self.next_at = 0.0
        self.read_at = 0.0
        self.local: dict[tuple[str, int], Sample] = {}
        self.device: dict[int, tuple[Landed, Sample]] = {}


def read(eyes: Eyes) -> Iterator[Sample]:
    """The counts of isolated CPUs, TRM of every CPU, and the device interrupts that ever came to an isolated one."""
    kept = eyes.keep(_NAME, _Kept)
    table = eyes.table
    if eyes.changed or eyes.look_at >= kept.next_at:
        table.read()
        eyes.table_read = True
        kept.read_at = eyes.look_at
        kept.next_at = eyes.look_at + min(max(table.cost_s / _SHARE - 0.5, 0.0), _OLDEST_S)
    if table.error:
        for quantity in ("interrupts", "thermal_interrupts", *_LOCAL):
            yield Sample(quantity, "host", None, _NAME, Health.NO_DATA, table.error, eyes.isolated)
        return
    for quantity, row in _LOCAL.items():
        counts = table.on(row)
        yield from _of_cpus(kept, quantity, {cpu: counts[cpu] for cpu in eyes.isolated if cpu in counts})
    yield from _of_cpus(kept, "thermal_interrupts", table.on(THERMAL))
    for irq, landed in table.landed.items():
        known = kept.device.get(irq)
        if known is None or known[0] is not landed:
            sample = Sample("interrupts", f"irq{irq}", landed.total, _NAME, reason=landed.name, cpus=landed.cpus)
            known = kept.device[irq] = (landed, sample)
        yield known[1]


def _of_cpus(kept: _Kept, quantity: str, counts: Mapping[int, int]) -> Iterator[Sample]:
    for cpu, count in counts.items():
        sample = kept.local.get((quantity, cpu))
        if sample is None or sample.value != count:
            sample = Sample(quantity, f"cpu{cpu}", count, _NAME, cpus=frozenset({cpu}))
            kept.local[quantity, cpu] = sample
        yield sample


SOURCE = Source(
    _NAME,
    (f"/{PATH}",),
    "nobody: the kernel adds up what it keeps in memory (kernel/irq/proc.c, arch/x86/kernel/irq.c)",
    "always; a counter begins anew when its interrupt is freed and asked for again",
    read,
)
