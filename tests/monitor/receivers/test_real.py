"""A real Prometheus scrapes us and loads our rules; a real Alertmanager is told, tells on, and hears of the end."""

import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.monitor.delivering import Process
from tests.monitor.receivers.receiver import Receiver, receiving
from tests.monitor.receivers.samples import HOST, fired, over, status
from tests.monitor.tables import INSTALLED
from tunectl.hostfile.shape import Webhook
from tunectl.monitor.delivery_queue import Backoff
from tunectl.monitor.model import Alert
from tunectl.monitor.receivers.naming import ANNOTATIONS
from tunectl.monitor.receivers.prometheus import Endpoint
from tunectl.monitor.receivers.webhook import open_webhook, posted

pytestmark = pytest.mark.slow

SHIPPED = Path(__file__).parents[3] / "tunectl" / "shipped"
PATIENCE_S = 40.0


@contextmanager
def free_port() -> Iterator[int]:
    """A port that no other test is given meanwhile; a program of ours may listen there: socket(7), SO_REUSEADDR."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def ask(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=5) as answer:
        text = answer.read()
    return json.loads(text) if text.startswith((b"{", b"[")) else text


def until(true: Callable[[], Any], what: str) -> Any:
    """The first true answer; an address that does not answer yet is asked again."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            if found := true():
                return found
        except OSError:
            pass
        time.sleep(0.1)
    pytest.fail(f"not within {PATIENCE_S:g} s: {what}")


@contextmanager
def process(place: Path, program: str, *words: str) -> Iterator[None]:
    """A program of our own, in a directory of its own; its output is shown where the test fails."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed (Debian package: {program})")
    place.mkdir(exist_ok=True)
    with (place / "log").open("wb") as log:
        child = subprocess.Popen([found, *words], cwd=place, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            yield
        except BaseException:
            print((place / "log").read_text()[-4000:])
            raise
        finally:
            child.terminate()
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


@contextmanager
def alertmanager(
    place: Path, desk: str, changed: Mapping[str, str] = MappingProxyType({}), port: int = 0
) -> Iterator[str]:
    """The shipped example, with another receiver's address; its own address."""
    text = (SHIPPED / "alertmanager" / "alertmanager.yml").read_text()
    for old, new in {"http://127.0.0.1:9099/": desk, **changed}.items():
        assert old in text
        text = text.replace(old, new)
    place.mkdir()
    (place / "alertmanager.yml").write_text(text)
    words = ("--config.file=alertmanager.yml", "--storage.path=data", "--cluster.listen-address=")
    with (
        nullcontext(port) if port else free_port() as at,
        process(place, "prometheus-alertmanager", *words, f"--web.listen-address=127.0.0.1:{at}"),
    ):
        url = f"http://127.0.0.1:{at}"
        until(lambda: ask(f"{url}/-/ready"), "Alertmanager is ready")
        yield url


@contextmanager
def prometheus(place: Path, endpoint: Endpoint, manager: str) -> Iterator[str]:
    """The shipped example with the shipped rules, faster, and with our addresses."""
    place.mkdir()
    text = (SHIPPED / "prometheus" / "prometheus.yml").read_text()
    for old, new in {
        "127.0.0.1:9750": f"127.0.0.1:{endpoint.port}",
        "127.0.0.1:9093": manager.removeprefix("http://"),
        "15s": "1s",
    }.items():
        assert old in text
        text = text.replace(old, new)
    (place / "prometheus.yml").write_text(text)
    shutil.copy(SHIPPED / "prometheus" / "tunectl.rules.yml", place)
    words = ("--config.file=prometheus.yml", "--storage.tsdb.path=data")
    with free_port() as port, process(place, "prometheus", *words, f"--web.listen-address=127.0.0.1:{port}"):
        url = f"http://127.0.0.1:{port}"
        until(lambda: ask(f"{url}/-/ready"), "Prometheus is ready")
        yield url


def now(seconds: float = 0) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def told(desk: Receiver, status: str, name: str) -> list[dict[str, Any]]:
    """What the desk was told of alerts of this name and status."""
    alerts = [alert for request in desk.taken for alert in request.body["alerts"]]
    return [alert for alert in alerts if alert["status"] == status and alert["labels"]["alertname"] == name]


def shows(url: str) -> set[str]:
    """The subjects of the alerts that Alertmanager shows as active."""
    return {alert["labels"]["subject"] for alert in ask(f"{url}/api/v2/alerts?active=true")}


