"""The parts of one monitor put together: sources, rules, alerts, receivers, as one host file asks for them."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from tunectl.fix import Fix, in_turn
from tunectl.monitor.alerts import Alerts
from tunectl.monitor.cycle import Cycle
from tunectl.monitor.daemon import Opener, Watch
from tunectl.monitor.delivery_queue import DeliveryQueues
from tunectl.monitor.model import Condition, Severity, Snapshot, Status
from tunectl.monitor.moments import boottime
from tunectl.monitor.receivers import Receiver, open_exporters, open_receivers
from tunectl.monitor.repair import Repair
from tunectl.monitor.rules import RULES, judge
from tunectl.monitor.rules.history import History, Limits
from tunectl.monitor.sources import take_snapshot
from tunectl.monitor.store import Store
from tunectl.monitor.watched_host import Lasting, WatchedHost
from tunectl.tuning.inspection import Inspection

SEVERITIES: Mapping[str, Severity] = {rule.name: rule.severity for rule in RULES}


class Places(NamedTuple):
    """Where this process keeps and asks, and what it was asked for beside the host file."""

    store: Store
    lasting: Lasting  # outlives a reload
    repairs: Repair | None = None  # outlives a reload; None where nobody gave us a directory to ask in
    interval_s: float | None = None
    repair: bool = False
    typed: Callable[[Fix], Fix] = in_turn  # a fix, as it has to be typed on this host


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


def opener_of(
    inspection: Inspection, places: Places, opened: Callable[[Watcher], None], printer: Receiver | None = None
) -> Opener:
    """Checks what the host file asks for; what is returned opens it. UsageError for an address that cannot be one.

    `opened` is handed the new watcher; `printer` hears of each transition beside the host file's receivers.
    """
    settings = inspection.config.monitor
    receivers = open_receivers(settings, inspection.identity) + ((printer,) if printer else ())

    def open_(remembered: Mapping[str, Any]) -> Watch:
        watcher = Watcher(inspection, remembered, typed=places.typed, lasting=places.lasting)
        watch = _with_receivers(inspection, places, receivers, watcher)
        opened(watcher)
        return watch

    return open_


def _with_receivers(inspection: Inspection, places: Places, receivers: tuple[Receiver, ...], watcher: Watcher) -> Watch:
    settings, store = inspection.config.monitor, places.store
    queues = DeliveryQueues(receivers, store)
    exporters = open_exporters(settings, queues.own)
    queues.start()  # last: what raises above leaves no thread behind

    def state() -> Mapping[str, Any]:
        return {"alerts": watcher.alerts.save()}

    def close() -> None:
        for exporter in exporters:
            with suppress(Exception):
                exporter.close()
        queues.close()
        store.remember(state())
        store.save(now=True)
        watcher.watched_host.close()

    shows: dict[str, Callable[[Status], None]] = {exporter.name: exporter.show for exporter in exporters}
    return Watch(
        watcher.cycle,
        places.interval_s or settings.interval_s,
        state,
        {**shows, "queues": queues.show},
        lambda transitions: queues.add(transitions, state()),
        close,
        places.repairs if places.repair or settings.repair else None,
    )
