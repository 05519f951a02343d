"""A core or a package was throttled for heat: told by counters that only rise, the first signal there is. Pure.

The counter rises in the thermal interrupt; the times beside it are written when the event ends (therm_throt.c).
A thermal interrupt (TRM) also comes at the end of an event, so it decides only where there is no counter.
"""

from __future__ import annotations

from collections.abc import Iterator

from tunectl.monitor.model import Condition, Sample, Verdict
from tunectl.monitor.rules.clocks import is_low
from tunectl.monitor.rules.history import History
from tunectl.monitor.rules.packages import packages
from tunectl.monitor.rules.say import COOL, cpu_of, on

NAME = "ThermalThrottle"
_WORDS = {
    "package_throttles": "the package was throttled",
    "core_throttles": "cores were throttled",
    "thermal_interrupts": "thermal interrupts came",
}


class Heat:
    """What rose in one package since the last look."""

    def __init__(self) -> None:
        self.known = False  # a counter was read, now and before
        self.has_counter = False
        self.unknown = ""
        self.counts: dict[str, int] = {}  # by quantity
        self.cpus: set[int] = set()
        self.sources: dict[str, None] = {}  # in order

    def add(self, sample: Sample, rise: int | None, cpus: frozenset[int]) -> None:
        """One counter's rise; None where it cannot be told."""
        if rise is None:
            self.unknown = self.unknown or sample.reason or "counted for the first time"
            return
        self.known = True
        if rise:
            self.counts[sample.quantity] = self.counts.get(sample.quantity, 0) + rise
            self.cpus |= cpus
            self.sources[sample.source] = None

    @property
    def can_tell(self) -> bool:
        """Was a counter read that throttling makes rise? A firmware may keep thermal interrupts to itself."""
        return self.known and self.has_counter

    @property
    def count(self) -> int:
        """How often it was throttled."""
        decisive = {name: n for name, n in self.counts.items() if name != "thermal_interrupts" or not self.has_counter}
        return max(decisive.values(), default=0)

    @property
    def said(self) -> str:
        """the package was throttled 3 times, cores were throttled 2 times"""
        return ", ".join(f"{_WORDS[name]} {n} time{'s' * (n != 1)}" for name, n in self.counts.items())


def rises(history: History) -> dict[str, Heat]:
    """What rose, by package. A host without any such counter has none."""
    place = history.once(packages)
    found: dict[str, Heat] = {}
    for quantity in _WORDS:
        for subject, sample in history.get(quantity).items():
            if sample.health == "absent":
                continue
            package = subject if subject.startswith("package") else place.of(cpu_of(subject))
            heat = found.get(package) or found.setdefault(package, Heat())
            heat.has_counter |= quantity != "thermal_interrupts"
            cpu = cpu_of(subject)
            own = sample.cpus or (frozenset({cpu}) if cpu is not None else frozenset())
            heat.add(sample, history.rise(sample), own)
    return found


def judge(history: History) -> Iterator[Condition]:
    """One condition a package."""
    for subject, heat in history.once(rises).items():
        source = ", ".join(heat.sources) or "throttle"
        if heat.count:
            summary = f"{subject}: since the last look {heat.said}"
            if heat.cpus:
                summary += f" ({on(heat.cpus)})"
            yield Condition(NAME, subject, Verdict.BAD, heat.count, 0, source, summary, COOL, frozenset(heat.cpus))
        elif not heat.known:
            yield Condition(NAME, subject, Verdict.UNKNOWN, source=source, summary=heat.unknown)
        else:
            # A package the firmware holds down is throttled no more, and is not well either.
            verdict = Verdict.BETWEEN if is_low(history, subject) else Verdict.GOOD
            yield Condition(NAME, subject, verdict, 0, 0, source)
