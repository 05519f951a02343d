"""Two snapshots, judged without hysteresis: what a monitoring check can say of a host in a second."""

import time
from collections.abc import Callable

from tunectl.monitor.model import Condition, Health, Snapshot, Status, Verdict
from tunectl.monitor.rules import RULES
from tunectl.monitor.watcher import SEVERITIES, Watcher

# What these find is that something is unknown: that is no warning.
BLIND = frozenset({"FrequencyUnknown", "SourceLost"})
# One bad snapshot of these may be chance: only a series shows whether interruptions are the monitor's own.
_SERIES = frozenset(rule.name for rule in RULES if rule.bad[0] > 2) - BLIND


def look_twice(
    watcher: Watcher, seconds: float, sleep: Callable[[float], object] = time.sleep
) -> tuple[Status, Snapshot]:
    """The status at the second snapshot, and the first snapshot, from which rises are counted."""
    watcher.watched_host.is_once = True
    first, _ = watcher.cycle.step()
    sleep(seconds)
    status, _ = watcher.cycle.step()
    return status._replace(conditions=tuple(map(_settled, status.conditions))), first.snapshot


def _settled(condition: Condition) -> Condition:
    """What two snapshots cannot show is unknown."""
    if condition.health is not Health.BAD or condition.rule not in _SERIES | BLIND:
        return condition
    more = "" if condition.rule in BLIND else " (two snapshots cannot show it: watch it for longer)"
    return condition._replace(health=Health.UNKNOWN, summary=condition.summary + more)


def verdict_of(status: Status) -> tuple[Verdict, list[str]]:
    """critical, warning, unknown or ok, and why. What could not be seen is not ok."""
    bad = [condition for condition in status.conditions if condition.health is Health.BAD]
    blind = [
        condition for condition in status.conditions if condition.health is Health.UNKNOWN and condition.rule in BLIND
    ]
    reasons = [f"{condition.rule}[{condition.subject}]: {condition.summary}" for condition in (*bad, *blind)]
    severities: tuple[Verdict, ...] = ("critical", "warning")
    for severity in severities:
        if any(SEVERITIES.get(condition.rule, "warning") == severity for condition in bad):
            return severity, reasons
    if blind:
        return "unknown", reasons
    if any(condition.health in (Health.GOOD, Health.BETWEEN) for condition in status.conditions):
        return "ok", reasons
    return "unknown", [*reasons, "this host shows nothing that could be judged"]
