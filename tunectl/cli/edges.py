"""An alert as one line of stdout, for whoever runs `tunectl monitor` in a terminal or reads it through a pipe."""

from __future__ import annotations

import json

from tunectl.model import HostId
from tunectl.monitor.model import Alert
from tunectl.monitor.receivers import message


def edge_line(alert: Alert, host: HostId, fmt: str) -> str:
    """Text, or a tunectl.alert/1 document on one line."""
    if fmt == "json":
        return json.dumps(json.loads(message.document(alert, host)), separators=(",", ":"))
    return f"{alert.at} {alert.severity.value} {message.line(alert)}"
