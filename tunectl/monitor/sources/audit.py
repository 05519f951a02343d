"""Does watching disturb? The interruptions of isolated CPUs that came while the monitor looked. /proc/interrupts

The table is read a second time at the end of the snapshot. If a snapshot takes a tenth of the time, a tenth of all
interruptions come during it by chance: only what exceeds that share is counted as the monitor's own. A starved monitor
is busy with snapshots all the time, and then nearly everything comes during one. Source: docs/kernel-facts.md, "Reading
without disturbing".
"""

import math
from collections.abc import Iterator, Mapping

from tunectl.host.counters import rise
from tunectl.monitor.interrupt_table import CALLS, PATH, RESCHEDULES, TIMER
from tunectl.monitor.model import Freshness, Sample
from tunectl.monitor.watched_host import Source, WatchedHost
from tunectl.wording import seconds_of

_NAME, _QUANTITY = "audit", "own_interruptions"
_SHARE = 0.0005  # of one CPU for the second reading, at most
_ROWS = (CALLS, RESCHEDULES, TIMER)
Counts = Mapping[str, Mapping[int, int]]


class _Kept:
    """The counts at the end of the last audited snapshot, and what was found."""

    def __init__(self) -> None:
        self.next_at = 0.0
        self.at = 0.0
        self.counts: Counts = {}
        self.samples: list[Sample] = []
        self.audited_at = 0.0
        self.none: dict[int, Sample] = {}


def read(host: WatchedHost) -> Iterator[Sample]:
    """own_interruptions of each isolated CPU; between audits the last ones, stale."""
    kept = host.keep(_NAME, _Kept)
    table = host.table
    if table.error:
        yield Sample(_QUANTITY, "host", None, _NAME, Freshness.NO_DATA, table.error, host.isolated)
    elif host.table_read and host.taken_at >= kept.next_at:
        began, before = table.at, _counts(host)
        rows = [table.row(row) for row in _ROWS]
        table.read()
        # As a rule nothing has come at all: the very same rows.
        after = before if all(table.row(row) is old for row, old in zip(_ROWS, rows, strict=True)) else _counts(host)
        taken_s, whole_s = table.at - began, table.at - kept.at  # by this snapshot; since the last audited one
        share = taken_s / whole_s if whole_s > 0 else 0.0
        kept.samples = []
        for cpu in sorted({cpu for on in before.values() for cpu in host.isolated & on.keys()}):
            sample = kept.none.setdefault(cpu, Sample(_QUANTITY, f"cpu{cpu}", 0, _NAME, cpus=frozenset({cpu})))
            if after is not before:
                sample = _judged(cpu, before, after, kept.counts, taken_s, share)
            kept.samples.append(sample)
        kept.at, kept.counts = table.at, after
        kept.audited_at, kept.next_at = host.taken_at, host.taken_at + max(table.cost_s / _SHARE - 0.5, 0.0)
        yield from kept.samples
    else:
        age = host.taken_at - kept.audited_at
        reason = f"last audited {age:.0f} s ago: the second reading of /{PATH} is not worth its cost in every snapshot"
        yield from (sample._replace(freshness=Freshness.STALE, reason=reason) for sample in kept.samples)


def _counts(host: WatchedHost) -> Counts:
    return {row: host.table.on(row) for row in _ROWS}


def _judged(cpu: int, before: Counts, after: Counts, earlier: Counts, taken_s: float, share: float) -> Sample:
    """One CPU: the interruptions where they are more than chance in so short a time, and in `reason` the plain counts.

    Events that are independent of the snapshot fall into it binomially, by its `share` of the time. The limit is three
    standard deviations.
    """
    came = {row: _came(cpu, before[row], after[row]) for row in _ROWS}
    count = sum(came.values())
    outside = sum(_came(cpu, earlier[row], before[row]) for row in _ROWS) if earlier else 0
    expected = share * (count + outside)
    excess = count if count > expected + 3 * math.sqrt(expected * (1 - share)) and earlier else 0
    reason = ""
    if count:
        shown = ", ".join(f"{row} +{times}" for row, times in came.items() if times)
        reason = f"{shown} in the {seconds_of(taken_s)} of this snapshot; {expected:.2g} come by chance"
    return Sample(_QUANTITY, f"cpu{cpu}", excess, _NAME, reason=reason, cpus=frozenset({cpu}))


def _came(cpu: int, before: Mapping[int, int], after: Mapping[int, int]) -> int:
    """0 of a CPU that was off in one of the readings: what it counts since boot was not the monitor."""
    return (rise(before[cpu], after[cpu]) or 0) if cpu in before and cpu in after else 0


SOURCE = Source(
    _NAME,
    (f"/{PATH}",),
    "nobody; it proves the same of all the others",
    "for the snapshot it is taken in; other snapshots show the last audit as stale",
    read,
)
