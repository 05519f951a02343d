"""A pcap file as times and sizes."""

import gzip
import struct
from pathlib import Path

import pytest

from tunectl.errors import UsageError
from tunectl.experiments.capture import MOST_BYTES, Capture, Message, Replay, read_capture

from .pcaps import DATAGRAMS, SNAP, made_up, pcap, udp

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


def test_a_feed_is_read_in_the_order_of_its_times(tmp_path: Path) -> None:
    capture = read(tmp_path, pcap(made_up(), snap=SNAP))
    assert len(capture.messages) == DATAGRAMS
    assert capture.others == len(made_up()) - DATAGRAMS > 0
    assert capture.messages == sorted(capture.messages)


def test_a_datagram_that_was_cut_has_its_whole_size(tmp_path: Path) -> None:
    assert read(tmp_path, pcap([(NS, udp(1400))], snap=64)).messages == [Message(0, 1400)]
    # Cut within its headers, nobody can tell.
    assert "1 of 1 packets could not be followed" in refusal(tmp_path, pcap([(NS, udp(1400))], snap=38))


@pytest.mark.parametrize("kept", [16 + 41, 16, 3])
def test_a_file_that_ends_within_a_packet_says_so(tmp_path: Path, kept: int) -> None:
    """As a tcpdump that was killed leaves it; the packet that is not whole is no message."""
    whole = pcap(THREE[:2])
    found = read(tmp_path, (whole + pcap(THREE[2:])[24:])[: len(whole) + kept])
    assert (found.messages, found.cut_bytes) == (SIZES[:2], kept)
    assert read(tmp_path, whole).cut_bytes == 0


def test_a_compressed_file_is_called_so(tmp_path: Path) -> None:
    assert "is compressed" in refusal(tmp_path, gzip.compress(pcap(THREE)))


def test_times_that_go_back_are_put_in_order(tmp_path: Path) -> None:
    assert read(tmp_path, pcap([THREE[1], THREE[0], THREE[2]])).messages == SIZES


def test_other_packets_are_counted_and_left_out(tmp_path: Path) -> None:
    tcp = bytearray(udp(10))
    tcp[14 + 9] = 6
    later = bytearray(udp(10))
    later[14 + 6 : 14 + 8] = b"\x00\x10"  # a fragment that is not the first
    found = read(tmp_path, pcap([*THREE, (NS, bytes(tcp)), (NS, bytes(later)), (NS, b""), (NS, b"\x01")]))
    assert (len(found.messages), found.others, sum(found.unfollowed.values())) == (3, 2, 2)


IP4 = udp(77)[14:]
UDP = IP4[20:]


def ip6(protocol: int, body: bytes) -> bytes:
    return bytes([0x60, 0, 0, 0]) + struct.pack("!HBB", len(body), protocol, 1) + bytes(32) + body


def extension(protocol: int, length: int) -> bytes:
    """A header of IPv6 behind which `protocol` follows."""
    return bytes([protocol, length // 8 - 1]) + bytes(length - 2)


def frame(kind: int, body: bytes) -> bytes:
    return bytes(12) + struct.pack("!H", kind) + body


@pytest.mark.parametrize(
    "packet",
    [
        *(frame(tag, struct.pack("!HHHH", 100, 0x8100, 7, 0x0800) + IP4) for tag in (0x8100, 0x88A8, 0x9100, 0x9200)),
        frame(0x86DD, ip6(17, UDP)),
        frame(0x86DD, ip6(0, extension(60, 8) + extension(43, 16) + extension(17, 24) + UDP)),
        frame(0x86DD, ip6(51, bytes([17, 4]) + bytes(22) + UDP)),  # AH counts in words of four bytes
        frame(0x86DD, ip6(44, bytes([17, 0, 0, 1]) + bytes(4) + UDP)),  # the first fragment has the whole length
        frame(0x86DD, ip6(4, IP4)),
        frame(0x8847, b"\x00\x01\x00\x40\x00\x02\x01\x40" + IP4),
        frame(0x8864, b"\x11\x00\x00\x01\x00\x69\x00\x21" + IP4),
        frame(0x8864, b"\x11\x00\x00\x01\x00\x69\x00\x57" + ip6(17, UDP)),
        frame(8 + len(IP4), b"\xaa\xaa\x03\x00\x00\x00\x08\x00" + IP4),
        frame(0x0800, b"\x46" + IP4[1:20] + bytes(4) + UDP),  # with an option
    ],
)
def test_udp_is_followed_through_what_stands_before_it(tmp_path: Path, packet: bytes) -> None:
    found = read(tmp_path, pcap([(NS, packet)]))
    assert (found.messages, found.others, found.unfollowed) == ([Message(0, 77)], 0, {})


@pytest.mark.parametrize(
    "packet",
    [
        frame(0x88E5, bytes(60)),  # MACsec
        frame(0x8100, struct.pack("!HH", 7, 0xD28B) + bytes(60)),
        frame(0x8847, b"\x00\x01\x01\x40" + bytes(60)),  # a pseudowire
        frame(0x0800, IP4[:9] + b"\x2f" + IP4[10:]),  # GRE
        frame(0x86DD, ip6(50, UDP)),
        frame(0x86DD, ip6(0, extension(17, 8))),  # and cut
        frame(0x86DD, ip6(17, bytes(8))),  # a jumbogram
    ],
)
def test_what_cannot_be_followed_is_not_called_another_kind(tmp_path: Path, packet: bytes) -> None:
    assert "1 of 2 packets could not be followed" in refusal(tmp_path, pcap([(NS, packet), (NS, frame(0x0806, b""))]))
    found = read(tmp_path, pcap([(NS, packet), (NS, udp(5))]))
    assert (found.messages, found.others, sum(found.unfollowed.values())) == ([Message(0, 5)], 0, 1)


@pytest.mark.parametrize(
    "packet",
    [
        frame(0x88CC, b""),
        frame(38, b"\x42\x42\x03" + bytes(35)),  # STP
        frame(0x8864, b"\x11\x00\x00\x01\x00\x0a\xc0\x21" + bytes(8)),  # PPP's own
        frame(0x86DD, ip6(0, extension(58, 8) + bytes(8))),
        frame(0x86DD, ip6(44, bytes([17, 0, 0, 0x49]) + bytes(4) + UDP)),  # a later fragment
    ],
)
def test_what_is_known_to_be_another_kind(tmp_path: Path, packet: bytes) -> None:
    assert "holds no UDP datagram" in refusal(tmp_path, pcap([(NS, packet)]))


@pytest.mark.parametrize("link", [12, 101, 228, 0, 108, 113, 276])
def test_link_types_of_loopback_and_of_any(tmp_path: Path, link: int) -> None:
    ip = udp(77)[14:]
    heads = {0: bytes(4), 108: bytes(4), 113: bytes(14) + b"\x08\x00", 276: b"\x08\x00" + bytes(18)}
    head = heads.get(link, b"")
    assert read(tmp_path, pcap([(NS, head + ip)], link=link)).messages == [Message(0, 77)]


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
    assert Replay("", capture, 2.0).lines == f"0 10\n500 {MOST_BYTES}\n"
