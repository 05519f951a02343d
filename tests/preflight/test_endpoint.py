"""Documents that are posted to a collector: tokens, certificates, what is final, and the same id in each try."""

import hashlib
import json
import ssl
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.monitor.receivers.receiver import UNENDING, Receiver, receiving
from tests.monitor.receivers.test_webhook import certificates, tls
from tests.preflight.test_handing import late, refused_once, waiting
from tests.tuning.calls import killed_at
from tunectl.errors import UsageError
from tunectl.hostfile.report import check_report
from tunectl.hostfile.shape import Report
from tunectl.preflight.handing import Hand, hand_on, open_receiver
from tunectl.preflight.keeping import kept

__all__ = ["certificates"]
ONE, TWO = (json.dumps({"schema": "tunectl.preflight/1", "number": number}).encode() for number in (1, 2))
KEYS = [hashlib.sha256(document).hexdigest()[:32] for document in (ONE, TWO)]


@pytest.fixture
def server() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def to(url: str, **keys: object) -> Hand:
    report = Report(url=url, **keys)  # type: ignore[arg-type]
    check_report(report, "report")
    hand = open_receiver(report, "tx-04")
    assert hand
    return hand


def in_time(server: Receiver) -> Hand:
    """Two seconds for an answer that never comes to its end; for another, as long as a busy machine takes."""
    hasty, patient = (to(server.url, timeout_s=seconds) for seconds in (2, 60))
    return lambda day, document: (hasty if {"hang", *UNENDING} & {*server.acts[:1]} else patient)(day, document)


def private(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def test_what_a_collector_gets(server: Receiver, tmp_path: Path) -> None:
    place = waiting(tmp_path / "state", ONE, TWO)
    token = private(tmp_path / "token", "s3cret\n")
    url = f"{server.url}?query=INSERT+INTO+documents+FORMAT+JSONAsString&insert_deduplication_token={{id}}"
    assert hand_on(place, to(url, token_file=token), print, pause=late) == 0
    assert [request.body["number"] for request in server.taken] == [1, 2]
    assert server.keys() == KEYS
    assert server.taken[0].path.endswith(f"&insert_deduplication_token={KEYS[0]}")
    assert server.taken[0].headers["authorization"] == "Bearer s3cret"
    assert len(kept(place)) == 2, "whatever the collector does with it: the local copies stay"


def test_a_collector_that_is_down_slow_or_breaks_off(server: Receiver, tmp_path: Path) -> None:
    """The last took the document and could not say so: it comes again, under the same id."""
    place, said = waiting(tmp_path / "state", ONE), list[str]()
    server.acts = [503, "hang", "garbage", "redirect", 404, "vanish"]
    assert hand_on(place, in_time(server), said.append, pause=lambda _: None) == 0
    assert [request.key for request in server.requests] == KEYS[:1] * 7
    assert server.keys() == KEYS[:1]
    assert "no answer within 2 s" in said[1]
    assert len(said) == 6
    assert "pa7h-s3cret" not in str(said)


@pytest.mark.parametrize("act", UNENDING)
def test_an_answer_that_does_not_end_is_none(server: Receiver, tmp_path: Path, act: str) -> None:
    """It says 200: who reads no further takes the document for kept."""
    place, said = waiting(tmp_path / "state", ONE), list[str]()
    server.acts = [act]
    assert hand_on(place, in_time(server), said.append, pause=lambda _: None) == 0
    assert [request.key for request in server.requests] == KEYS[:1] * 2
    assert len(said) == 1


def test_what_is_refused_for_good_is_tried_once(server: Receiver, tmp_path: Path) -> None:
    place, said = waiting(tmp_path / "state", ONE, TWO), list[str]()
    server.acts = [413]
    assert hand_on(place, to(server.url), said.append, pause=late) == 1
    assert server.keys() == KEYS[1:]
    assert said[0].startswith("20261130T074712Z.waiting.json is refused, and kept: ")


def test_a_token_that_others_may_read_is_not_sent(server: Receiver, tmp_path: Path) -> None:
    place = waiting(tmp_path / "state", ONE)
    token = tmp_path / "token"
    token.write_text("s3cret")
    token.chmod(0o644)
    said = refused_once(place, to(server.url, token_file=str(token)))
    assert said.startswith(f"token file {token}: others than its owner may read it (mode 0644): chmod 600 {token}")
    assert server.requests == []


def test_a_certificate_of_the_hosts_own(certificates: Path, tmp_path: Path) -> None:
    """The collector lets nobody in without one; a key that others may read is not used."""
    context = tls(certificates, "good")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(certificates / "other.crt")
    key = private(tmp_path / "key", (certificates / "other.key").read_text())
    ca, own = str(certificates / "good.crt"), str(certificates / "other.crt")
    place = waiting(tmp_path / "state", ONE)
    with receiving(context) as server:
        Path(key).chmod(0o640)
        said = refused_once(place, to(server.url, ca_file=ca, certificate_file=own, key_file=key))
        assert said.startswith(f"key file {key}: others than its owner may read it (mode 0640)")
        refused_once(place, to(server.url, ca_file=ca))
        Path(key).chmod(0o600)
        wrong = private(tmp_path / "wrong", (certificates / "good.key").read_text())
        said = refused_once(place, to(server.url, ca_file=ca, certificate_file=own, key_file=wrong))
        assert said.startswith(f"{own} and {wrong}: holds no certificate with its key")
        assert server.taken == []
        hand = to(server.url, ca_file=ca, certificate_file=own, key_file=key)
        assert hand_on(place, hand, print, pause=late) == 0
        assert server.keys() == KEYS[:1]


def test_no_kill_loses_a_document(tmp_path: Path) -> None:
    """Between its answer and our rename nobody can know: it comes again, and its id tells."""
    number = 1
    while True:
        place = waiting(tmp_path / f"state{number}", ONE, TWO)
        with receiving() as server:  # each its own: what a killed one sent may arrive late
            work = partial(hand_on, place, to(server.url), print, pause=late)
            killed = killed_at(number, work)
            work()
            assert server.keys() == KEYS
        if not killed:
            break
        number += 1
    assert number > 4
    assert len(server.taken) == 2


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (Report(url="http://collector.example/x"), "in the clear"),
        (Report(url="ftp://collector.example/x"), "does not begin with https://host"),
        (Report(url="https://collector.example", folder="/mnt/fleet"), "a folder and a url: one of them"),
        (Report(token_file="/etc/tunectl/token"), "report.token_file: goes with url"),
        (Report(url="https://a.example", token_file="token"), "report.token_file: 'token' is no whole path"),
        (Report(url="https://a.example", key_file="/k"), "report.key_file: goes with certificate_file"),
    ],
)
def test_what_cannot_be_is_refused(report: Report, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        check_report(report, "report")
