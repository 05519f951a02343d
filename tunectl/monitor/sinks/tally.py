"""What one board cannot say and a scrape must not miss: counts over all boards, and the last window of latency."""

from __future__ import annotations

from collections import Counter

from tunectl.monitor.model import Board, Look, Sample
from tunectl.monitor.sinks.rows import label, number, number_of

_KEEP_S = 60.0  # how long a window stands that nothing followed: what no longer speaks has no latency
LATENCY = {"latency_p99_9_ns": "latency_p99_9_seconds", "latency_max_ns": "latency_max_seconds"}
_COUNT = "latency_count"
_SOURCES = 100  # subjects of latency
_TALLIED = frozenset({"own_interruptions", "device", _COUNT, *LATENCY})


class Tally:
    """Adds up the boards of one process."""

    def __init__(self) -> None:
        self.own_interruptions: Counter[str] = Counter()  # by CPU
        self.events: Counter[tuple[str, str]] = Counter()  # (net, add)
        self.windows: Counter[str] = Counter()  # latency windows that closed, by subject
        self.latency: dict[tuple[str, str], tuple[float, float]] = {}  # (quantity, subject): (ns or count, when)
        self._last: Look | None = None

    def add(self, board: Board) -> None:
        """Counts a board once, however often it is shown."""
        look = board.look
        if look is self._last:
            return
        self._last = look
        for sample in [each for each in look.samples if each.quantity in _TALLIED]:  # a large host has ten thousand
            if sample.quantity == "own_interruptions":
                self.own_interruptions[number_of(sample.subject)] += int(number(sample) or 0)
            elif sample.quantity == "device":
                self.events[label(sample.subject.partition("/")[0]), label(str(sample.value))] += 1
            else:
                self._window(sample, look.monotonic_s)
        self.latency = {key: seen for key, seen in self.latency.items() if look.monotonic_s - seen[1] <= _KEEP_S}

    def _window(self, sample: Sample, now_s: float) -> None:
        subject, value = label(sample.subject), number(sample)
        if value is None or (subject not in self.windows and len(self.windows) >= _SOURCES):
            return
        self.windows[subject] += sample.quantity == _COUNT
        self.latency[sample.quantity, subject] = (value, now_s)