def states(url: str, name: str) -> list[str]:
    """The states of the alerts of this name: active, or suppressed by a silence or an inhibition."""
    found = ask(f"{url}/api/v2/alerts?active=true&silenced=true&inhibited=true")
    return [alert["status"]["state"] for alert in found if alert["labels"]["alertname"] == name]


def silence(url: str, *matchers: str) -> None:
    """As an operator does it; skips where there is no amtool."""
    amtool = shutil.which("amtool")
    if amtool is None:
        pytest.skip("amtool is not installed (Debian package: prometheus-alertmanager)")
    words = ("silence", "add", f"--alertmanager.url={url}", "--author=test", "--comment=fan is ordered", *matchers)
    subprocess.run([amtool, *words], check=True, capture_output=True)


@pytest.fixture
def desk() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


def test_alertmanager_is_told_that_it_fires_and_that_it_is_over(desk: Receiver, tmp_path: Path) -> None:
    with alertmanager(tmp_path / "am", desk.url) as url:
        queue = Process(tmp_path / "state", open_webhook(Webhook(url, format="alertmanager"), HOST))
        queue.start()
        alert = fired(since=now(-2), at=now(-1))
        queue.post([alert])
        shown = until(lambda: ask(f"{url}/api/v2/alerts"), "the alert is shown")
        assert [each["labels"]["alertname"] for each in shown] == ["TunectlFrequencyDrop"]
        assert shown[0]["labels"]["instance"] == "tx-04"
        assert shown[0]["annotations"]["summary"] == alert.summary
        assert shown[0]["status"]["state"] == "active"
        assert shown[0]["startsAt"].startswith(alert.since[:19])
        assert until(lambda: told(desk, "firing", "TunectlFrequencyDrop"), "the desk is told")
        queue.post([over(alert, at=now())])
        until(lambda: not shows(url), "it is over")
        # The desk hears of it with the next group_interval, a minute later; the test below does not wait that long.
        queue.end()


def test_a_resolve_reaches_the_desk(desk: Receiver, tmp_path: Path) -> None:
    with alertmanager(tmp_path / "am", desk.url, {"group_interval: 1m": "group_interval: 1s"}) as url:
        notifier = open_webhook(Webhook(url, format="alertmanager"), HOST)
        alert = fired(since=now(-2), at=now(-1))
        notifier.deliver([alert])
        until(lambda: told(desk, "firing", "TunectlFrequencyDrop"), "the desk is told that it fires")
        notifier.deliver([over(alert, at=now())])
        resolved = until(lambda: told(desk, "resolved", "TunectlFrequencyDrop"), "the desk is told that it is over")[0]
        assert resolved["startsAt"].startswith(alert.since[:19])


def test_what_fires_outlasts_resolve_timeout_only_if_it_is_said_again(desk: Receiver, tmp_path: Path) -> None:
    with alertmanager(tmp_path / "am", desk.url, {"resolve_timeout: 5m": "resolve_timeout: 2s"}) as url:
        queues = []
        for number, resend_s in enumerate((0.5, 3600.0)):
            webhook = Webhook(f"{url}/{'' if number else '?'}", format="alertmanager", resend_s=resend_s)
            queue = Process(tmp_path / f"state{number}", open_webhook(webhook, HOST))
            queue.start()
            queues.append(queue)
        queues[0].post([fired(0, since=now(-2), at=now())])

        def are_shown() -> bool:
            """Told anew until it is seen: whoever is stopped for two seconds finds it over."""
            queues[1].post([fired(1, since=now(-2), at=now())])
            return shows(url) == {"package0", "package1"}

        until(are_shown, "both are shown")
        until(lambda: shows(url) == {"package0"}, "the one that is not said again is over")
        time.sleep(3)
        until(lambda: shows(url) == {"package0"}, "the other one still fires, or does again after a stop of ours")
        for queue in queues:
            queue.end()


def test_an_alertmanager_that_comes_later_hears_everything(desk: Receiver, tmp_path: Path) -> None:
    with free_port() as port:
        receiver = open_webhook(Webhook(f"http://127.0.0.1:{port}", format="alertmanager"), HOST)
        queue = Process(tmp_path / "state", receiver, backoff=Backoff(0.05, 0.2))
        queue.start()
        alerts: list[Alert] = [fired(number, since=now(-2), at=now()) for number in range(5)]
        queue.post([*alerts, over(alerts[3], at=now())])
        until(lambda: queue.own("failures_total") > 1, "nobody listens")
        with alertmanager(tmp_path / "am", desk.url, port=port) as url:
            until(lambda: shows(url) == {"package0", "package1", "package2", "package4"}, "all that fires is shown")
            until(lambda: queue.own("depth") == 0, "the queue is empty")
            queue.end()


