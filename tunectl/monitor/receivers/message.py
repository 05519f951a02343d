"""An alert as text, as fields, as JSON, and the names by which a receiver knows that it has seen it. Pure."""

import uuid
from typing import Annotated

from msgspec import Meta

from tunectl.model import Document, HostId
from tunectl.monitor.model import Alert, AlertFields, AlertState, Severity
from tunectl.report import render
from tunectl.report.escape import printable
from tunectl.shapes import fields_of

# A fixed name space, so that the same event has the same id in every process (RFC 4122, version 5).
_NAMESPACE = uuid.UUID("6f0a9c5e-6d0f-5b3e-9a86-0f6d0b7c2a41")
# syslog(3)'s levels. A resolved alert is news and no longer trouble.
_LEVELS = {Severity.CRITICAL: 2, Severity.WARNING: 4, Severity.INFO: 6}
_NOTICE = 5


class AlertEdge(AlertFields, frozen=True):
    """What `tunectl monitor` posts to a webhook of format "json" and hands to a hook: one edge of one alert."""

    id: Annotated[str, Meta(min_length=1, description="The same each time this edge is sent, and the Idempotency-Key.")]
    event: Annotated[
        str,
        Meta(description="The same for the firing and the resolve of one event.", extra_json_schema={"format": "uuid"}),
    ]


def event_id(alert: Alert, host: HostId) -> str:
    """The same for the firing and the resolve of one event."""
    return str(uuid.uuid5(_NAMESPACE, "\0".join((host.hostname, alert.rule, alert.subject, alert.event))))


def delivery_id(alert: Alert, host: HostId) -> str:
    """The same each time this transition is sent, and another for every other one: the Idempotency-Key."""
    return f"{event_id(alert, host)}-{alert.status.value}"


def level(alert: Alert) -> int:
    """syslog(3)'s level: 2 critical, 4 warning, 5 notice (resolved), 6 info."""
    return _NOTICE if alert.status is AlertState.RESOLVED else _LEVELS[alert.severity]


def line(alert: Alert) -> str:
    """FrequencyDrop[package0] firing: summary; to do: fix."""
    todo = f"; to do: {alert.fix}" if alert.fix and alert.status is AlertState.FIRING else ""
    summary = alert.summary.rstrip(".") if todo else alert.summary
    return printable(f"{alert.identity} {alert.status.value}: {summary}{todo}")


def fields(alert: Alert, host: HostId) -> dict[str, str]:
    """Everything an alert carries, as text; what is empty is left out."""
    known = {"event": event_id(alert, host), **alert.fields()}
    known |= {name: known.pop(name) for name in ("summary", "fix")}  # last, because a line that is too long is cut
    return {name: printable(str(value)) for name, value in known.items() if value not in (None, "")}


def document(alert: Alert, host: HostId) -> str:
    """tunectl.alert/1."""
    body = AlertEdge(delivery_id(alert, host), event_id(alert, host), **alert.fields())
    return render(Document("alert", host, alert.at, fields_of(body)), "json")
