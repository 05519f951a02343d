"""What looks at one host and judges it: its sources, its rules and its alerts. It keeps nothing and tells nobody."""

from collections.abc import Callable, Mapping
from typing import Any

from tunectl.fix import Fix, in_turn
from tunectl.monitor.alerts import Alerts
from tunectl.monitor.cycle import Cycle
from tunectl.monitor.model import Condition, Severity, Snapshot
from tunectl.monitor.moments import boottime
from tunectl.monitor.rules import RULES, judge
from tunectl.monitor.rules.history import History, Limits
from tunectl.monitor.sources import take_snapshot
from tunectl.monitor.watched_host import Lasting, WatchedHost
from tunectl.tuning.inspection import Inspection

SEVERITIES: Mapping[str, Severity] = {rule.name: rule.severity for rule in RULES}


class Watcher:
    """One watched host, its rules and its alerts."""

    def __init__(
        self,
        inspection: Inspection,
        remembered: Mapping[str, Any],
        now: Callable[[], float] = boottime,
        typed: Callable[[Fix], Fix] = in_turn,
        lasting: Lasting | None = None,
        beside: bool = False,
    ) -> None:
        """`remembered` is what an earlier one saved; `typed` makes of a fix what has to be typed on this host.

        `beside`: it looks beside the daemon, which has the sentinel and the application's socket.
        """
        self._typed = typed
        self.watched_host = WatchedHost(inspection, now=now, lasting=lasting, beside=beside)
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
