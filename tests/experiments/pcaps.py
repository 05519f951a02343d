"""Captures in pcap's form, and a small made-up one of a feed.

500 datagrams of a feed that comes in bursts, as after a trade: exponential pauses of 200 us on average, one to eight
datagrams of 90 to 400 bytes back to back, every tenth of them with a VLAN tag; and a few packets that are no UDP.
"""

import random
import struct

DATAGRAMS = 500
SNAP = 48  # bytes kept of each packet: its headers
_START_NS = 1_700_000_000 * 10**9


def udp(size: int, vlan: bool = False) -> bytes:
    """An Ethernet frame with so many bytes of payload."""
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + size, 0, 0, 1, 17, 0, bytes([10, 0, 0, 1]), bytes([239, 1, 1, 1]))
    kind = struct.pack("!HHH", 0x8100, 7, 0x0800) if vlan else struct.pack("!H", 0x0800)
    return bytes(12) + kind + ip + struct.pack("!HHHH", 5000, 5001, 8 + size, 0) + bytes(size)


def pcap(
    packets: list[tuple[int, bytes]], order: str = "<", in_ns: bool = True, link: int = 1, snap: int = 128
) -> bytes:
    """A file of these packets, (ns, bytes), each cut at `snap` bytes."""
    unit_ns = 1 if in_ns else 1000
    head = struct.pack(f"{order}IHHiIII", 0xA1B23C4D if in_ns else 0xA1B2C3D4, 2, 4, 0, 0, snap, link)
    rows = [
        struct.pack(f"{order}IIII", ns // 10**9, ns % 10**9 // unit_ns, min(len(data), snap), len(data)) + data[:snap]
        for ns, data in packets
    ]
    return head + b"".join(rows)


def made_up() -> list[tuple[int, bytes]]:
    """The packets of that capture."""
    draw, at_ns, packets = random.Random(17), _START_NS, list[tuple[int, bytes]]()
    arp = bytes(12) + struct.pack("!H", 0x0806) + bytes(28)
    sent = 0
    while sent < DATAGRAMS:
        at_ns += round(draw.expovariate(1 / 200_000))
        for _ in range(min(draw.randint(1, 8), DATAGRAMS - sent)):
            packets.append((at_ns, udp(draw.randint(90, 400), vlan=sent % 10 == 0)))
            at_ns += 1_200
            sent += 1
        if sent % 97 == 0:
            packets.append((at_ns, arp))
    return packets
