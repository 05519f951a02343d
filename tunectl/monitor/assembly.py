"""The parts of one monitor put together: sources, rules, alerts, sinks, as one host file asks for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from tunectl.monitor.alerts import Alerts
from tunectl.monitor.cycle import Cycle
from tunectl.monitor.daemon import Opener, Watch
from tunectl.monitor.model import Alert, Board, Condition, Look, Severity
from tunectl.monitor.outbox import Outboxes
from tunectl.monitor.repair import Repair
from tunectl.monitor.rules import RULES, judge
from tunectl.monitor.rules.history import History, Limits
from tunectl.monitor.sinks import Exporter, Notifier, check_exporters, open_exporters, open_notifiers
from tunectl.monitor.sources import take_look
from tunectl.monitor.watched_host import Eyes, boottime
from tunectl.tuning.session import Session

SEVERITIES: Mapping[str, Severity] = {rule.name: rule.severity for rule in RULES}


class Places(NamedTuple):
    """Where this process may write, and what it was asked for beside the host file."""

    state_dir: str
    runtime_dir: str = ""  # "" where nobody gave us one: then no repair can be asked for
    interval_s: float | None = None
    repair: bool = False
    sinks: bool = True  # a second look at a watched host must not tell everything twice


class Watcher:
    """One host's eyes, rules and alerts."""

    def __init__(self, session: Session, remembered: Mapping[str, Any], now: Callable[[], float] = boottime) -> None:
        self.eyes = Eyes(session, now=now)
        self.alerts = Alerts.load(remembered.get("alerts"))
        self._history = History(Limits.of(session.wishes))
        scope = session.wishes.scope
        self.cycle = Cycle(
            lambda: take_look(self.eyes),
            self._judge,
            self.alerts,
            isolated=scope.isolated,
            housekeeping=scope.housekeeping,
        )

    def _judge(self, look: Look) -> tuple[Condition, ...]:
        self._history.add(look)
        return judge(self._history)


def opener_of(
    session: Session,
    places: Places,
    opened: Callable[[Watcher], None],
    printer: Callable[[Sequence[Alert]], None] | None = None,
) -> Opener:
    """Checks what the host file asks for; what is returned opens it. UsageError for an address that is none.

    `opened` is handed the new watcher; `printer` is told of each edge beside the host file's sinks.
    """
    settings = session.wishes.monitor
    notifiers = open_notifiers(settings, session.identity) if places.sinks else ()
    check_exporters(settings)

    def open_(remembered: Mapping[str, Any]) -> Watch:
        watcher = Watcher(session, remembered)
        watch = _with_sinks(session, places, notifiers, watcher)
        opened(watcher)
        return watch._replace(tells={**watch.tells, "stdout": printer}) if printer else watch

    return open_


def _with_sinks(session: Session, places: Places, notifiers: tuple[Notifier, ...], watcher: Watcher) -> Watch:
    settings = session.wishes.monitor
    outboxes = Outboxes(notifiers, places.state_dir)
    exporters: tuple[Exporter, ...] = open_exporters(settings, outboxes.own) if places.sinks else ()
    outboxes.start()  # last: what raises above leaves no thread behind

    def close() -> None:
        for exporter in exporters:
            with suppress(Exception):
                exporter.close()
        outboxes.close()
        watcher.eyes.close()

    shows: dict[str, Callable[[Board], None]] = {exporter.name: exporter.show for exporter in exporters}
    return Watch(
        watcher.cycle,
        places.interval_s or settings.interval_s,
        lambda: {"alerts": watcher.alerts.save()},
        {**shows, "outboxes": outboxes.show},
        outboxes.tells,
        close,
        Repair(places.runtime_dir) if (places.repair or settings.repair) and places.runtime_dir else None,
    )
