"""What one board cannot say and a scrape must not miss: counts over all boards."""

from __future__ import annotations

from collections import Counter

from tunectl.monitor.model import Snapshot, Status
from tunectl.monitor.sinks.rows import label, number, number_of

_TALLIED = frozenset({"own_interruptions", "device"})


class Tally:
    """Adds up the boards of one process."""

    def __init__(self) -> None:
        self.own_interruptions: Counter[str] = Counter()  # by CPU
        self.events: Counter[tuple[str, str]] = Counter()  # (net, add)
        self._last: Snapshot | None = None

    def add(self, status: Status) -> None:
        """Counts a board once, however often it is shown."""
        if status.snapshot is self._last:
            return
        self._last = status.snapshot
        for sample in [each for each in status.snapshot.samples if each.quantity in _TALLIED]:  # of ten thousand
            if sample.quantity == "device":
                self.events[label(sample.subject.partition("/")[0]), label(str(sample.value))] += 1
            elif (count := number(sample)) is not None:
                self.own_interruptions[number_of(sample.subject)] += int(count)
