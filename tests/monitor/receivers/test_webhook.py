"""Webhooks against a real server that fails in every way a server can: nothing lost, in order, no secret said."""

import json
import logging
import shutil
import socket
import ssl
import subprocess
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Literal

import pytest
from jsonschema import Draft202012Validator

from tests.monitor.delivering import Process
from tests.monitor.receivers.receiver import Receiver, receiving
from tests.monitor.receivers.samples import HOST, fired, over
from tunectl.address import DeliveryError
from tunectl.errors import UsageError
from tunectl.hostfile.shape import Webhook
from tunectl.monitor.receivers.message import delivery_id
from tunectl.monitor.receivers.webhook import open_webhook

TOKEN = "t0ken-that-nobody-may-see"
SECRETS = (TOKEN, "pa7h-s3cret")
SCHEMA = Path(__file__).parents[3] / "docs/schema/tunectl.alert-1.json"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return path


def said_of(error: BaseException) -> str:
    """Everything a log could hold of an exception."""
    return "".join(traceback.format_exception(error)) + repr(error) + str(error) + repr(error.args)


def failure(webhook: Webhook) -> DeliveryError:
    """What one delivery fails with; no secret is in it."""
    with pytest.raises(DeliveryError) as caught:
        open_webhook(webhook, HOST).deliver([fired()])
    error = caught.value
    assert not [secret for secret in SECRETS if secret in said_of(error)]
    assert error.__context__ is None or TOKEN not in said_of(error.__context__)
    return error


def test_a_document_satisfies_its_schema(receiver: Receiver) -> None:
    alerts = [fired(), over(fired()), fired(1, observed=None, expected="2-3", cpus="")]
    open_webhook(Webhook(receiver.url), HOST).deliver(alerts)
    schema = json.loads(SCHEMA.read_text())
    Draft202012Validator.check_schema(schema)
    for alert, request in zip(alerts, receiver.taken, strict=True):
        assert not list(Draft202012Validator(schema).iter_errors(request.body))
        assert request.body["id"] == request.key == delivery_id(alert, HOST)
        assert request.body["status"] == alert.status.value
    first, second, third = (request.body for request in receiver.taken)
    assert first["event"] == second["event"] != third["event"]
    assert len({first["id"], second["id"], third["id"]}) == 3


def test_the_token_is_read_at_each_try(receiver: Receiver, token_file: Path) -> None:
    notifier = open_webhook(Webhook(receiver.url, token_file=str(token_file)), HOST)
    notifier.deliver([fired()])
    token_file.write_text("renewed")
    notifier.deliver([fired(1)])
    assert [request.headers["authorization"] for request in receiver.taken] == [f"Bearer {TOKEN}", "Bearer renewed"]


@pytest.mark.parametrize("content", ["", "two\nlines " + TOKEN, f"{TOKEN}\r\nX-Evil: 1", f"{TOKEN}é", TOKEN * 2000])
def test_a_file_that_holds_no_token(receiver: Receiver, token_file: Path, content: str) -> None:
    token_file.write_text(content)
    assert failure(Webhook(receiver.url, token_file=str(token_file))).retry
    assert not receiver.requests


def test_a_missing_token_file_is_named(receiver: Receiver, tmp_path: Path) -> None:
    error = failure(Webhook(receiver.url, token_file=str(tmp_path / "gone")))
    assert error.retry
    assert "gone: No such file" in str(error)


@pytest.mark.parametrize(
    ("status", "retry"),
    [
        *((status, False) for status in (400, 413, 422)),
        *((status, True) for status in (401, 403, 404, 409, 429, 500, 502, 503, 599)),
    ],
)
def test_what_a_status_means(receiver: Receiver, token_file: Path, status: int, retry: bool) -> None:
    receiver.acts = [status]
    error = failure(Webhook(receiver.url, token_file=str(token_file)))
    assert error.retry is retry
    assert str(status) in str(error)


def test_a_redirect_is_not_followed(receiver: Receiver, token_file: Path) -> None:
    with receiving() as elsewhere:
        receiver.acts = ["redirect"]
        receiver.extra = {"to": elsewhere.url}
        error = failure(Webhook(receiver.url, token_file=str(token_file)))
        assert "redirect" in str(error)
        assert error.retry
        assert not elsewhere.requests


@pytest.mark.parametrize("act", ["hang", "drip", "garbage", "vanish"])
def test_a_server_that_does_not_come_to_an_end_or_answers_nonsense(
    receiver: Receiver, token_file: Path, act: str
) -> None:
    receiver.acts = [act]
    assert failure(Webhook(receiver.url, token_file=str(token_file), timeout_s=0.4)).retry


