"""How far off chronyd finds the clock, by its own command protocol: what `chronyc tracking` asks, in one datagram.

Whoever runs here may ask at UDP port 323 of the loopback, from which only root can answer; where chronyd does not
listen there (`cmdport 0`), root asks at its Unix socket. The request writes nothing, and needs no rights.
Source: chrony's candm.h (version 6: CMD_Request, CMD_Reply, RPY_Tracking) and cmdmon.c; chronyc(1), tracking: the
clock is off by at most |System time| + Root dispersion + Root delay / 2.
"""

import errno
import ipaddress
import os
import secrets
import shutil
import socket
import struct
import tempfile
from typing import NamedTuple

from tunectl.host.datagrams import exchange, unix_peer, users_named
from tunectl.host.sysroot import Sysroot
from tunectl.host.timekeepers import PROGRAMS

PORT = 323
_FIRST_FREE = "proc/sys/net/ipv4/ip_unprivileged_port_start"  # ip-sysctl.rst, since 4.11
_SOCKET = "run/chrony/chronyd.sock"
_VERSION, _REQUEST, _REPLY, _GET_TRACKING, _TRACKING = 6, 1, 2, 33, 5
_ASKED = struct.Struct("!BBxxHHIxxxxxxxx")  # version, kind, command, attempt, sequence
_HEAD = struct.Struct("!BBxxHHHxxxxxxIxxxxxxxx")  # version, kind, command, kind of answer, status, sequence
_BODY = struct.Struct("!I16sHxxHHIIIIIIIIIIII")  # source, address and family, stratum, leap, a time, nine floats
_SIZE = _HEAD.size + _BODY.size  # a request is as long as its answer
_OWN_CLOCK = 0x7F7F0101  # REFID of `local`: 127.127.1.1
_FAMILIES = {1: 4, 2: 16}  # bytes of an IPv4 and an IPv6 address
_UNSYNCHRONISED = 3  # the last of the leap statuses
_LONGEST_S = 2.0**24  # chrony.conf(5), maxpoll
_UNKNOWN_HIGH = 0x7FFFFFFF


class Tracking(NamedTuple):
    """What chronyd knows of the clock. Offsets are positive where the clock is slow."""

    source: str  # an address, or the name of a reference clock; "" where there is none
    is_own_clock: bool  # `local`: it follows nothing
    follows: bool  # it has a source, and says so
    updated_s: float  # when it last heard of that source, as a time of the epoch
    interval_s: float  # between the last two updates
    offset_s: float
    last_offset_s: float  # what the last update found
    root_delay_s: float
    root_dispersion_s: float

    @property
    def bound_s(self) -> float:
        """How far off the clock may be at most."""
        return abs(self.offset_s) + self.root_dispersion_s + self.root_delay_s / 2


def read_tracking(root: Sysroot) -> Tracking:
    """Asks the chronyd of this host. OSError, whose text says what failed."""
    sequence = secrets.randbits(32)
    request = _ASKED.pack(_VERSION, _REQUEST, _GET_TRACKING, 0, sequence).ljust(_SIZE, b"\0")
    try:
        answer = _by_udp(root, request, sequence)
    except OSError as error:
        why = f"{error.strerror or error} at 127.0.0.1:{PORT}"
        if os.geteuid():
            raise OSError(error.errno, f"{why}, and only root may ask at /{_SOCKET}") from error
        try:
            answer = _by_path(root, request, sequence)
        except OSError as other:
            raise OSError(other.errno, f"{why}; /{_SOCKET}: {other.strerror or other}") from other
    return parse_tracking(answer)


def _by_udp(root: Sysroot, request: bytes, sequence: int) -> bytes:
    free = root.get(_FIRST_FREE, "1024")
    if not free.isdecimal() or int(free) <= PORT:
        raise OSError(errno.EACCES, "not asked, because any user may listen there (ip_unprivileged_port_start)")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.connect(("127.0.0.1", PORT))
        return exchange(asking, request, lambda answer: _fits(answer, sequence))


def _by_path(root: Sysroot, request: bytes, sequence: int) -> bytes:
    """It answers to a path alone: one in a directory that nobody but us can write."""
    trusted = users_named(root, *PROGRAMS["chronyd"].accounts)
    place = tempfile.mkdtemp(prefix="tunectl-", dir="/run")
    try:
        os.chmod(place, 0o711)
        with unix_peer(root, _SOCKET, trusted, f"{place}/answer") as asking:
            return exchange(asking, request, lambda answer: _fits(answer, sequence), trusted)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _fits(answer: bytes, sequence: int) -> bool:
    if len(answer) < _HEAD.size:
        return False
    _, kind, command, _, _, number = _HEAD.unpack_from(answer)
    return (kind, command, number) == (_REPLY, _GET_TRACKING, sequence)


def parse_tracking(answer: bytes) -> Tracking:
    """The answer to such a request. OSError where it is none, or a refusal. Pure."""
    version, _, _, kind, status, _ = _HEAD.unpack_from(answer)
    if version != _VERSION or status or kind != _TRACKING or len(answer) != _SIZE:
        what = f"version {version}, status {status}, kind {kind}, {len(answer)} bytes"
        raise OSError(errno.EPROTO, f"its answer is none that is known here ({what})")
    reference, address, family, _, leap, high, low, nanoseconds, *rest = _BODY.unpack_from(answer, _HEAD.size)
    offset, last_offset, _, _, _, _, delay, dispersion, interval = map(_float, rest)
    if leap > _UNSYNCHRONISED or min(delay, dispersion, interval) < 0 or interval > _LONGEST_S:
        what = f"leap {leap}, root delay {delay:g} s, dispersion {dispersion:g} s, interval {interval:g} s"
        raise OSError(errno.EPROTO, f"its answer cannot be true ({what})")
    source = _name(reference, address, family)
    updated = (0 if high == _UNKNOWN_HIGH else high << 32) + low + nanoseconds / 1e9
    is_own_clock = reference == _OWN_CLOCK
    follows = leap != _UNSYNCHRONISED and bool(source) and not is_own_clock
    return Tracking(source, is_own_clock, follows, updated, interval, offset, last_offset, delay, dispersion)


def _name(reference: int, address: bytes, family: int) -> str:
    """By address, or by the four letters of a reference clock."""
    if family in _FAMILIES:
        return str(ipaddress.ip_address(address[: _FAMILIES[family]]))
    letters = reference.to_bytes(4, "big").rstrip(b"\0")
    return letters.decode("ascii") if letters.isalnum() else f"{reference:08X}" if reference else ""


def _float(word: int) -> float:
    """candm.h, Float: a signed exponent of 7 bits, a signed coefficient of 25, and no hidden bit."""
    exponent, coefficient = word >> 25, word & 0x1FFFFFF
    exponent -= 128 if exponent >= 64 else 0
    coefficient -= 1 << 25 if coefficient >= 1 << 24 else 0
    return float(coefficient) * 2.0 ** (exponent - 25)
