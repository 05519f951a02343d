"""The source `latency`: an application's datagrams become windows."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.monitor.live import Live
from tunectl.monitor.model import Freshness, Sample
from tunectl.monitor.sources.latency import SOURCE


def read(live: Live) -> dict[str, Sample]:
    return {sample.quantity: sample for sample in SOURCE.read(live.watched_host)}


def test_datagrams_become_windows(tmp_path: Path) -> None:
    address = str(tmp_path / "latency")
    live = Live(tmp_path, f'[monitor.sla]\nsocket = "{address}"\n')
    assert {sample.freshness for sample in read(live).values()} == {Freshness.STALE}
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"700 " * 999 + b"90000 what", address)
    live.pass_time(1)
    assert read(live)["latency_open_max_ns"].value == 90_000
    live.pass_time(9)
    found = read(live)
    assert (found["latency_p99_9_ns"].value, found["latency_max_ns"].value) == (700, 90_000)
    assert found["latency_count"].value == 1000
    assert found["latency_bad_input"].value == 1
    assert "1 words so far were no latency" in found["latency_max_ns"].reason
    live.pass_time(10)
    found = read(live)
    assert (found["latency_max_ns"].freshness, found["latency_count"].value) == (Freshness.NO_DATA, 0)


def test_where_nothing_ever_came_nothing_is_fresh(tmp_path: Path) -> None:
    live = Live(tmp_path, f'[monitor.sla]\nsocket = "{tmp_path}/latency"\n')
    read(live)
    live.pass_time(30)
    assert {sample.freshness for sample in read(live).values()} == {Freshness.NO_DATA}


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
