"""A pcap file as times and sizes."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tunectl.errors import UsageError
from tunectl.experiments.capture import MOST_BYTES, Capture, Message, read_capture

from .captures.make import DATAGRAMS, PATH, SNAP, made_up, pcap, udp

NS = 1_700_000_000 * 10**9
THREE = [(NS, udp(10)), (NS + 5_000, udp(20)), (NS + 9_000, udp(30, vlan=True))]
SIZES = [Message(0, 10), Message(5_000, 20), Message(9_000, 30)]


def read(tmp_path: Path, data: bytes) -> Capture:
    path = tmp_path / "a.pcap"
    path.write_bytes(data)
    return read_capture(path)


def refusal(tmp_path: Path, data: bytes) -> str:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, data)
    return str(caught.value)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("in_ns", [True, False])
def test_both_byte_orders_and_both_units_are_read(tmp_path: Path, order: str, in_ns: bool) -> None:
    assert read(tmp_path, pcap(THREE, order, in_ns)).messages == SIZES


def test_the_shipped_capture_is_what_its_script_makes() -> None:
    assert PATH.read_bytes() == pcap(made_up(), snap=SNAP)
    capture = read_capture(PATH)
    assert len(capture.messages) == DATAGRAMS
    assert capture.others == len(made_up()) - DATAGRAMS > 0
    assert capture.messages == sorted(capture.messages)


def test_a_datagram_that_was_cut_has_its_whole_size(tmp_path: Path) -> None:
    assert read(tmp_path, pcap([(NS, udp(1400))], snap=64)).messages == [Message(0, 1400)]
    # Cut within its headers, nobody can tell.
    assert "holds no UDP datagram" in refusal(tmp_path, pcap([(NS, udp(1400))], snap=38))


def test_times_that_go_back_are_put_in_order(tmp_path: Path) -> None:
    assert read(tmp_path, pcap([THREE[1], THREE[0], THREE[2]])).messages == SIZES


def test_other_packets_are_counted_and_left_out(tmp_path: Path) -> None:
    tcp = bytearray(udp(10))
    tcp[14 + 9] = 6
    later = bytearray(udp(10))
    later[14 + 6 : 14 + 8] = b"\x00\x10"  # a fragment that is not the first
    found = read(tmp_path, pcap([*THREE, (NS, bytes(tcp)), (NS, bytes(later)), (NS, b""), (NS, b"\x01")]))
    assert (len(found.messages), found.others) == (3, 4)


@pytest.mark.parametrize("link", [101, 0, 108, 113, 276])
def test_link_types_of_loopback_and_of_any(tmp_path: Path, link: int) -> None:
    ip = udp(77)[14:]
    head = {0: bytes(4), 108: bytes(4), 101: b"", 113: bytes(14) + b"\x08\x00", 276: b"\x08\x00" + bytes(18)}[link]
    assert read(tmp_path, pcap([(NS, head + ip)], link=link)).messages == [Message(0, 77)]


def test_ipv6_is_read(tmp_path: Path) -> None:
    ip = bytes([0x60, 0, 0, 0]) + struct.pack("!HBB", 18, 17, 1) + bytes(32) + struct.pack("!HHHH", 1, 2, 18, 0)
    assert read(tmp_path, pcap([(NS, bytes(12) + b"\x86\xdd" + ip)])).messages == [Message(0, 10)]


def test_the_last_packet_may_be_cut_off(tmp_path: Path) -> None:
    assert len(read(tmp_path, pcap(THREE)[:-90]).messages) == 2


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is no pcap file"),
        (b"hello, this is a text and no capture", "is no pcap file"),
        (b"\x0a\x0d\x0d\x0a" + bytes(100), "is pcapng, which is not read"),
        (pcap(THREE, link=147), "link type 147 is not known"),
        (pcap([]), "holds no UDP datagram"),
        (pcap(THREE)[:24] + bytes(8) + b"\xff\xff\xff\x7f" + bytes(4), "is damaged at byte 24"),
        (pcap([THREE[0], (NS + 90_000 * 10**9, udp(1))]), "more than a day"),
    ],
)
def test_what_is_no_capture_of_udp_is_one_clear_line(tmp_path: Path, data: bytes, said: str) -> None:
    line = refusal(tmp_path, data)
    assert said in line
    assert "\n" not in line
    assert str(tmp_path) in line


def test_a_file_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file or directory"):
        read_capture(tmp_path / "none.pcap")
    with pytest.raises(UsageError, match="Is a directory"):
        read_capture(tmp_path)


def test_what_is_out_of_order_or_too_long_is_counted(tmp_path: Path) -> None:
    found = read(tmp_path, pcap([(NS + 3, udp(5)), (NS + 1, udp(MOST_BYTES)), (NS + 2, udp(MOST_BYTES + 1))]))
    assert [message.size for message in found.messages] == [MOST_BYTES, MOST_BYTES + 1, 5]
    assert (found.backwards, found.shortened) == (1, 1)
    assert read(tmp_path, pcap(THREE)).backwards == 0


def test_lines_are_scaled_and_bounded() -> None:
    capture = Capture([Message(0, 10), Message(1_000, MOST_BYTES + 1)], 0, 0)
    assert capture.lines(0.5) == f"0 10\n500 {MOST_BYTES}\n"
