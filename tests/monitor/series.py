"""Recorded series as tables: a row a snapshot, one second apart; and what the rules and alerts make of them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tunectl.monitor.alerts import Alerts
from tunectl.monitor.model import Alert, AlertState, Condition, Freshness, Health, Sample, Snapshot, Value
from tunectl.monitor.rules import RULES, judge
from tunectl.monitor.rules.history import History, Limits

BASE_KHZ = 3_500_000
PACKAGE0 = frozenset(range(8))
ISOLATED = frozenset({2, 3, 4, 5})


def sample(
    quantity: str,
    subject: str,
    value: Value,
    source: str = "",
    *,
    freshness: Freshness = Freshness.FRESH,
    reason: str = "",
    cpus: Iterable[int] = (),
    **more: Any,
) -> Sample:
    """A sample; its source, unless told, is named after the quantity."""
    return Sample(quantity, subject, value, source or quantity, freshness, reason, frozenset(cpus), **more)


def base(cpus: Iterable[int] = ISOLATED, khz: int = BASE_KHZ) -> list[Sample]:
    """base_khz of these CPUs."""
    return [sample("base_khz", f"cpu{cpu}", khz, "limits", reason="base_frequency", cpus={cpu}) for cpu in cpus]


def limits(khz: int, cpus: Iterable[int] = ISOLATED, quantity: str = "bios_limit_khz") -> list[Sample]:
    """The same limit on each of these CPUs."""
    return [sample(quantity, f"cpu{cpu}", khz, "limits", cpus={cpu}) for cpu in cpus]


def snapshot(at_s: float, samples: Iterable[Sample]) -> Snapshot:
    """A snapshot so many seconds after the host was booted."""
    minutes, seconds = divmod(int(at_s), 60)
    return Snapshot(at_s, f"2026-11-21T10:{minutes:02}:{seconds:02}.000Z", tuple(samples))


def snapshots(rows: Iterable[Iterable[Sample]], interval_s: float = 1.0) -> Iterator[Snapshot]:
    """A snapshot a row."""
    for number, row in enumerate(rows):
        yield snapshot(number * interval_s, row)


class Watch:
    """Rules and alerts over a series, as the daemon runs them."""

    def __init__(self, promised: Limits | None = None) -> None:
        self.history = History(promised or Limits(isolated=ISOLATED))
        self.alerts = Alerts()
        self.conditions: tuple[Condition, ...] = ()
        self.at = 0.0

    def see(self, *rows: Sequence[Sample]) -> list[tuple[float, str, Alert]]:
        """One snapshot a row, a second apart; the transitions as (second, "+FrequencyDrop[package0]", the alert)."""
        transitions = []
        for row in rows:
            seen = snapshot(self.at, row)
            self.history.add(seen)
            self.conditions = judge(self.history)
            for alert in self.alerts.step(seen, self.conditions):
                sign = "+" if alert.status is AlertState.FIRING else "-"
                transitions.append((self.at, f"{sign}{alert.identity}", alert))
            self.at += 1.0
        return transitions

    def names(self, *rows: Sequence[Sample]) -> list[tuple[float, str]]:
        """The same without the alerts, and without what says that nothing can be told."""
        return [
            (at, name) for at, name, alert in self.see(*rows) if alert.rule not in ("FrequencyUnknown", "SourceLost")
        ]


def told(watch: Watch) -> dict[str, Alert]:
    """The alerts that fire, by identity, without what says that nothing can be told."""
    return {alert.identity: alert for alert in watch.alerts.firing if alert.rule != "FrequencyUnknown"}


def healths(name: str, rows: Sequence[Sequence[Sample]], promised: Limits | None = None) -> list[dict[str, Health]]:
    """What one rule says of each subject, snapshot by snapshot."""
    (rule,) = [rule for rule in RULES if rule.name == name]
    history = History(promised or Limits(isolated=ISOLATED))
    found = []
    for seen in snapshots(rows):
        history.add(seen)
        found.append({condition.subject: condition.health for condition in rule.judge(history)})
    return found
