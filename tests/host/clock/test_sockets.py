"""Whom a daemon's socket is believed: nobody who could be anybody, and nobody who keeps us waiting."""

import os
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.nobody import needs_root
from tests.starter import DROP
from tunectl.host import datagrams, linuxptp
from tunectl.host.datagrams import TIMEOUT_S, exchange, unix_peer
from tunectl.host.linuxptp import read_ptp_clock
from tunectl.host.sysroot import Sysroot
from tunectl.host.timekeepers import Timekeeper

HOST = Sysroot("/")
US = os.geteuid()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has an answer to come waits for it as long as a busy machine takes."""
    for module in (datagrams, linuxptp):
        monkeypatch.setattr(module, "TIMEOUT_S", 60.0)


@contextmanager
def serving(path: Path, answer: Callable[[bytes], list[bytes]]) -> Iterator[None]:
    """A daemon of this user at a path."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(path))

        def serve() -> None:
            while True:
                asked, sender = server.recvfrom(2048)
                if not asked:
                    return
                for each in answer(asked):
                    server.sendto(each, sender)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ending:
            ending.connect(str(path))
            ending.send(b"")
        thread.join(5)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory of this user's alone."""
    tmp_path.chmod(0o755)
    return tmp_path


def below(path: Path) -> str:
    return str(path).lstrip("/")


def asked(path: Path, fits: Callable[[bytes], bool] = lambda _: True, trusted: frozenset[int] | None = None) -> bytes:
    users = frozenset({0, US}) if trusted is None else trusted
    with unix_peer(HOST, below(path), users) as asking:
        return exchange(asking, b"?", fits, users)


@pytest.mark.usefixtures("patient")
def test_the_first_answer_that_fits(place: Path) -> None:
    with serving(place / "s", lambda _: [b"no", b"x" * 60_000, b"yes"]):
        assert asked(place / "s", lambda answer: answer == b"yes") == b"yes"


@pytest.mark.parametrize("answers", [[], [b"no"] * 50])
def test_nobody_waits_for_longer_than_the_limit(place: Path, answers: list[bytes]) -> None:
    began = time.monotonic()
    with serving(place / "s", lambda _: answers), pytest.raises(TimeoutError, match="gave no answer"):
        asked(place / "s", lambda _: False)
    assert time.monotonic() - began < TIMEOUT_S + 60  # it ends; how soon, a busy machine decides


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_folder_that_others_write_is_not_believed(place: Path, mode: int) -> None:
    os.chown(place, US, 65534) if US == 0 else None
    place.chmod(mode)
    with serving(place / "s", lambda _: [b"yes"]), pytest.raises(PermissionError, match="not asked, because"):
        asked(place / "s")


@needs_root
def test_a_users_own_socket_is_not_believed(place: Path) -> None:
    with serving(place / "s", lambda _: [b"yes"]):
        os.chown(place / "s", 65534, 65534)
        with pytest.raises(PermissionError, match="is no socket of the daemon's"):
            asked(place / "s")


@pytest.mark.parametrize("make", [lambda path: path.write_text(""), os.mkfifo, os.mkdir])
def test_what_is_no_socket_is_not_opened(place: Path, make: Callable[[Path], object]) -> None:
    make(place / "s")
    with pytest.raises(PermissionError, match="is no socket of the daemon's"):
        asked(place / "s")


@needs_root
@pytest.mark.usefixtures("patient")
def test_a_link_leads_where_a_user_may_not_choose(place: Path) -> None:
    users = place / "users"
    users.mkdir()
    (place / "s").symlink_to(users / "s")
    with serving(users / "s", lambda _: [b"yes"]):
        assert asked(place / "s") == b"yes"
        os.chown(users, 65534, 65534)
        with pytest.raises(PermissionError, match="belongs to UID 65534"):
            asked(place / "s")


@needs_root
def test_a_user_cannot_put_an_answer_in_between(place: Path) -> None:
    """The kernel lets nobody but the peer send to a connected socket: a user's try is refused."""
    said: list[str] = []

    def answer(_: bytes) -> list[bytes]:
        script = (
            "import socket,sys\ns=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM)\n"
            "try: s.sendto(b'evil', chr(0) + sys.argv[1])\nexcept PermissionError: print('refused')\n"
        )
        name = asking.getsockname()[1:].decode()  # not to every name there is: some are other tests' own
        ran = subprocess.run([*DROP, sys.executable, "-c", script, name], cwd="/", capture_output=True, text=True)
        said.append(ran.stdout + ran.stderr)
        return [b"true"]

    with serving(place / "s", answer):
        users = frozenset({0})
        with unix_peer(HOST, below(place / "s"), users) as asking:
            assert exchange(asking, b"?", lambda _: True, users, time.monotonic() + 60) == b"true"
    assert said == ["refused\n"]


