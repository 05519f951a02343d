"""A capture of UDP (pcap) as what a feed can be replayed by: when each message came, and how long it was.

The format: draft-ietf-opsawg-pcap; link types: https://www.tcpdump.org/linktypes.html
"""

import struct
from collections import Counter
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
_COMPRESSED = {b"\x1f\x8b": "gunzip", b"\x28\xb5\x2f\xfd": "unzstd", b"\xfd7zXZ\x00": "unxz", b"BZh": "bunzip2"}
_HEADER, _RECORD = 24, 16
_MOST_REASONS = 3
# EtherTypes, https://www.iana.org/assignments/ieee-802-numbers; 0x9100 to 0x9300 are outer tags from before 802.1ad.
_TAGS = (0x8100, 0x88A8, 0x9100, 0x9200, 0x9300)
_IPV4, _IPV6, _PPPOE, _MPLS = 0x0800, 0x86DD, 0x8864, (0x8847, 0x8848)
# What carries no IP: ARP, RARP, loopback, pause, slow protocols, PPPoE discovery, 802.1X, LLDP, PTP, CFM.
_NO_IP = (0x0806, 0x8035, 0x9000, 0x8808, 0x8809, 0x8863, 0x888E, 0x88CC, 0x88F7, 0x8902)
_LENGTHS = 1500  # up to it, the field is a length: 802.2 follows
_SNAP = b"\xaa\xaa\x03\x00\x00\x00"  # 802.2, and an EtherType behind it
_PPP = {0x0021: _IPV4, 0x0057: _IPV6}
# Protocols of IP, https://www.iana.org/assignments/protocol-numbers.
_UDP, _WITHIN_IP, _AUTHENTICATION, _FRAGMENT = 17, (4, 41), 51, 44
_EXTENSIONS = (0, 43, _FRAGMENT, _AUTHENTICATION, 60, 135, 139, 140)  # RFC 8200, section 4; RFC 7045
_HIDING = {47: "GRE", 50: "ESP", 115: "L2TP"}
# Where a link type's payload begins, and where its EtherType stands; None: the payload's first byte tells (raw IP).
_LINKS: Mapping[int, tuple[int, int | None]] = {
    0: (4, None),  # NULL: BSD loopback
    1: (14, 12),  # EN10MB
    12: (0, None),  # RAW, as some systems write it
    14: (0, None),
    101: (0, None),  # RAW
    108: (4, None),  # LOOP
    113: (16, 14),  # LINUX_SLL
    228: (0, None),  # IPV4
    229: (0, None),  # IPV6
    276: (20, 0),  # LINUX_SLL2
}


class _UnfollowedError(Exception):
    """What a packet holds is not known: its argument says why."""


class Message(NamedTuple):
    """One datagram."""

    at_ns: int  # from the first one's
    size: int  # of its payload, in bytes


class Capture(NamedTuple):
    """What is replayed, and what is not."""

    messages: Sequence[Message]
    others: int  # packets that are no UDP, or a datagram's later fragments
    backwards: int  # datagrams whose time is before that of the one they follow
    unfollowed: Mapping[str, int] = {}  # packets that may hold UDP or not: how many, by why nobody can tell
    cut_bytes: int = 0  # what the file ends with, of a packet that is not whole in it

    @property
    def shortened(self) -> int:
        """Datagrams that are longer than ours can be."""
        return sum(size > MOST_BYTES for _, size in self.messages)

    @property
    def seconds(self) -> float:
        """From the first message to the last."""
        return self.messages[-1].at_ns / 1e9


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
        messages, factor = self.capture.messages, 1 / self.speed
        return "".join(f"{round(at_ns * factor)} {min(size, MOST_BYTES)}\n" for at_ns, size in messages)

    def said(self, grown: int) -> dict[str, Any]:
        """As the document has it; `grown`: messages that were shorter in the capture than any of ours is."""
        counts = {"messages": len(self.capture.messages), "others": self.capture.others, "grown": grown}
        changed = {"shortened": self.capture.shortened, "backwards": self.capture.backwards}
        left = {"unfollowed": dict(self.capture.unfollowed), "cut_bytes": self.capture.cut_bytes}
        return {"file": self.file, "speed": self.speed, **counts, **changed, **left}


def read_capture(path: Path) -> Capture:
    """The UDP datagrams of a pcap file, by their times; UsageError where it is none, or none was found.

    A packet whose time is before the one it follows, as cards with several queues write them, is put in its place.
    """
    try:
        data = read_given(str(path), LARGEST)
    except OSError as error:
        hint = "cut it with editcap -c" if error.errno == EFBIG else "name a pcap file, as tcpdump -w writes it"
        raise UsageError(f"{path}: {error.strerror}", hint) from error
    order, unit_ns, link = _header(path, data)
    if link not in _LINKS:
        raise UsageError(f"{path}: link type {link} is not known", "capture on an Ethernet interface, or with -i any")
    captured: list[tuple[int, int]] = []
    others, unfollowed, end = 0, Counter[str](), _HEADER
    for at_ns, packet in _packets(path, data, order, unit_ns):
        end += _RECORD + len(packet)
        try:
            start, type_at = _LINKS[link]
            size = _of_ip(packet, start) if type_at is None else _of_ethertype(packet, _number(packet, type_at), start)
        except _UnfollowedError as error:
            unfollowed[str(error)] += 1
            continue
        if size is None:
            others += 1
        else:
            captured.append((at_ns, size))
    backwards = sum(later[0] < earlier[0] for earlier, later in pairwise(captured))
    found = sorted(captured)
    if not found and unfollowed:  # only where every packet could be followed, it is known that none is UDP
        why = ", ".join(f"{count:,}: {reason}" for reason, count in unfollowed.most_common(_MOST_REASONS))
        what = f"{unfollowed.total():,} of {others + unfollowed.total():,} packets could not be followed"
        raise UsageError(f"{path}: no UDP datagram was found, and {what}", why)
    if not found:
        raise UsageError(f"{path}: holds no UDP datagram", f"it has {others} packets of other kinds")
    cut = len(data) - end
    if len(found) > MOST_MESSAGES or found[-1][0] - found[0][0] > _DAY_NS:
        raise UsageError(f"{path}: more than {MOST_MESSAGES:,} datagrams, or more than a day", "cut it with editcap")
    first_ns = found[0][0]
    return Capture([Message(at_ns - first_ns, size) for at_ns, size in found], others, backwards, unfollowed, cut)


