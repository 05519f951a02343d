"""Webhooks: Alertmanager's API, and one JSON document an alert for anything else.

Secrets stand in files that are read at each try, so that they can be renewed under a running monitor. The token goes
into one header and nowhere else, and only over TLS or to this very host. An address that is a secret has a file, too.
"""

import hashlib
import json
from collections.abc import Sequence

from tunectl import __version__
from tunectl.address import Address, DeliveryError, address_of, secret
from tunectl.errors import UsageError
from tunectl.hostfile.monitor import check_webhook
from tunectl.hostfile.shape import Webhook
from tunectl.model import HostId
from tunectl.monitor.model import Alert, AlertState
from tunectl.monitor.receivers import Receiver
from tunectl.monitor.receivers.message import delivery_id, document
from tunectl.monitor.receivers.metric_rows import label
from tunectl.monitor.receivers.naming import JOB, annotations_of, labels_of
from tunectl.post import Trust, post

_API = "/api/v2/alerts"


def open_webhook(webhook: Webhook, host: HostId, number: int = 0) -> Receiver:
    """The receiver that posts to `webhook`. UsageError, which does not repeat the URL, where it cannot be used."""
    address = check_webhook(webhook, f"monitor.webhooks[{number}]")
    digest = hashlib.sha256((webhook.url_file or webhook.url).encode()).hexdigest()[:8]
    name = f"webhook-{address.host.replace(':', '_') if address else 'file'}-{digest}"
    is_alertmanager = webhook.format == "alertmanager"

    def deliver(alerts: Sequence[Alert]) -> None:
        to = address or _address(webhook)
        if is_alertmanager:
            path = to.path if to.path.endswith(_API) else to.path.rstrip("/") + _API
            body = json.dumps([posted(alert, host) for alert in alerts]).encode()
            _post(webhook, to._replace(path=path), body, {})
            return
        for alert in alerts:
            _post(webhook, to, document(alert, host).encode(), {"Idempotency-Key": delivery_id(alert, host)})

    return Receiver(name, deliver, repeat_s=webhook.resend_s if is_alertmanager else None)


def _address(webhook: Webhook) -> Address:
    """What stands in its url_file. DeliveryError, without the URL, where nothing can be posted there."""
    path = webhook.url_file or ""
    url = secret(path, "url file", private=True)
    said = ""
    try:
        return address_of(url, f"url file {path}", webhook.token_file)
    except UsageError as error:
        said = str(error)
    raise DeliveryError(said)


def posted(alert: Alert, host: HostId) -> dict[str, object]:
    """One postableAlert of Alertmanager's API v2; its labels, which are its identity there, never change.

    A firing alert has no endsAt: Alertmanager ends it a resolve_timeout after it last heard of it, by its own clock.
    """
    made: dict[str, object] = {
        "labels": {**labels_of(alert, host), "job": JOB, "instance": label(host.hostname)},
        "annotations": annotations_of(alert, host),
        "startsAt": alert.since,
    }
    if alert.status is AlertState.RESOLVED:
        made["endsAt"] = alert.at
    return made


def _post(webhook: Webhook, address: Address, body: bytes, headers: dict[str, str]) -> None:
    whole = {"Content-Type": "application/json", "User-Agent": f"tunectl/{__version__}", **headers}
    if webhook.token_file:
        whole["Authorization"] = f"Bearer {secret(webhook.token_file, 'token file')}"
    post(address, body, whole, timeout_s=webhook.timeout_s, trust=Trust(webhook.ca_file))