def test_an_answer_of_another_user_is_passed_over(place: Path) -> None:
    with (
        serving(place / "s", lambda _: [b"yes"]),
        unix_peer(HOST, below(place / "s"), {0, US}) as asking,
        pytest.raises(TimeoutError),
    ):
        exchange(asking, b"?", lambda _: True, {US + 1})


@pytest.mark.usefixtures("patient")
def test_nothing_is_left_behind(place: Path) -> None:
    with serving(place / "s", lambda _: [b"yes"]):
        before = set(os.listdir(place))
        asked(place / "s")
        assert set(os.listdir(place)) == before
        assert stat.S_ISSOCK((place / "s").stat().st_mode)


@needs_root
@pytest.mark.parametrize(
    "answer",
    [b"", b"\x0d", bytes(54), bytes(range(60)), b"\x0d" * 1400, b"\xff" * 1500],
    ids=range(6),
)
def test_a_ptp4l_that_answers_rubbish_is_said_to_be_silent(place: Path, answer: bytes) -> None:
    keeper = Timekeeper("ptp4l", 1, ("--uds_address", str(place / "s")))
    with (
        serving(place / "s", lambda _: [answer]),
        pytest.raises(OSError, match=f"gave no answer within 2 s at {place}/s"),
    ):
        read_ptp_clock(HOST, keeper)


def managed(asked: bytes, kind: int, number: int, data: bytes) -> bytes:
    """The answer to a management message (IEEE 1588-2008, 15.4)."""
    own, sequence = asked[20:30], asked[30:32]
    size = 54 + len(data)
    head = bytes([0x0D, 2]) + size.to_bytes(2, "big") + bytes(16) + bytes(10) + sequence + bytes([4, 0x7F])
    tlv = kind.to_bytes(2, "big") + (2 + len(data)).to_bytes(2, "big") + number.to_bytes(2, "big")
    return head + own + bytes([0, 0, 2, 0]) + tlv + data


@needs_root
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(("log_interval", "interval_s"), [(-3, 0.125), (0, 1.0), (3, 8.0), (127, 16.0)])
def test_a_ptp4l_says_when_it_last_heard_a_sync(place: Path, log_interval: int, interval_s: float) -> None:
    told = {
        0x2000: bytes([2, 0]) + (2).to_bytes(2, "big") + bytes(16),  # it has two ports, and follows at the second
        0x2001: struct.pack("!Hqq", 1, 90 << 16, 300 << 16),
        0x2002: bytes(32),
        0x2003: struct.pack("!hBB", 37, 0, 0x20),
        0xC004: bytes(10) + bytes([9, 0, 2]) + b"v0",
        0xC000: struct.pack("!qqiiH12xi8s", 90, 1_795_879_501_709_249_285, 0, 0, 0, 1, bytes(8)),
    }
    ports = iter([(6, 0), (9, log_interval)])  # its state, and logSyncInterval

    def answer(asked: bytes) -> list[bytes]:
        number = int.from_bytes(asked[52:54], "big")
        if number == 0x2004:
            state, log = next(ports)
            return [managed(asked, 1, number, struct.pack("!10sBbqbBbBbB", bytes(10), state, 0, 0, 1, 3, log, 1, 0, 2))]
        return [managed(asked, 1, number, told[number])]

    with serving(place / "s", answer):
        found = read_ptp_clock(HOST, Timekeeper("ptp4l", 1, ("--uds_address", str(place / "s"))))
    assert (found.state, found.offset_ns, found.path_delay_ns) == ("slave", 90.0, 300.0)
    assert (found.heard_ns, found.sync_interval_s) == (1_795_879_501_709_249_285, interval_s)


@needs_root
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    ("kind", "number", "data"), [(2, 0x2000, bytes(20)), (1, 0x2001, bytes(20)), (1, 0x2000, b"")], ids=range(3)
)
def test_a_ptp4l_that_refuses_says_so(place: Path, kind: int, number: int, data: bytes) -> None:
    """An error status, another data set than was asked for, and one that is too short."""

    keeper = Timekeeper("ptp4l", 1, ("--uds_address", str(place / "s")))
    with (
        serving(place / "s", lambda asked: [managed(asked, kind, number, data)]),
        pytest.raises(OSError, match=r"it refuses data set 0x2000|is too short"),
    ):
        read_ptp_clock(HOST, keeper)


@needs_root
def test_without_its_socket_it_is_named(place: Path) -> None:
    with pytest.raises(OSError, match=f"there is no socket {place}/s"):
        read_ptp_clock(HOST, Timekeeper("ptp4l", 1, ("--uds_address", str(place / "s"))))
