"""What looks at one host and judges it: its sources, its rules and its alerts. It keeps nothing and tells nobody.

A cycle is a snapshot, what the rules say of it, and what that changes among the alerts. `look_twice` is what a
monitoring check can say of a host in a second: two snapshots, judged without hysteresis.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tunectl.cpulist import CpuSet
from tunectl.fix import Fix, in_turn
from tunectl.model import HostId, Outcome
from tunectl.monitor.alerts import Alerts
from tunectl.monitor.model import Alert, Condition, Freshness, Health, Severity, Snapshot, Status, Verdict
from tunectl.monitor.moments import told
from tunectl.monitor.rules import RULES, judge
from tunectl.monitor.rules.history import History, Limits
from tunectl.monitor.sources import take_snapshot
from tunectl.monitor.watched_host import Lasting, WatchedHost
from tunectl.tuning.inspection import Inspection
from tunectl.wording import few

RECENT = 20  # transitions that are kept to be shown
_NAMED = 8  # settings that wait for a reboot
_UNNAMED = HostId()
_SEVERITIES: Mapping[str, Severity] = {rule.name: rule.severity for rule in RULES}
# What these find is that something is unknown: that is no warning.
_BLIND = frozenset({"FrequencyUnknown", "SourceLost"})
# One bad snapshot of these may be chance: only a series shows whether interruptions are the monitor's own.
_SERIES = frozenset(rule.name for rule in RULES if rule.bad[0] > 2) - _BLIND


class Cycle:
    """The snapshot, the rules and the alerts of one host, joined."""

    def __init__(
        self,
        take: Callable[[], Snapshot],
        judge: Callable[[Snapshot], Iterable[Condition]],
        alerts: Alerts,
        *,
        isolated: CpuSet = frozenset(),
        housekeeping: CpuSet = frozenset(),
        host: HostId = _UNNAMED,
    ) -> None:
        self._take, self._judge, self._alerts = take, judge, alerts
        self._whose = isolated, housekeeping, host
        self._recent: deque[Alert] = deque(maxlen=RECENT)
        self._cycles = 0

    @property
    def is_in_doubt(self) -> bool:
        """Is the next look worth more than to wait for its time?"""
        return self._alerts.is_in_doubt

    def step(self) -> tuple[Status, tuple[Alert, ...]]:
        """One cycle: everything there is to show, and the alerts that fired or were resolved in it."""
        wall, cpu = time.perf_counter(), time.thread_time()
        snapshot = self._take()
        conditions = tuple(self._judge(snapshot))
        transitions = self._alerts.step(snapshot, conditions)
        self._recent.extendleft(transitions)
        self._cycles += 1
        known = Counter(sample.freshness for sample in snapshot.samples)
        own = {
            "cycles_total": float(self._cycles),
            "cycle_seconds": time.perf_counter() - wall,
            "cycle_cpu_seconds": time.thread_time() - cpu,
            "cpu_seconds_total": time.process_time(),
            **{f"samples_{freshness.value.replace('-', '_')}": float(known[freshness]) for freshness in Freshness},
        }
        firing, recent = (
            tuple(told(alert, snapshot.moment) for alert in alerts) for alerts in (self._alerts.firing, self._recent)
        )
        return Status(snapshot, conditions, firing, recent, own, *self._whose), transitions


class Watcher:
    """One watched host, its rules and its alerts."""

    def __init__(
        self,
        inspection: Inspection,
        remembered: Mapping[str, Any],
        typed: Callable[[Fix], Fix] = in_turn,
        lasting: Lasting | None = None,
        beside: bool = False,
    ) -> None:
        """`remembered` is what an earlier one saved; `typed` makes of a fix what has to be typed on this host.

        `beside`: it looks beside the daemon, which has the sentinel and the application's socket.
        """
        self._typed = typed
        self.watched_host = WatchedHost(inspection, lasting=lasting, beside=beside)
        self.alerts = Alerts.load(remembered.get("alerts"))
        self._history = History(Limits.of(inspection.config))
        scope = inspection.config.scope
        self.cycle = Cycle(
            lambda: take_snapshot(self.watched_host),
            self._judge,
            self.alerts,
            isolated=scope.isolated,
            housekeeping=scope.housekeeping,
            host=inspection.identity,
        )

    def _judge(self, snapshot: Snapshot) -> tuple[Condition, ...]:
        self._history.add(snapshot)
        conditions = judge(self._history)
        return tuple(
            condition._replace(fix=self._typed(condition.fix)) if condition.fix else condition
            for condition in conditions
        )


def look_twice(watcher: Watcher, seconds: float) -> tuple[Status, Snapshot]:
    """The status at the second snapshot, and the first snapshot, from which rises are counted."""
    watcher.watched_host.is_once = True
    first, _ = watcher.cycle.step()
    time.sleep(seconds)
    status, _ = watcher.cycle.step()
    return status._replace(conditions=tuple(map(_settled, status.conditions))), first.snapshot


def _settled(condition: Condition) -> Condition:
    """What two snapshots cannot show is unknown."""
    if condition.health is not Health.BAD or condition.rule not in _SERIES | _BLIND:
        return condition
    more = "" if condition.rule in _BLIND else " (two snapshots cannot show it: watch it for longer)"
    return condition._replace(health=Health.UNKNOWN, summary=condition.summary + more)


def verdict_of(status: Status) -> tuple[Verdict, list[str]]:
    """critical, warning, unknown or ok, and why. What could not be seen is not ok; what waits for a reboot is named."""
    bad = [condition for condition in status.conditions if condition.health is Health.BAD]
    unknown = [condition for condition in status.conditions if condition.health is Health.UNKNOWN]
    blind = [condition for condition in unknown if condition.rule in _BLIND]
    reasons = [f"{condition.rule}[{condition.subject}]: {condition.summary}" for condition in (*bad, *blind)]
    waits = [sample.subject for sample in status.snapshot.of("knob") if sample.value == Outcome.PENDING_REBOOT]
    reasons += [f"pending reboot: {few(waits, _NAMED)}"] if waits else []
    severities: tuple[Verdict, ...] = ("critical", "warning")
    for severity in severities:
        if any(_SEVERITIES.get(condition.rule, "warning") == severity for condition in bad):
            return severity, reasons
    if blind:
        return "unknown", reasons
    if any(condition.health in (Health.GOOD, Health.BETWEEN) for condition in status.conditions):
        return "ok", reasons
    return "unknown", [*reasons, "this host shows nothing that could be judged"]
