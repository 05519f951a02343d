"""A capture of UDP (pcap) as what a feed can be replayed by: when each message came, and how long it was.

The format: draft-ietf-opsawg-pcap; link types: https://www.tcpdump.org/linktypes.html
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from errno import EFBIG
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tunectl.durable import read_given
from tunectl.errors import UsageError

LARGEST = 1 << 30  # bytes of a file
MOST_MESSAGES = 4_000_000  # of a case: the program keeps what it found of each (FEED_MOST of native/src/feed/run.h)
MOST_BYTES = 9000  # FEED_PAYLOAD_MOST
_DAY_NS = 86_400 * 10**9
_MAGIC = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}  # ns of a fraction's unit
_PCAPNG = b"\x0a\x0d\x0d\x0a"
_HEADER, _RECORD = 24, 16
_VLAN = (0x8100, 0x88A8)
_IPV4, _IPV6, _UDP = 0x0800, 0x86DD, 17
# Where a link type's payload begins, and where its EtherType stands; None: the payload's first byte tells (raw IP).
_LINKS: Mapping[int, tuple[int, int | None]] = {
    0: (4, None),  # NULL: BSD loopback
    1: (14, 12),  # EN10MB
    101: (0, None),  # RAW
    108: (4, None),  # LOOP
    113: (16, 14),  # LINUX_SLL
    276: (20, 0),  # LINUX_SLL2
}


class Message(NamedTuple):
    """One datagram."""

    at_ns: int  # from the first one's
    size: int  # of its payload, in bytes


class Capture(NamedTuple):
    """What is replayed, and what is not."""

    messages: Sequence[Message]
    others: int  # packets that are no UDP, or a datagram's later fragments
    backwards: int  # datagrams whose time is before that of the one they follow

    @property
    def shortened(self) -> int:
        """Datagrams that are longer than ours can be."""
        return sum(size > MOST_BYTES for _, size in self.messages)

    @property
    def seconds(self) -> float:
        """From the first message to the last."""
        return self.messages[-1].at_ns / 1e9

    def lines(self, factor: float) -> str:
        """As the native program takes them (--plan), all times multiplied."""
        return "".join(f"{round(at_ns * factor)} {min(size, MOST_BYTES)}\n" for at_ns, size in self.messages)


@dataclass(frozen=True)
class Replay:
    """A capture whose times are divided by `speed`."""

    file: str
    capture: Capture
    speed: float

    @property
    def seconds(self) -> float:
        """From the first message to the last, as they are sent."""
        return self.capture.seconds / self.speed

    @property
    def lines(self) -> str:
        """As the native program takes them (--plan)."""
        return self.capture.lines(1 / self.speed)

    def said(self, grown: int) -> dict[str, Any]:
        """As the document has it; `grown`: messages that were shorter in the capture than any of ours is."""
        counts = {"messages": len(self.capture.messages), "others": self.capture.others, "grown": grown}
        changed = {"shortened": self.capture.shortened, "backwards": self.capture.backwards}
        return {"file": self.file, "speed": self.speed, **counts, **changed}


def read_capture(path: Path) -> Capture:
    """The UDP datagrams of a pcap file, by their times; UsageError where it is none, or holds none.

    A packet whose time is before the one it follows, as cards with several queues write them, is put in its place.
    """
    data = _bytes_of(path)
    order, unit_ns, link = _header(path, data)
    if link not in _LINKS:
        raise UsageError(f"{path}: link type {link} is not known", "capture on an Ethernet interface, or with -i any")
    sizes = [(at_ns, _payload(packet, *_LINKS[link])) for at_ns, packet in _packets(path, data, order, unit_ns)]
    captured = [(at_ns, size) for at_ns, size in sizes if size is not None]
    backwards = sum(later[0] < earlier[0] for earlier, later in pairwise(captured))
    found = sorted(captured)
    if not found:
        raise UsageError(f"{path}: holds no UDP datagram", f"it has {len(sizes)} packets of other kinds")
    if len(found) > MOST_MESSAGES or found[-1][0] - found[0][0] > _DAY_NS:
        raise UsageError(f"{path}: more than {MOST_MESSAGES:,} datagrams, or more than a day", "cut it with editcap")
    first_ns = found[0][0]
    return Capture([Message(at_ns - first_ns, size) for at_ns, size in found], len(sizes) - len(found), backwards)


def _bytes_of(path: Path) -> bytes:
    try:
        return read_given(str(path), LARGEST)
    except OSError as error:
        hint = "cut it with editcap -c" if error.errno == EFBIG else "name a pcap file, as tcpdump -w writes it"
        raise UsageError(f"{path}: {error.strerror}", hint) from error


def _header(path: Path, data: bytes) -> tuple[str, int, int]:
    """Byte order, ns of a unit, link type."""
    if data.startswith(_PCAPNG):
        raise UsageError(f"{path}: is pcapng, which is not read", "editcap -F pcap IN OUT, or tcpdump -r IN -w OUT")
    for order in "<>":
        if len(data) >= _HEADER and (unit_ns := _MAGIC.get(struct.unpack_from(f"{order}I", data)[0])):
            return order, unit_ns, struct.unpack_from(f"{order}I", data, 20)[0] & 0xFFFF
    raise UsageError(f"{path}: is no pcap file", "write one with tcpdump -w")


def _packets(path: Path, data: bytes, order: str, unit_ns: int) -> Iterator[tuple[int, bytes]]:
    """Time in ns and captured bytes of each. The last one may be cut, as by a tcpdump that was killed."""
    record, at = struct.Struct(f"{order}IIII"), _HEADER
    while at + _RECORD <= len(data):
        seconds, fraction, captured, _ = record.unpack_from(data, at)
        if captured > 1 << 20:
            raise UsageError(f"{path}: is damaged at byte {at:,}: a packet of {captured:,} bytes", "capture it again")
        yield seconds * 10**9 + fraction * unit_ns, data[at + _RECORD : at + _RECORD + captured]
        at += _RECORD + captured


def _payload(packet: bytes, start: int, type_at: int | None) -> int | None:
    """The bytes of the UDP datagram that a packet begins, by the lengths in its headers; None where it is none."""
    if type_at is None:
        kind = {4: _IPV4, 6: _IPV6}.get(packet[start] >> 4 if len(packet) > start else 0, 0)
    else:
        kind = _number(packet, type_at)
        while kind in _VLAN:
            kind, start = _number(packet, start + 2), start + 4
    if kind == _IPV4:
        return _of_ipv4(packet[start:])
    return _of_ipv6(packet[start:]) if kind == _IPV6 else None


def _of_ipv4(ip: bytes) -> int | None:
    if len(ip) < 20 or ip[9] != _UDP or _number(ip, 6) & 0x1FFF:
        return None
    return _of_udp(ip[4 * (ip[0] & 0x0F) :])


def _of_ipv6(ip: bytes) -> int | None:
    """Without extension headers, as feeds are."""
    return _of_udp(ip[40:]) if len(ip) >= 40 and ip[6] == _UDP else None


def _of_udp(udp: bytes) -> int | None:
    """By the length in its header: the capture may have cut the rest."""
    size = _number(udp, 4) - 8
    return size if size >= 0 else None


def _number(data: bytes, at: int) -> int:
    """Two bytes in network order; 0 beyond the end."""
    return int.from_bytes(data[at : at + 2], "big") if len(data) >= at + 2 else 0
