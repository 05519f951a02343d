"""sd_notify: what a listening socket gets, datagram by datagram."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tunectl.monitor.notify import Notify, open_notify


@pytest.fixture(params=["path", "abstract"])
def listener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    """A datagram socket as systemd has it, and its name as in NOTIFY_SOCKET."""
    name = f"@tunectl-test-{os.getpid()}" if request.param == "abstract" else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind("\0" + name[1:] if name.startswith("@") else name)
        sock.settimeout(5)
        yield name, sock


def test_one_datagram_a_message(listener: tuple[str, socket.socket]) -> None:
    name, sock = listener
    notify = Notify(name, 4.0)
    assert notify.ready("two\nlines")
    assert sock.recv(4096) == b"READY=1\nSTATUS=two lines"
    assert notify.ready("\x1b[31mred")
    assert sock.recv(4096) == b"READY=1\nSTATUS=\\x1b[31mred"
    assert notify.send(WATCHDOG=1)
    assert sock.recv(4096) == b"WATCHDOG=1"
    assert notify.reloading()
    first, second = sock.recv(4096).decode().split("\n")
    assert first == "RELOADING=1"
    assert int(second.removeprefix("MONOTONIC_USEC=")) > 0
    assert notify.stopping("SIGTERM came")
    assert sock.recv(4096) == b"STOPPING=1\nSTATUS=SIGTERM came"


def test_what_systemd_gives_is_taken_from_the_environment() -> None:
    environ = {"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7", "PATH": "/bin"}
    notify = open_notify(environ, pid=7)
    assert (notify.address, notify.watchdog_s, notify.ping_s) == ("/run/x", 30.0, 15.0)
    assert environ == {"PATH": "/bin"}


@pytest.mark.parametrize(
    ("environ", "is_service"),
    [
        ({"NOTIFY_SOCKET": "/run/x"}, True),
        ({"SYSTEMD_EXEC_PID": "7"}, True),  # Type=simple
        ({"SYSTEMD_EXEC_PID": "8", "INVOCATION_ID": "of the service that the terminal is in"}, False),
        ({}, False),
    ],
)
def test_what_systemd_started_itself_is_a_service(environ: dict[str, str], is_service: bool) -> None:
    assert open_notify(environ, pid=7).is_service is is_service


@pytest.mark.parametrize(
    ("environ", "watchdog_s"),
    [
        ({"NOTIFY_SOCKET": "/run/x"}, None),
        ({"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "2000000"}, 2.0),
        ({"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "8"}, None),  # meant for another
        ({"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "soon"}, None),
        ({"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "0"}, None),
        ({"NOTIFY_SOCKET": "vsock:2:1", "WATCHDOG_USEC": "2000000"}, None),
        ({}, None),
    ],
)
def test_watchdog(environ: dict[str, str], watchdog_s: float | None) -> None:
    assert open_notify(environ, pid=7).watchdog_s == watchdog_s


def test_nobody_listens(tmp_path: Path) -> None:
    assert not Notify().ready("x")
    assert not Notify(str(tmp_path / "gone")).ready("x")
    assert not Notify("/" + "x" * 200).ready("x")  # longer than a socket's name can be