def _header(path: Path, data: bytes) -> tuple[str, int, int]:
    """Byte order, ns of a unit, link type."""
    if data.startswith(_PCAPNG):
        raise UsageError(f"{path}: is pcapng, which is not read", "editcap -F pcap IN OUT, or tcpdump -r IN -w OUT")
    for magic, program in _COMPRESSED.items():
        if data.startswith(magic):
            raise UsageError(f"{path}: is compressed", f"{program} it first")
    for order in "<>":
        if len(data) >= _HEADER and (unit_ns := _MAGIC.get(struct.unpack_from(f"{order}I", data)[0])):
            return order, unit_ns, struct.unpack_from(f"{order}I", data, 20)[0] & 0xFFFF
    raise UsageError(f"{path}: is no pcap file", "write one with tcpdump -w")


def _packets(path: Path, data: bytes, order: str, unit_ns: int) -> Iterator[tuple[int, bytes]]:
    """Time in ns and captured bytes of each that is whole. A tcpdump that was killed cuts the last one."""
    record, at = struct.Struct(f"{order}IIII"), _HEADER
    while at + _RECORD <= len(data):
        seconds, fraction, captured, _ = record.unpack_from(data, at)
        if captured > 1 << 20:
            raise UsageError(f"{path}: is damaged at byte {at:,}: a packet of {captured:,} bytes", "capture it again")
        start, at = at + _RECORD, at + _RECORD + captured
        if at <= len(data):
            yield seconds * 10**9 + fraction * unit_ns, data[start:at]


def _of_ethertype(packet: bytes, kind: int, at: int) -> int | None:
    """The bytes of the UDP datagram that a packet begins, by the lengths in its headers; None where it is none."""
    while kind in _TAGS:
        kind, at = _number(packet, at + 2), at + 4
    if kind <= _LENGTHS:
        is_snap = packet[at : at + len(_SNAP)] == _SNAP
        return _of_ethertype(packet, _number(packet, at + 6), at + 8) if is_snap else None
    if kind == _PPPOE:
        kind, at = _PPP.get(_number(packet, at + 6), _NO_IP[0]), at + 8
    if kind in _MPLS:
        while not _byte(packet, at + 2) & 1:  # the bottom of the stack: RFC 3032
            at += 4
        return _of_ip(packet, at + 4)
    if kind in (_IPV4, _IPV6):
        return _of_ip(packet, at)
    if kind not in _NO_IP:
        raise _UnfollowedError(f"EtherType 0x{kind:04x}")
    return None


def _of_ip(packet: bytes, at: int) -> int | None:
    version = _byte(packet, at) >> 4
    if version == 4:
        is_later = _number(packet, at + 6) & 0x1FFF  # a fragment's place: the datagram's header is in the first one
        return None if is_later else _of_protocol(packet, _byte(packet, at + 9), at + 4 * (packet[at] & 0x0F))
    if version != 6:
        raise _UnfollowedError("no header of IP where one should be")
    return _of_protocol(packet, _byte(packet, at + 6), at + 40)


def _of_protocol(packet: bytes, protocol: int, at: int) -> int | None:
    """Behind the extension headers, whose first byte is the next one's protocol and whose second is their length."""
    while protocol in _EXTENSIONS:
        if protocol == _FRAGMENT and _number(packet, at + 2) & 0xFFF8:
            return None
        length = _byte(packet, at + 1)
        words = {_FRAGMENT: 2, _AUTHENTICATION: length + 2}.get(protocol, 2 * length + 2)
        protocol, at = packet[at], at + 4 * words
    if protocol == _UDP:
        size = _number(packet, at + 4) - 8  # by the length in its header: the capture may have cut the rest
        if size < 0:  # 0: a jumbogram's (RFC 2675), or of a sender that leaves the lengths to its card
            raise _UnfollowedError(f"a UDP length of {size + 8}")
        return size
    if protocol in _HIDING:
        raise _UnfollowedError(f"within {_HIDING[protocol]}")
    return _of_ip(packet, at) if protocol in _WITHIN_IP else None


def _byte(packet: bytes, at: int) -> int:
    return _number(packet, at, 1)


def _number(packet: bytes, at: int, length: int = 2) -> int:
    """In network order."""
    if len(packet) < at + length:
        raise _UnfollowedError("cut within its headers")
    return int.from_bytes(packet[at : at + length], "big")