def test_what_the_example_inhibits_and_what_not(tmp_path: Path) -> None:
    """A host that is down, or that nobody watches, has no news; the next host has, and so has another team's alert."""

    def site(name: str, **names: str) -> dict[str, object]:
        return {"labels": {"alertname": name, "severity": "critical", **names}}

    with alertmanager(tmp_path / "am", "http://127.0.0.1:9/") as url:
        sent = [
            site("HostDown", instance="tx-04"),
            posted(fired(), HOST),
            posted(fired(1), HOST._replace(hostname="tx-05")),
            site("DiskFull", instance="tx-04", job="node"),
            site("TunectlMonitorStalled", instance="tx-05", job="tunectl"),
            site("TunectlAlertsWait", instance="tx-05", job="tunectl"),
            site("TunectlAlertsLost", instance="tx-06", job="tunectl"),
        ]
        body = json.dumps(sent).encode()
        asked = urllib.request.Request(f"{url}/api/v2/alerts", body, {"Content-Type": "application/json"})
        urllib.request.urlopen(asked, timeout=PATIENCE_S).close()
        until(lambda: states(url, "TunectlAlertsWait") == ["suppressed"], "the monitor's own news are inhibited")
        until(
            lambda: sorted(states(url, "TunectlFrequencyDrop")) == ["active", "suppressed"], "of the host that is down"
        )
        for name in ("HostDown", "DiskFull", "TunectlMonitorStalled", "TunectlAlertsLost"):
            assert states(url, name) == ["active"], name


def test_prometheus_scrapes_us_loads_our_rules_and_passes_alerts_on(desk: Receiver, tmp_path: Path) -> None:
    endpoint = Endpoint("127.0.0.1", 0)
    seconds = iter(range(100, 10_000))

    def show(*firing: Alert) -> None:
        each = status(firing=firing, seconds=next(seconds))
        endpoint.show(each._replace(snapshot=each.snapshot._replace(at=now())))

    show(fired())
    faster = {"group_interval: 1m": "group_interval: 1s"}
    with (
        alertmanager(tmp_path / "am", desk.url, faster) as manager,
        prometheus(tmp_path / "prometheus", endpoint, manager) as url,
    ):

        def target() -> Any:
            return [each for each in ask(f"{url}/api/v1/targets")["data"]["activeTargets"] if each["health"] == "up"]

        (up,) = until(target, "we are scraped")
        assert (up["labels"]["job"], up["lastError"]) == ("tunectl", "")

        def value(expr: str) -> list[Any]:
            found = ask(f"{url}/api/v1/query?query={urllib.request.quote(expr)}")["data"]["result"]  # type: ignore[attr-defined]
            return [each["value"][1] for each in found]

        assert until(lambda: value("tunectl_package_frequency_hertz"), "our metrics are there") == ["3499123000"]
        assert until(lambda: value('tunectl_cpu_frequency_health{health="stale"}'), "and their health") == ["1"]
        until(lambda: told(desk, "firing", "TunectlFrequencyDrop"), "the alert reaches the desk")
        (alert,) = told(desk, "firing", "TunectlFrequencyDrop")[:1]
        made: Any = posted(fired(), HOST)
        assert alert["labels"] == made["labels"]
        assert alert["annotations"] == {name: made["annotations"][name] for name in ANNOTATIONS} | {
            "runbook_url": f"{INSTALLED}#tunectlfrequencydrop"
        }
        # By our own webhook as well: it is the same alert, and a silence of it holds for both ways.
        open_webhook(Webhook(manager, format="alertmanager"), HOST).deliver([fired(since=now(-2), at=now())])
        silence(manager, "alertname=TunectlFrequencyDrop", "instance=tx-04", "package=0")
        until(lambda: states(manager, "TunectlFrequencyDrop") == ["suppressed"], "it is one alert, and silenced")
        show()
        until(lambda: not states(manager, "TunectlFrequencyDrop"), "and it is over")
        broken = [each for group in ask(f"{url}/api/v1/rules")["data"]["groups"] for each in group["rules"]]
        assert {each["health"] for each in broken} == {"ok"}
    endpoint.close()