def test_nobody_listens(token_file: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/pa7h-s3cret"
        assert "Connection refused" in str(failure(Webhook(url, token_file=str(token_file))))


def test_a_pause_that_is_asked_for_is_kept_within_reason(receiver: Receiver) -> None:
    receiver.acts, receiver.extra = [503, 429], {"Retry-After": "7"}
    assert failure(Webhook(receiver.url)).after_s == 7
    receiver.extra = {"Retry-After": "9" * 30}
    assert failure(Webhook(receiver.url)).after_s == 300


def test_a_pause_may_be_a_date(receiver: Receiver) -> None:
    receiver.acts = [429]
    receiver.extra = {"Retry-After": format_datetime(datetime.now(UTC) + timedelta(seconds=250), usegmt=True)}
    pause_s = failure(Webhook(receiver.url)).after_s
    assert pause_s is not None
    assert 0 < pause_s <= 250


@pytest.mark.parametrize(
    ("text", "pause_s"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 0),
        ("Sun Nov  6 08:49:37 1994", 0),
        ("Fri, 06 Nov 2899 08:49:37 GMT", 300),
        ("Fri, 06 Nov 99999999 08:49:37 GMT", None),
        ("Sun, 06 Nov 2094 08:49:37 +9999999999", None),
        ("soon", None),
        ("-5", None),
        ("1_0", None),
    ],
)
def test_a_date_is_kept_within_the_same_reason_and_what_is_neither_is_ignored(
    receiver: Receiver, text: str, pause_s: float | None
) -> None:
    receiver.acts, receiver.extra = [429], {"Retry-After": text}
    assert failure(Webhook(receiver.url)).after_s == pause_s


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://ops:pa7h-s3cret@alerts.example/x", "token_file"),
        ("ftp://alerts.example/pa7h-s3cret", "https://host"),
        ("https:///pa7h-s3cret", "https://host"),
        ("https://alerts.example:99999/pa7h-s3cret", "no URL"),
        ("https://alerts.example/pa7h-s3cret x\r\nX-Evil: 1", "characters"),
    ],
)
def test_an_address_that_cannot_be_used(url: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_webhook(Webhook(url), HOST, 3)
    assert why in str(caught.value)
    assert "monitor.webhooks[3].url: " in str(caught.value)
    assert "pa7h-s3cret" not in said_of(caught.value)


def test_a_token_does_not_cross_the_network_in_the_clear(token_file: Path) -> None:
    with pytest.raises(UsageError, match="https"):
        open_webhook(Webhook("http://alerts.example/", token_file=str(token_file)), HOST)
    for url in ("http://localhost:1/", "http://[::1]:1/", "https://alerts.example/"):
        assert open_webhook(Webhook(url, token_file=str(token_file)), HOST).name.startswith("webhook-")


@pytest.mark.parametrize("form", ["json", "alertmanager"])
def test_a_secret_address_stands_in_a_file_of_its_owners(
    receiver: Receiver, tmp_path: Path, form: Literal["json", "alertmanager"]
) -> None:
    """It is read at each try; a file that others may read is refused with the command that mends it."""
    path = tmp_path / "desk"
    path.write_text(f"{receiver.url}\n")
    path.chmod(0o640)
    webhook = Webhook(url_file=str(path), format=form)
    error = failure(webhook)
    assert error.retry
    assert str(error).endswith(f"(mode 0640): chmod 600 {path}")
    path.chmod(0o600)
    notifier = open_webhook(webhook, HOST)
    assert "s3cret" not in notifier.name
    notifier.deliver([fired()])
    path.write_text(f"{receiver.url}/renewed")
    notifier.deliver([fired()])
    first = "/hooks/pa7h-s3cret"
    end = "/api/v2/alerts" if form == "alertmanager" else ""
    assert [request.path for request in receiver.taken] == [f"{first}{end}", f"{first}/renewed{end}"]


@pytest.mark.parametrize("content", ["", "ftp://x/pa7h-s3cret", "https://a.example/pa7h-s3cret\nhttps://b.example"])
def test_a_file_that_holds_no_address(tmp_path: Path, content: str) -> None:
    path = tmp_path / "desk"
    path.write_text(content)
    path.chmod(0o600)
    assert f"url file {path}" in str(failure(Webhook(url_file=str(path))))


def test_a_token_does_not_follow_an_address_of_a_file_into_the_clear(tmp_path: Path, token_file: Path) -> None:
    path = tmp_path / "desk"
    path.write_text("http://alerts.example/pa7h-s3cret")
    path.chmod(0o600)
    assert "in the clear" in str(failure(Webhook(url_file=str(path), token_file=str(token_file))))


def test_the_name_holds_no_secret_and_tells_receivers_apart() -> None:
    one, other = (open_webhook(Webhook(f"https://alerts.example/pa7h-s3cret/{each}"), HOST).name for each in "ab")
    assert one != other
    assert not [name for name in (one, other) if "s3cret" in name or "/" in name]


# --- TLS


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1, one for another name, and one that is over; each its own authority."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed (Debian package: openssl)")
    place = tmp_path_factory.mktemp("tls")
    for name, san, days in (("good", "IP:127.0.0.1", "2"), ("other", "DNS:elsewhere.example", "2")):
        words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        words += ["-days", days, "-subj", f"/CN={name}", "-addext", f"subjectAltName={san}"]
        words += ["-keyout", str(place / f"{name}.key"), "-out", str(place / f"{name}.crt")]
        subprocess.run(words, check=True, capture_output=True)
    return place


