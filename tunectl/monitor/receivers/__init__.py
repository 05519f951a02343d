"""Who hears of each transition once (receivers), and where everything is shown in each cycle (exporters)."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tunectl.hostfile.shape import Monitor, Prometheus
from tunectl.installed import needed
from tunectl.model import HostId
from tunectl.monitor.model import Alert, Status


class Receiver(NamedTuple):
    """Somebody who hears of each transition. `deliver` returns once it is acknowledged, or raises DeliveryError."""

    name: str  # stable over restarts: the name of its queue, and a label
    deliver: Callable[[Sequence[Alert]], None]
    repeat_s: float | None = None  # what still fires is delivered again this often; None: the transitions only
    tries: int | None = None  # then an alert is given up and counted; None: never
    is_counted: bool = True  # its queue is shown among the metrics


class Exporter(NamedTuple):
    """A place where the whole board is shown after each cycle. `show` does not raise."""

    name: str
    show: Callable[[Status], None]
    close: Callable[[], None]


def open_receivers(settings: Monitor, host: HostId) -> tuple[Receiver, ...]:
    """A receiver for the log and for each webhook and hook of [monitor]. UsageError where an address is no address.

    They deliver at once and raise DeliveryError; the delivery queues keep, order and retry. To add a kind: one file
    with an opener, imported where it is asked for.
    """
    receivers: list[Receiver] = []
    if settings.log != "none":
        from tunectl.monitor.receivers import logs

        receivers.append({"journal": logs.open_journal, "syslog": logs.open_syslog}[settings.log](host))
    if settings.webhooks:
        from tunectl.monitor.receivers import webhook  # ssl and http.client cost 5 MB

        receivers += [webhook.open_webhook(each, host, number) for number, each in enumerate(settings.webhooks)]
    if settings.hooks:
        from tunectl.monitor.receivers import hook

        receivers += [hook.open_hook(each, host, number) for number, each in enumerate(settings.hooks)]
    unique: dict[str, Receiver] = {}
    for receiver in receivers:  # the same receiver twice would share one queue
        unique.setdefault(receiver.name, receiver)
    return tuple(unique.values())


def open_exporters(settings: Monitor, own: Callable[[], Mapping[str, float]] = dict) -> tuple[Exporter, ...]:
    """The HTTP endpoint and the textfile, as [monitor.prometheus] has them; `own` adds to what a board says of us.

    TunectlError where the extra that they need is not installed.
    """
    asked = settings.prometheus
    if asked == Prometheus():
        return ()
    with needed("[monitor.prometheus]"):
        from tunectl.monitor.receivers import prometheus, textfile

    opened: list[Exporter] = []
    if asked.listen is not None:
        opened.append(prometheus.endpoint(asked.listen))
    if asked.textfile is not None:
        opened.append(textfile.file_exporter(asked.textfile))
    return tuple(exporter._replace(show=_adding(exporter.show, own)) for exporter in opened)


def _adding(show: Callable[[Status], None], own: Callable[[], Mapping[str, float]]) -> Callable[[Status], None]:
    return lambda status: show(status._replace(own={**status.own, **own()}))
