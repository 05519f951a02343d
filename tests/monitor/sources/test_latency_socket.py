"""The application's datagrams: read without waiting, bounded; what is no latency is counted."""

import grp
import os
import re
import socket
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.monitor.sources.test_latency import send
from tunectl.errors import TunectlError
from tunectl.monitor.open_files import allow_many_files
from tunectl.monitor.sources.latency import _VALUES_A_LOOK, LatencySocket

ALERTS = Path(__file__).parents[3] / "docs" / "alerts.md"


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[LatencySocket]:
    found = LatencySocket(str(tmp_path / "latency"))
    yield found
    found.close()


def came(receiver: LatencySocket) -> list[int]:
    """The latencies since the last time."""
    return [value for _, values in receiver.read().batches for value in values]


def test_a_burst_between_two_looks_is_taken_out_as_it_comes(receiver: LatencySocket) -> None:
    """Far more datagrams than net.unix.max_dgram_qlen: a sender that may wait gets all of them in."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(20)
        for number in range(3000):
            sender.sendto(str(number).encode(), receiver.address)
    assert came(receiver) == list(range(3000))


MANY = 10_000


def fill(receiver: LatencySocket) -> int:
    """Sends until the thread takes no more out; how many datagrams of MANY latencies that were."""
    datagrams = 0
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(0.1)
        while True:
            try:
                sender.sendto(b"7 " * MANY, receiver.address)
                datagrams += 1
            except TimeoutError:  # it is full, or the thread has not had its turn yet
                if datagrams * MANY >= _VALUES_A_LOOK:
                    return datagrams


def test_what_waits_is_bounded_and_the_rest_comes_later(receiver: LatencySocket) -> None:
    datagrams = fill(receiver)
    first = len(came(receiver))
    assert _VALUES_A_LOOK <= first < _VALUES_A_LOOK + MANY
    rest = 0
    while got := len(came(receiver)):
        rest += got
    assert first + rest == datagrams * MANY


def test_it_goes_on_after_it_was_full_in_a_process_with_thousands_of_open_files(tmp_path: Path) -> None:
    if allow_many_files() < 2000:
        pytest.skip("this process may not open so many files")
    files = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    receiver = LatencySocket(str(tmp_path / "latency"))
    try:
        fill(receiver)
        while came(receiver):
            pass
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(10)
            for _ in range(100):  # more than the socket holds
                sender.sendto(b"8", receiver.address)
        assert set(came(receiver)) == {8}
    finally:
        receiver.close()
        for file in files:
            os.close(file)


def test_udp_works_and_counts_what_was_dropped() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    receiver = LatencySocket(f"127.0.0.1:{port}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(2000):
            sender.sendto(b"7 " * 500, ("127.0.0.1", port))
        assert set(came(receiver)) == {7}
        while came(receiver):
            pass
        sender.sendto(b"8", ("127.0.0.1", port))
        assert came(receiver) == [8]
    assert receiver.dropped > 0
    receiver.close()


def test_the_path_is_for_the_group_and_goes_with_the_socket(tmp_path: Path) -> None:
    path = tmp_path / "latency"
    receiver = LatencySocket(str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    receiver.close()
    assert not path.exists()


def as_another_user(gid: int, work: Callable[[], object]) -> str:
    """What this raises in a process of nobody with this group; "" where it does not."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.setgroups([])
        os.setgid(gid)
        os.setuid(65534)
        try:
            work()
        except Exception as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as said:
        return said.read()


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that every user may walk through."""
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        os.chmod(place, 0o755)
        yield Path(place)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes other users")


@needs_root
def test_the_named_group_may_send_and_others_may_not(open_place: Path) -> None:
    group = grp.getgrnam("daemon")
    receiver = LatencySocket(str(open_place / "latency"), group=group.gr_name)
    found = (open_place / "latency").stat()
    assert (stat.S_IMODE(found.st_mode), found.st_gid) == (0o660, group.gr_gid)
    assert as_another_user(group.gr_gid, lambda: send(receiver.address, b"7")) == ""
    assert "Permission denied" in as_another_user(65534, lambda: send(receiver.address, b"8"))
    assert came(receiver) == [7]
    receiver.close()


@needs_root
def test_a_group_that_it_may_not_give_leaves_no_socket_and_says_what_is_missing(open_place: Path) -> None:
    os.chmod(open_place, 0o777)
    path = open_place / "latency"
    said = as_another_user(65534, lambda: LatencySocket(str(path), group="daemon"))
    assert "cannot be given to the group daemon: Operation not permitted" in said
    assert "a service needs Group=daemon in a drop-in" in said
    assert not path.exists()


def test_its_own_group_needs_no_right_and_an_unknown_one_is_named(tmp_path: Path) -> None:
    own = grp.getgrgid(os.stat(tmp_path).st_gid).gr_name
    LatencySocket(str(tmp_path / "latency"), group=own).close()
    with pytest.raises(TunectlError, match="there is no group no-such-group"):
        LatencySocket(str(tmp_path / "latency"), group="no-such-group")
    assert not (tmp_path / "latency").exists()


def test_one_that_was_left_behind_is_taken_over_and_one_in_use_is_not(tmp_path: Path) -> None:
    path = tmp_path / "latency"
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    dead.bind(str(path))
    dead.close()
    receiver = LatencySocket(str(path))
    with pytest.raises(TunectlError, match="in use"):
        LatencySocket(str(path))
    send(str(path), b"3")
    assert came(receiver) == [3]
    os.unlink(path)
    newer = LatencySocket(str(path))
    receiver.close()  # the path is not this one's any more
    assert path.exists()
    newer.close()


def test_a_file_is_never_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("keep me")
    with pytest.raises(TunectlError, match="in use"):
        LatencySocket(str(path))
    assert path.read_text() == "keep me"


@pytest.mark.parametrize("address", ["7000", "localhost:", "127.0.0.1:0", "127.0.0.1:99999", "relative/path", ""])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(TunectlError, match="neither a whole path nor HOST:PORT"):
        LatencySocket(address)


def documented(address: str, answer_request: Callable[[], None]) -> None:
    """The loop of docs/alerts.md, until answer_request raises EOFError."""
    found = re.search(r"```python\n(import socket.*?)```", ALERTS.read_text(), re.DOTALL)
    assert found
    with pytest.raises(EOFError):
        exec(found[1].replace("/run/tunectl-monitor/latency", address), {"answer_request": answer_request})


def test_the_sender_in_the_docs_loses_no_late_pair_to_a_full_socket(receiver: LatencySocket) -> None:
    """A stall of 300 ms, and a monitor that takes nothing out until all the late ones were tried: it holds ten."""
    answered, values = 0, list[int]()

    def answer_request() -> None:
        nonlocal answered
        answered += 1
        if answered == 20:
            receiver._lock.acquire()
            time.sleep(0.3)
        if answered == 319:
            receiver._lock.release()
        if answered >= 400:  # on a busy machine the last pairs wait with the sender for a while
            values.extend(came(receiver))
            if len(values) == answered - 1 or answered == 5000:
                raise EOFError

    documented(receiver.address, answer_request)
    assert len(values) == answered - 1
    assert len([value for value in values if value > 1_000_000]) >= 290
    assert max(values) >= 300_000_000


def test_the_sender_in_the_docs_goes_on_where_nobody_listens_and_sends_the_last_thousand(tmp_path: Path) -> None:
    answered, receivers = 0, []

    def answer_request() -> None:
        nonlocal answered
        answered += 1
        if answered == 1500:
            receivers.append(LatencySocket(str(tmp_path / "latency")))
        if answered == 1501:
            raise EOFError

    documented(str(tmp_path / "latency"), answer_request)
    assert len(came(receivers[0])) == 1000
    receivers[0].close()