def tls(certificates: Path, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / f"{name}.crt", certificates / f"{name}.key")
    return context


def test_tls_with_the_operators_authority(certificates: Path, token_file: Path) -> None:
    with receiving(tls(certificates, "good")) as server:
        webhook = Webhook(server.url, token_file=str(token_file), ca_file=str(certificates / "good.crt"))
        open_webhook(webhook, HOST).deliver([fired()])
        assert len(server.taken) == 1


@pytest.mark.parametrize(("name", "ca"), [("good", None), ("good", "other"), ("other", "other")])
def test_a_wrong_certificate_is_told_nothing(certificates: Path, token_file: Path, name: str, ca: str | None) -> None:
    with receiving(tls(certificates, name)) as server:
        ca_file = str(certificates / f"{ca}.crt") if ca else None
        error = failure(Webhook(server.url, token_file=str(token_file), ca_file=ca_file))
        assert "certificate is not trusted" in str(error)
        assert error.retry
        assert not server.requests


def test_a_plain_server_behind_https(receiver: Receiver, token_file: Path) -> None:
    error = failure(Webhook(receiver.url.replace("http:", "https:"), token_file=str(token_file)))
    assert "TLS failed" in str(error)


def test_an_authority_that_cannot_be_read(tmp_path: Path) -> None:
    assert "ca_file" in str(failure(Webhook("https://127.0.0.1:1/", ca_file=str(tmp_path / "gone"))))


# --- through the delivery queue


class Clock:
    """A clock that the test turns."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_dead_for_a_minute(
    receiver: Receiver, token_file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The issue's bar, with the minute simulated: nothing lost, order kept, no duplicate after the retry."""
    clock = Clock()
    # Two seconds for who hangs. Who does not has longer: on a busy machine he would take an alert and not be heard.
    hasty, patient = (
        open_webhook(Webhook(receiver.url, token_file=str(token_file), timeout_s=s), HOST) for s in (2, 60)
    )
    either = hasty._replace(
        deliver=lambda alerts: (hasty if receiver.acts[:1] == ["hang"] else patient).deliver(alerts)
    )
    process = Process(tmp_path / "state", either, clock, chance=lambda: 0.5)
    acts: list[int | str] = [503, "hang", "redirect", 500, 401, "garbage", "vanish"]
    receiver.extra = {"to": "http://127.0.0.1:1/"}
    receiver.acts = [*acts, *([503] * 1000)]
    sent = []
    with caplog.at_level(logging.DEBUG):
        for second in range(60):
            transitions = [fired(second)] if second % 3 == 0 else [over(fired(second - 1))] if second % 3 == 1 else []
            sent += transitions
            process.post(transitions)
            process.step()
            clock.now_s += 1
        assert 7 <= len(receiver.requests) <= 12, "back-off: not each second, and not given up"
        receiver.acts = []
        for _ in range(200):
            clock.now_s += process.step() + 0.001
    assert receiver.keys() == [delivery_id(alert, HOST) for alert in sent]
    assert (process.own("depth"), process.own("lost_total")) == (0, 0)
    assert process.own("delivered_total") == len(sent) == 40
    # Only the alert whose acknowledgement was lost on the way came twice, under one id.
    assert len(receiver.taken) == len(sent) + 1
    assert caplog.text.count("alerts wait") == 1
    assert not [secret for secret in SECRETS if secret in caplog.text]


# --- Alertmanager's form: what it is told, tests/golden/expected/alert-webhook-alertmanager.txt


@pytest.mark.parametrize("tail", ["", "/", "/api/v2/alerts"])
def test_the_path_of_alertmanager(receiver: Receiver, tail: str) -> None:
    url = f"http://127.0.0.1:{receiver.server_address[1]}/prefix{tail}"
    notifier = open_webhook(Webhook(url, format="alertmanager"), HOST)
    notifier.deliver([fired(), fired(1)])
    assert [request.path for request in receiver.taken] == ["/prefix/api/v2/alerts"]
    assert len(receiver.taken[0].body) == 2
    assert notifier.repeat_s == 60
