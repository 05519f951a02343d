"""Small real parts to drive a Cycle and a Daemon with: a given snapshot, one rule, alerts, a clock."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tunectl.monitor.alerts import Alerts
from tunectl.monitor.daemon import Opener, Watch
from tunectl.monitor.model import Alert, Condition, Health, Sample, Severity, Snapshot
from tunectl.monitor.rules import Rule
from tunectl.monitor.wakeup import Wakeup
from tunectl.monitor.watcher import Cycle

ISOLATED = frozenset({2, 3})
HOUSEKEEPING = frozenset({0, 1})
# They fire at the first bad condition, and resolve at the first good one. What may be hot is looked at again.
RULES = (
    Rule("ThermalThrottle", Severity.CRITICAL, "", "", lambda _: (), good=1, looks_again=True),
    Rule("KnobDrift", Severity.CRITICAL, "", "", lambda _: (), good=1),
)


def snapshot(value: int, at_s: float = 0.0, quantity: str = "package_throttles", subject: str = "package0") -> Snapshot:
    """One sample."""
    return Snapshot(at_s, "2026-11-21T09:30:00Z", (Sample(quantity, subject, value, "throttle", cpus=ISOLATED),))


def judge(seen: Snapshot) -> Iterator[Condition]:
    """A value above 0 is bad, one below it in between."""
    for sample in seen.samples:
        value = sample.value if isinstance(sample.value, int) else 0
        health = Health.BAD if value > 0 else Health.BETWEEN if value < 0 else Health.GOOD
        rule = "KnobDrift" if sample.quantity == "knob" else "ThermalThrottle"
        yield Condition(rule, sample.subject, health, sample.value, 0)


class DrivenWakeup(Wakeup):
    """A clock that moves only when somebody sleeps or `spend`s time, and a list of what is to come."""

    def __init__(self) -> None:
        super().__init__()
        self.began_s = self.clock_s = 1000.0
        self.sleeps = 0
        self._coming: list[tuple[float, int | Callable[[], object]]] = []

    def now_s(self) -> float:
        return self.clock_s

    def spend(self, seconds: float) -> None:
        """Work that takes so long."""
        self.clock_s += seconds

    def after(self, seconds: float, what: int | Callable[[], object]) -> None:
        """Seconds after the begin: a signal comes, or this is called."""
        self._coming.append((self.began_s + seconds, what))
        self._coming.sort(key=lambda pair: pair[0])

    def sleep(self, seconds: float) -> tuple[set[int], bool]:
        assert seconds >= 0
        self.sleeps += 1
        assert self.sleeps < 10_000, "a busy loop"
        until_s = self.clock_s + seconds
        if not self._coming or self._coming[0][0] > until_s:
            self.clock_s = until_s
            return super().sleep(0)
        at_s, what = self._coming.pop(0)
        self.clock_s = max(self.clock_s, at_s)
        if isinstance(what, int):
            return {what}, False
        what()
        return super().sleep(0)


def opener(source: Callable[[], Snapshot], told: list[Alert], closed: list[str], **changed: Any) -> Opener:
    """A Watch of these parts; `changed` are its fields."""

    def open_(remembered: Mapping[str, Any]) -> Watch:
        book = Alerts.load(remembered, RULES)
        cycle = Cycle(source, judge, book, isolated=ISOLATED, housekeeping=HOUSEKEEPING)
        parts: dict[str, Any] = {
            "interval_s": 1.0,
            "shows": {},
            "notify": told.extend,
            "close": lambda: closed.append("closed"),
        }
        return Watch(cycle, remember=book.save, **{**parts, **changed})

    return open_
