"""Does watching disturb? The interruptions of isolated CPUs that came while the monitor looked. /proc/interrupts

The table is read a second time at the end of the look. Of what came since the last audit, the look's share of the time
comes during the look by chance: only what exceeds that is laid at its door. A starved monitor looks all the time, and
then nearly all that comes does so during a look. Source: FACTS 2.5, "Self-audit".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tunectl.monitor.interrupt_table import CALLS, PATH, RESCHEDULES, TIMER
from tunectl.monitor.model import Health, Sample
from tunectl.monitor.watched_host import Eyes, Source

_NAME = "audit"
_SHARE = 0.0005  # of one CPU for the second reading, at most
_ROWS = (CALLS, RESCHEDULES, TIMER)
Counts = Mapping[str, Mapping[int, int]]


class _Spent(NamedTuple):
    """Seconds in this look, and between the last audited one and this."""

    look_s: float
    between_s: float

    @property
    def share(self) -> float:
        """The look's part of the whole."""
        whole_s = self.look_s + self.between_s
        return self.look_s / whole_s if whole_s > 0 else 0.0


class _Kept:
    """The counts at the end of the last audited look, and what was found."""

    def __init__(self) -> None:
        self.next_at = 0.0
        self.at = 0.0
        self.counts: Counts = {}
        self.samples: list[Sample] = []
        self.audited_at = 0.0
        self.none: dict[int, Sample] = {}


def read(eyes: Eyes) -> Iterator[Sample]:
    """own_interruptions of each isolated CPU; between audits the last ones, stale."""
    kept = eyes.keep(_NAME, _Kept)
    table = eyes.table
    if table.error:
        yield Sample("own_interruptions", "host", None, _NAME, Health.NO_DATA, table.error, eyes.isolated)
    elif eyes.table_read and eyes.look_at >= kept.next_at:
        began, before = table.at, _counts(eyes)
        rows = [table.row(row) for row in _ROWS]
        table.read()
        # As a rule nothing has come at all: the very same rows.
        after = before if all(table.row(row) is old for row, old in zip(_ROWS, rows, strict=True)) else _counts(eyes)
        spent = _Spent(table.at - began, began - kept.at)
        kept.samples = [
            _none(kept, cpu) if after is before else _judged(cpu, before, after, kept.counts, spent)
            for cpu in sorted(_cpus(eyes, before))
        ]
        kept.at, kept.counts = table.at, after
        kept.audited_at, kept.next_at = eyes.look_at, eyes.look_at + max(table.cost_s / _SHARE - 0.5, 0.0)
        yield from kept.samples
    else:
        age = eyes.look_at - kept.audited_at
        reason = f"last audited {age:.0f} s ago: the second reading of /{PATH} is not worth its cost in every look"
        yield from (one._replace(health=Health.STALE, reason=reason) for one in kept.samples)


def _none(kept: _Kept, cpu: int) -> Sample:
    if cpu not in kept.none:
        kept.none[cpu] = Sample("own_interruptions", f"cpu{cpu}", 0, _NAME, cpus=frozenset({cpu}))
    return kept.none[cpu]


def _counts(eyes: Eyes) -> Counts:
    return {row: eyes.table.on(row) for row in _ROWS}


def _cpus(eyes: Eyes, counts: Counts) -> set[int]:
    return {cpu for on in counts.values() for cpu in eyes.isolated & on.keys()}


def _judged(cpu: int, before: Counts, after: Counts, earlier: Counts, spent: _Spent) -> Sample:
    """One CPU: what came, where it is more than comes by chance in so short a time, and in `reason` the plain counts.

    Events that come independently of the look fall into it binomially, by its share of the time: three deviations.
    """
    rises = {row: _rise(cpu, before[row], after[row]) for row in _ROWS}
    count = sum(rises.values())
    outside = sum(_rise(cpu, earlier[row], before[row]) for row in _ROWS) if earlier else 0
    expected = spent.share * (count + outside)
    excess = count if count > expected + 3 * math.sqrt(expected * (1 - spent.share)) and earlier else 0
    reason = ""
    if count:
        shown = ", ".join(f"{row} +{rise}" for row, rise in rises.items() if rise)
        reason = f"{shown} in the {spent.look_s * 1000:.1f} ms of this look; {expected:.2g} come by chance"
    return Sample("own_interruptions", f"cpu{cpu}", excess, _NAME, reason=reason, cpus=frozenset({cpu}))


def _rise(cpu: int, before: Mapping[int, int], after: Mapping[int, int]) -> int:
    return max(after.get(cpu, 0) - before.get(cpu, 0), 0)  # a counter that wrapped, or a CPU that came back


SOURCE = Source(
    _NAME,
    (f"/{PATH}",),
    "nobody; it is there to prove it of all the others",
    "for the look it is taken in; other looks show the last audit as stale",
    read,
)
