"""The parts of the daemon put together: a watcher, its receivers and what it keeps, as one host file asks for them."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from tunectl.fix import Fix, in_turn
from tunectl.monitor.daemon import Opener, Watch
from tunectl.monitor.delivery_queue import DeliveryQueues
from tunectl.monitor.receivers import Receiver, open_exporters, open_receivers
from tunectl.monitor.repair import Repair
from tunectl.monitor.store import Store
from tunectl.monitor.watched_host import Lasting
from tunectl.monitor.watcher import Watcher
from tunectl.tuning.inspection import Inspection


class Places(NamedTuple):
    """Where this process keeps and asks, and what it was asked for beside the host file."""

    store: Store
    lasting: Lasting  # outlives a reload
    repairs: Repair | None = None  # outlives a reload; None where nobody gave us a directory to ask in
    interval_s: float | None = None
    repair: bool = False
    typed: Callable[[Fix], Fix] = in_turn  # a fix, as it has to be typed on this host


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
        store, queues = places.store, DeliveryQueues(receivers, places.store)
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

        opened(watcher)
        return Watch(
            watcher.cycle,
            places.interval_s or settings.interval_s,
            state,
            {**{exporter.name: exporter.show for exporter in exporters}, "queues": queues.show},
            lambda transitions: queues.add(transitions, state()),
            close,
            places.repairs if places.repair or settings.repair else None,
        )

    return open_
