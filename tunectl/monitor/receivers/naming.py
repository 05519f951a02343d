"""What an alert is called and what it says in Alertmanager: the same by Prometheus' rules and by our own webhook.

The labels are its identity there (silences, inhibitions and routes go by them), so nothing is a label that changes
while it fires. Everything else is an annotation. Both are short enough for a label of a metric, since that is how
they come through Prometheus. Pure.
"""

import re

from tunectl.model import HostId
from tunectl.monitor.model import Alert
from tunectl.monitor.receivers.message import fields
from tunectl.monitor.receivers.metric_rows import label

JOB = "tunectl"  # the label `job` on both ways, by which a route takes all our alerts
PARTS = ("cpu", "package", "irq", "knob")  # what a subject is, as the metrics' own labels call it
LABELS = ("alertname", "host", "subject", "severity", *PARTS)
ANNOTATIONS = ("summary", "description", "observed", "expected", "source", "cpus", "event")
PREFIX = "Tunectl"  # Alertmanager's names are everybody's; in our own documents and journal a rule needs none
# Bytes of a text. Stores of metrics refuse longer labels; 2,048 bytes is the default of Mimir and Cortex.
LONGEST = 2000

_CUT = "…"
_NUMBERED = re.compile(r"(cpu|package|irq)(\d+)")


def labels_of(alert: Alert, host: HostId) -> dict[str, str]:
    """The labels of LABELS that this alert has: they are the same from its first notification to its last."""
    known = {
        "alertname": f"{PREFIX}{alert.rule}",
        "host": host.hostname,
        "subject": alert.subject,
        "severity": alert.severity.value,
    }
    if alert.rule == "KnobDrift":
        known["knob"] = alert.subject
    elif match := _NUMBERED.fullmatch(alert.subject):
        known[match[1]] = match[2]
    return {name: label(value) for name, value in known.items() if value}


def annotations_of(alert: Alert, host: HostId) -> dict[str, str]:
    """The annotations of ANNOTATIONS that this alert has, each of at most LONGEST bytes."""
    known = fields(alert, host)
    known["description"] = known.get("fix", "")
    return {name: _short(known[name]) for name in ANNOTATIONS if known.get(name)}


def _short(text: str) -> str:
    data = text.encode()
    return text if len(data) <= LONGEST else data[: LONGEST - len(_CUT.encode())].decode(errors="ignore") + _CUT
