"""From [monitor] in the host file to sinks."""

from pathlib import Path

import msgspec
import pytest

from tests.monitor.receivers.samples import HOST
from tunectl.errors import UsageError
from tunectl.hostfile.shape import Hook, Monitor, Webhook
from tunectl.monitor.receivers import open_receivers


def test_each_has_a_name_of_its_own() -> None:
    settings = Monitor(
        webhooks=[
            Webhook("https://alerts.example/a"),
            Webhook("https://alerts.example/b"),
            Webhook("http://[::1]:9093", format="alertmanager"),
            Webhook("https://alerts.example/a"),
        ],
        hooks=[Hook(["/usr/bin/logger", "x"]), Hook(["/usr/bin/logger", "y"])],
    )
    names = [notifier.name for notifier in open_receivers(settings, HOST)]
    assert names[0] == "journal"
    assert len(names) == 6
    assert [name.rsplit("-", 1)[0] for name in names[1:]] == [
        "webhook-alerts.example",
        "webhook-alerts.example",
        "webhook-__1",
        "hook-logger",
        "hook-logger",
    ]
    assert [notifier.name for notifier in open_receivers(settings, HOST)] == names, "a restart finds its spool again"


@pytest.mark.parametrize(("log", "names"), [("journal", ["journal"]), ("syslog", ["syslog"]), ("none", [])])
def test_the_log(log: str, names: list[str]) -> None:
    settings = msgspec.convert({"log": log}, Monitor)
    assert [notifier.name for notifier in open_receivers(settings, HOST)] == names


@pytest.mark.parametrize("seconds", [0, -1, 1e9])
def test_a_time_that_is_none(seconds: float) -> None:
    for field in ("timeout_s", "resend_s"):
        with pytest.raises(msgspec.ValidationError, match=field):
            msgspec.convert({"webhooks": [{"url": "https://alerts.example", field: seconds}]}, Monitor)
    with pytest.raises(msgspec.ValidationError, match="timeout_s"):
        msgspec.convert({"hooks": [{"command": ["/x"], "timeout_s": seconds}]}, Monitor)


def test_the_number_of_what_is_wrong_is_said() -> None:
    with pytest.raises(UsageError, match=r"monitor\.webhooks\[1\]\.url"):
        open_receivers(Monitor(webhooks=[Webhook("https://alerts.example"), Webhook("alerts.example")]), HOST)


def test_the_state_is_all_that_is_written(tmp_path: Path) -> None:
    open_receivers(Monitor(webhooks=[Webhook("https://alerts.example")]), HOST)
    assert not list(tmp_path.iterdir())
