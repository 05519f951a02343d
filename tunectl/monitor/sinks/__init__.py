"""Whom the monitor tells (notifiers: each edge, once) and where it shows everything (exporters: each cycle)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tunectl.hostfile.shape import Monitor
from tunectl.model import HostId
from tunectl.monitor.model import Board
from tunectl.monitor.sinks.kinds import Exporter, Notifier, SinkError
from tunectl.monitor.sinks.places import check_textfile, parse_listen

__all__ = ["Exporter", "Notifier", "SinkError", "check_exporters", "open_exporters", "open_notifiers"]


def open_notifiers(settings: Monitor, identity: HostId) -> tuple[Notifier, ...]:
    """A notifier for the log and for each webhook and hook of [monitor]. UsageError where an address is no address.

    They deliver at once and raise SinkError; `tunectl.monitor.outbox.Outboxes` keeps, orders and retries.
    """
    from tunectl.monitor.sinks import hook, journal, syslog, webhook  # ssl and http.client are slow to import

    logs = {"journal": journal.open_journal, "syslog": syslog.open_syslog}
    found = [logs[settings.log](identity)] if settings.log in logs else []
    found += [webhook.open_webhook(each, identity, number) for number, each in enumerate(settings.webhooks, 1)]
    found += [hook.open_hook(each, identity, number) for number, each in enumerate(settings.hooks, 1)]
    unique: dict[str, Notifier] = {}
    for notifier in found:  # the same receiver twice would share one spool
        unique.setdefault(notifier.name, notifier)
    return tuple(unique.values())


def check_exporters(settings: Monitor) -> None:
    """UsageError for what `open_exporters` would refuse, before a spool or a port is held."""
    if settings.prometheus.listen is not None:
        parse_listen(settings.prometheus.listen)
    if settings.prometheus.textfile is not None:
        check_textfile(settings.prometheus.textfile)


def open_exporters(settings: Monitor, own: Callable[[], Mapping[str, float]] = dict) -> tuple[Exporter, ...]:
    """The HTTP endpoint and the textfile, as [monitor.prometheus] has them; `own` adds to what a board says of us."""
    from tunectl.monitor.sinks import prometheus, textfile

    place, made = settings.prometheus, []
    if place.listen is not None:
        made.append(prometheus.open_endpoint(place.listen))
    if place.textfile is not None:
        made.append(textfile.open_textfile(place.textfile))
    return tuple(exporter._replace(show=_adding(exporter.show, own)) for exporter in made)


def _adding(show: Callable[[Board], None], own: Callable[[], Mapping[str, float]]) -> Callable[[Board], None]:
    return lambda board: show(board._replace(own={**board.own, **own()}))
