"""journald and syslog, read back by the real journald; and what happens when neither is there."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.monitor.receivers.samples import HOST, fired, over
from tunectl.address import DeliveryError
from tunectl.monitor.model import Severity
from tunectl.monitor.receivers.logs import encode, entry, line_with_fields, open_journal, open_syslog
from tunectl.monitor.receivers.message import event_id, level, line

ROOT = Path(__file__).parents[3]
JOURNALD = "/usr/lib/systemd/systemd-journald"
NASTY = 'irq "eth0]\\" \n\x1b[31m µ'

# A journald of our own, in a mount name space whose /run is empty; it does not read the kernel's log.
_SCRIPT = r"""
mount -t tmpfs none /run
mkdir -p /run/systemd/journal /run/log/journal /run/systemd/journald.conf.d
printf '[Journal]\nReadKMsg=no\nAudit=no\nStorage=volatile\nForwardToWall=no\n' >/run/systemd/journald.conf.d/x.conf
"$3" 2>/dev/null & own=$!
for turn in $(seq 100); do [ -S /run/systemd/journal/socket ] && break; sleep 0.1; done
[ -S /run/systemd/journal/socket ] || exit 77
"$1" -c "$2"
entries() { journalctl -D /run/log/journal -o json --no-pager SYSLOG_IDENTIFIER=tunectl; }
for turn in $(seq 300); do [ "$(entries | wc -l)" -ge 6 ] && break; sleep 0.1; done
entries
kill $own
"""
_SEND = """
from tests.monitor.receivers.test_logs import HOST, NASTY, fired, over, open_journal, open_syslog
alerts = [fired(), over(fired()), fired(1, summary=NASTY, cpus="")]
open_journal(HOST).deliver(alerts)
open_syslog(HOST, "/run/systemd/journal/dev-log").deliver(alerts)
"""


@pytest.fixture(scope="module")
def entries() -> list[dict[str, str]]:
    """What a real journald made of three alerts, each sent by both sinks."""
    words = ["unshare", "--map-root-user", "--mount", "--pid", "--fork"]
    if not os.path.exists(JOURNALD) or not shutil.which("journalctl"):
        pytest.skip("journald is not installed (Debian package: systemd)")
    if not shutil.which("unshare") or subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("no name spaces for users: cannot start a journald of our own")
    done = subprocess.run(
        [*words, "sh", "-c", _SCRIPT, "sh", sys.executable, _SEND, JOURNALD],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )
    if done.returncode == 77:
        pytest.skip("journald does not start here")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_the_real_journald_has_the_fields(entries: list[dict[str, str]]) -> None:
    first, second, third = (each for each in entries if each["_TRANSPORT"] == "journal")
    assert (first["PRIORITY"], second["PRIORITY"]) == ("2", "5")
    assert first["MESSAGE"].startswith("FrequencyDrop[package0] firing: the firmware permits")
    assert first["MESSAGE_ID"] != second["MESSAGE_ID"]
    assert first["MESSAGE_ID"] == third["MESSAGE_ID"]
    fields = {name: value for name, value in first.items() if name.startswith("TUNECTL_")}
    assert fields["TUNECTL_RULE"] == "FrequencyDrop"
    assert (fields["TUNECTL_OBSERVED"], fields["TUNECTL_EXPECTED"]) == ("1200000", "3500000")
    assert fields["TUNECTL_EVENT"] == second["TUNECTL_EVENT"] == event_id(fired(), HOST)
    assert third["TUNECTL_SUMMARY"] == 'irq "eth0]\\" \\n\\x1b[31m µ'
    assert "TUNECTL_CPUS" not in third


def test_the_real_journald_takes_syslog_lines(entries: list[dict[str, str]]) -> None:
    first, second, third = (each for each in entries if each["_TRANSPORT"] == "syslog")
    assert [each["PRIORITY"] for each in (first, second, third)] == ["2", "5", "2"]
    assert first["SYSLOG_FACILITY"] == "3"
    assert first["SYSLOG_PID"].isdigit()
    assert first["MESSAGE"] == line_with_fields(fired(), HOST)
    assert third["MESSAGE"].count("\n") == 0


def test_a_summary_that_ends_like_a_sentence_goes_on_with_what_to_do() -> None:
    told = line(fired(summary="it runs on CPU 2.", fix="sudo tunectl apply"))
    assert told.endswith(" firing: it runs on CPU 2; to do: sudo tunectl apply")
    assert line(fired(summary="it runs on CPU 2.", fix="")).endswith(" firing: it runs on CPU 2.")


def test_a_value_with_a_newline_cannot_add_a_field() -> None:
    sent = encode({"MESSAGE": "one\nPRIORITY=0", "B": "x"})
    assert sent == b"MESSAGE\n" + (14).to_bytes(8, "little") + b"one\nPRIORITY=0\nB=x\n"


def test_a_datagram_is_bounded() -> None:
    assert len(encode(entry(fired(summary="x" * 10**6, fix="y" * 10**6), HOST))) < 120_000


def test_levels() -> None:
    severities = [level(fired(severity=severity)) for severity in Severity]
    assert severities == [2, 4, 6]
    assert {level(over(fired(severity=severity))) for severity in Severity} == {5}


@pytest.fixture
def full(tmp_path: Path) -> Iterator[str]:
    """A socket whose reader sleeps."""
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as reader:
        reader.bind(path)
        yield path


def test_a_syslog_daemon_with_a_stream(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as daemon:
        daemon.bind(path)
        daemon.listen()
        open_syslog(HOST, path).deliver([fired()])
        taken, _ = daemon.accept()
        with taken:
            message = taken.recv(65536)
    assert message.startswith(b"<26>tunectl[")
    assert message.endswith(b"]\0")


@pytest.mark.parametrize("open_log", [open_journal, open_syslog])
def test_nobody_there(tmp_path: Path, open_log: object) -> None:
    with pytest.raises(DeliveryError) as caught:
        open_log(HOST, str(tmp_path / "gone")).deliver([fired()])  # type: ignore[operator]
    assert caught.value.retry
    assert "No such file" in str(caught.value)


@pytest.mark.parametrize("open_log", [open_journal, open_syslog])
def test_a_daemon_that_does_not_read(full: str, open_log: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tunectl.monitor.receivers.logs._TIMEOUT_S", 0.1)
    notifier = open_log(HOST, full)  # type: ignore[operator]
    with pytest.raises(DeliveryError, match="takes nothing"):
        notifier.deliver([fired()] * 10_000)
