"""Counters of trouble that are read seldom: how far each rose in the last ten minutes, and when."""

from collections import Counter, deque
from collections.abc import Mapping

from tunectl.host.counters import rises
from tunectl.monitor.model import Freshness, Sample
from tunectl.wording import few

WINDOW_S = 600.0
FIRST = "counted for the first time: there is nothing yet to compare it with"


class Rising:
    """The counters of one subject, by name. One that came, went or began anew between two looks adds nothing."""

    def __init__(self, bits: int) -> None:
        self._bits = bits  # at which they wrap
        self._held: Mapping[str, int] | None = None
        self._came: deque[tuple[float, str, int]] = deque()
        self._since_s = 0.0

    def add(self, now: float, counts: Mapping[str, int]) -> None:
        """What they hold now. While what rose before they went counts on, so does the time in which it rose."""
        self._forget(now)
        if self._held is None:
            self._since_s = self._since_s if self._came else now
        else:
            risen = rises(self._held, counts, self._bits)
            self._came += [(now, name, count) for name, count in risen.items() if count]
        self._held = dict(counts)

    def lose(self, now: float) -> bool:
        """They are there no more, and begin anew if they come back. Did any of them rise in the last ten minutes?"""
        self._held = None
        self._forget(now)
        return bool(self._came)

    def _forget(self, now: float) -> None:
        while self._came and now - self._came[0][0] > WINDOW_S:
            self._came.popleft()

    def sample(self, now: float, quantity: str, subject: str, source: str, kind: str = "") -> Sample:
        """How far they rose in the last ten minutes, and in words how fast, how lately, and which of them."""
        watched_s = min(now - self._since_s, WINDOW_S)
        if watched_s <= 0:
            return Sample(quantity, subject, None, source, Freshness.STALE, FIRST, kind=kind)
        total = sum(count for _, _, count in self._came)
        return Sample(quantity, subject, total, source, reason=self._said(now, watched_s, total), kind=kind)

    def _said(self, now: float, watched_s: float, total: int) -> str:
        if not total:
            return ""
        lately = sum(count for at, _, count in self._came if now - at <= 60)
        names: Counter[str] = Counter()
        for _, name, count in self._came:
            names[name] += count
        each = few([f"{name} {count:,}" if name else "" for name, count in names.most_common()])
        length = f"{watched_s / 60:.0f} minutes" if watched_s > 90 else f"{watched_s:.0f} s"
        rate = f"{total:,} in the last {length}, {total / watched_s:.2g}/s, {lately:,} of them in the last minute"
        return rate + (f" ({each})" if each else "")
