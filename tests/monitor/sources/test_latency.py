"""The source `latency`: an application's datagrams become windows."""

import socket
import time
from pathlib import Path

import pytest

from tests.monitor.live import Live
from tests.monitor.series import Watch
from tunectl.monitor.model import Freshness, Sample
from tunectl.monitor.sources.latency import SOURCE
from tunectl.monitor.watched_host import Lasting


def read(live: Live) -> dict[str, Sample]:
    return {sample.quantity: sample for sample in SOURCE.read(live.watched_host)}


class Application(Live):
    """This machine under watch, and an application that sends to the socket `latency`; looked at once."""

    def __init__(self, place: Path, more: str = "") -> None:
        self.address = str(place / "latency")
        super().__init__(place, f'[monitor.sla]\nsocket = "{self.address}"\n{more}')
        self.first = read(self)

    def send(self, data: bytes) -> None:
        send(self.address, data)


def send(address: str, data: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(data, address)


def test_datagrams_become_windows(tmp_path: Path) -> None:
    live = Application(tmp_path)
    assert {sample.freshness for sample in live.first.values()} == {Freshness.STALE}
    live.send(b"700 " * 999 + b"90000 what")
    live.pass_time(1)
    assert read(live)["latency_open_max_ns"].value == 90_000
    live.pass_time(9)
    found = read(live)
    assert (found["latency_p99_9_ns"].value, found["latency_max_ns"].value) == (700, 90_000)
    assert found["latency_count"].value == 1000
    assert found["latency_bad_input"].value == 1
    live.pass_time(10)
    assert read(live)["latency_max_ns"].value == 90_000  # windows that ended since have it
    live.pass_time(1)
    found = read(live)
    assert (found["latency_max_ns"].freshness, found["latency_count"].value) == (Freshness.NO_DATA, 0)


def test_pairs_are_beside_plain_latencies_and_bad_ones_are_named(tmp_path: Path) -> None:
    live = Application(tmp_path, "p99_9_ns = 20000\n")
    live.send(b"500 1764000000000000000:1764000000000090000 900:800 77")
    live.pass_time(10)
    found = read(live)
    assert (found["latency_max_ns"].value, found["latency_bad_pairs"].value) == (90_000, 1)
    assert (found["latency_missed"].value, found["latency_bad_input"].value) == (1, 0)


def test_a_sender_of_junk_only_is_heard_and_named(tmp_path: Path) -> None:
    live = Application(tmp_path)
    live.send(b"NaN -1 \x1b[31m")
    live.pass_time(10)
    found = read(live)
    assert found["latency_bad_input"].value == 3
    assert found["latency_max_ns"].freshness is Freshness.NO_DATA
    assert 'so far: 3; lately "\\x1b[31m"' in found["latency_max_ns"].reason


def test_what_came_before_an_edge_is_not_counted_after_it(tmp_path: Path) -> None:
    """The thread keeps when each came, so a slow look moves nothing: at 11 s all of it is still in the window."""
    live = Application(tmp_path)
    kept = live.watched_host._lasting._there["latency"][1]
    live.send(b"7 8")
    while not kept.socket._held:
        time.sleep(0.001)
    live.pass_time(12.5)
    live.send(b"9")
    found = read(live)
    assert found["latency_open_max_ns"].value == 9
    assert (found["latency_max_ns"].value, found["latency_count"].value) == (9, 0)


def test_where_nothing_ever_came_nothing_is_fresh(tmp_path: Path) -> None:
    live = Application(tmp_path)
    live.pass_time(30)
    assert {sample.freshness for sample in read(live).values()} == {Freshness.NO_DATA}


def lost_after(live: Live, watch: Watch, seconds: int) -> str:
    """What SourceLost says after so many snapshots, a second apart; "" where it does not fire."""
    for _ in range(seconds):
        live.pass_time(1)
        watch.see(list(SOURCE.read(live.watched_host)))
    return "".join(alert.summary for alert in watch.alerts.firing if alert.identity == "SourceLost[latency]")


@pytest.mark.parametrize(("later", "named"), [([], ""), ([b"?? 900:800"], '; lately "??"')])
def test_silence_after_traffic_is_told_and_so_is_junk_alone(tmp_path: Path, later: list[bytes], named: str) -> None:
    live, watch = Application(tmp_path, "window_s = 1\nmax_ns = 100000\n"), Watch()
    for _ in range(4):
        live.send(b"700 800")
        assert lost_after(live, watch, 1) == ""
    for _ in range(8):  # five that know of nothing, after those whose slots have what came last
        for junk in later:
            live.send(junk)
        said = lost_after(live, watch, 1)
    assert said.startswith("source latency has no data: nothing came in the last window")
    assert said.endswith(named)
    live.send(b"700")
    assert lost_after(live, watch, 1)
    for _ in range(3):
        live.send(b"700")
        said = lost_after(live, watch, 1)
    assert said == ""


def test_an_application_that_sends_once_a_window_is_not_lost(tmp_path: Path) -> None:
    live, watch = Application(tmp_path, "window_s = 10\n"), Watch()
    for _ in range(6):
        live.send(b"700 junk")
        assert lost_after(live, watch, 10) == ""


def test_a_path_that_somebody_removed_is_bound_again(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    live, watch = Application(place), Watch()
    live.send(b"700")
    (place / "latency").unlink()
    assert lost_after(live, watch, 1) == ""
    live.send(b"800")  # it is there again, and what came before is still in the window
    live.pass_time(0.5)
    read(live)
    live.pass_time(9)
    found = read(live)
    assert (found["latency_count"].value, found["latency_max_ns"].value) == (2, 800)
    (place / "latency").unlink()
    place.rename(tmp_path / "gone")
    assert "No such file" in lost_after(live, watch, 5)
    place.mkdir()
    assert "No such file" in lost_after(live, watch, 1)  # it fires until it was good for a while
    live.send(b"900")
    assert lost_after(live, watch, 3) == ""


def test_a_path_that_another_program_has_is_left_to_it_and_told(tmp_path: Path) -> None:
    address = tmp_path / "latency"
    live, watch = Application(tmp_path), Watch()
    address.unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(str(address))
        assert "in use" in lost_after(live, watch, 5)
        live.watched_host.close()
        assert address.exists()


def test_a_flood_of_which_the_most_was_dropped_is_known_while_it_is_in_the_window(tmp_path: Path) -> None:
    """The last datagrams are the ones that are dropped: no later one tells of them."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        where = probe.getsockname()
    live = Live(tmp_path, f'[monitor.sla]\nwindow_s = 10\nsocket = "127.0.0.1:{where[1]}"\n')
    read(live)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"7", where)
        live.pass_time(10)
        assert read(live)["latency_window_dropped"].value == 0
        for _ in range(3000):
            sender.sendto(b"7 " * 500, where)
    live.pass_time(1)
    found = read(live)
    dropped = found["latency_dropped"].value
    assert isinstance(dropped, int)
    assert dropped > 0
    assert found["latency_window_dropped"].value == dropped
    live.pass_time(10)
    assert read(live)["latency_window_dropped"].value == dropped
    live.pass_time(1)
    found = read(live)
    assert (found["latency_window_dropped"].value, found["latency_dropped"].value) == (0, dropped)
    live.watched_host.close()


SLA = '[monitor.sla]\nwindow_s = 1\np99_9_ns = 20000\nsocket = "{}"\n'


@pytest.mark.parametrize(
    ("before", "after", "is_same"),
    [
        ("", "", True),
        ("", "max_ns = 500000\n", True),
        ("window_s = 1", "window_s = 1.5", False),
        ("p99_9_ns = 20000", "p99_9_ns = 30000", False),
        ("/latency", "/elsewhere", False),
    ],
)
def test_what_came_just_before_a_reload_is_judged_after_it(
    tmp_path: Path, before: str, after: str, is_same: bool
) -> None:
    address, lasting = tmp_path / "latency", Lasting()
    sla = SLA.format(address)
    live = Live(tmp_path, sla, lasting)
    read(live)
    inode = address.stat().st_ino
    send(str(address), b"700 " * 1000)
    live.pass_time(1)
    assert read(live)["latency_missed"].value == 0
    send(str(address), b"90000 " * 30)
    live.watched_host.close()
    live = Live(tmp_path, sla.replace(before, after) if before else sla + after, lasting, live.clock + 0.03)
    found = read(live)
    assert ("latency_missed" in found) == is_same
    assert (address.exists() and address.stat().st_ino == inode) == is_same
    live.pass_time(1.5)
    found = read(live)
    assert (found["latency_missed"].value, found["latency_max_ns"].value) == (30, 90_000)
    lasting.close()
    assert not address.exists()


def test_a_reload_that_asks_for_no_socket_closes_it(tmp_path: Path) -> None:
    address, lasting = tmp_path / "latency", Lasting()
    read(Live(tmp_path, SLA.format(address), lasting))
    assert address.exists()
    assert read(Live(tmp_path, "", lasting))["latency_max_ns"].freshness is Freshness.ABSENT
    assert not address.exists()


def test_a_socket_that_cannot_be_had_is_tried_again(tmp_path: Path) -> None:
    place = tmp_path / "later"
    live = Live(tmp_path, f'[monitor.sla]\nsocket = "{place}/latency"\n')
    found = read(live)
    assert found["latency_max_ns"].freshness is Freshness.NO_DATA
    assert "No such file" in found["latency_max_ns"].reason
    place.mkdir()
    live.pass_time(1)
    assert read(live)["latency_max_ns"].freshness is Freshness.STALE


def test_without_a_socket_there_is_none(tmp_path: Path) -> None:
    (sample,) = SOURCE.read(Live(tmp_path, "").watched_host)
    assert sample.freshness is Freshness.ABSENT
