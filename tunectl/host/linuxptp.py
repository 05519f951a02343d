"""What ptp4l says of its clock at its management socket: PTP management messages (GET) that change nothing.

linuxptp 4 has a second socket for everybody who only reads; before, root alone may ask.
Source: IEEE 1588-2008, 13.3 and 15 (management messages), Table 6 (clockAccuracy); linuxptp's msg.h, tlv.h, ds.h and
uds.c; ptp4l(8), uds_address, uds_ro_address, free_running, time_stamping.
"""

import errno
import os
import re
import secrets
import socket
import struct
import time
from typing import Any, NamedTuple

from tunectl.host.datagrams import TIMEOUT_S, exchange, unix_peer
from tunectl.host.sysroot import Sysroot
from tunectl.host.timekeepers import Timekeeper

_HEAD = struct.Struct("!BBHBx2x8x4x10sHBb10sBBBx")  # the common header, and that of a management message
_TLV = struct.Struct("!HHH")  # type, length, which data set
_MANAGEMENT, _GET, _RESPONSE, _TLV_MANAGEMENT = 0xD, 0, 2, 1
_MESSAGE_TYPE, _ACTION = 0x0F, 0x0F
_CLOCK, _ANY_PORT = b"\xff" * 8, 0xFFFF
# Which data set, and what is read of it.
_DEFAULT = 0x2000, struct.Struct("!BxHBBBHB8sBx")  # flags, ports, priority, class, accuracy, variance, priority, ...
_CURRENT = 0x2001, struct.Struct("!Hqq")  # steps removed; offset and path delay, in 2^-16 ns
_PARENT = 0x2002, struct.Struct("!10sxxHiBBBHB8s")  # ..., grandmaster's priority, class, accuracy, variance, ..., name
_PROPERTIES = 0x2003, struct.Struct("!hBB")  # UTC offset, flags, source
_PORT = 0x2004, struct.Struct("!10sBbqbBbBbB")  # identity, state, ..., logSyncInterval, ...
_PORT_PROPERTIES = 0xC004, struct.Struct("!10sBBB")  # identity, state, time stamping, length of the interface's name
_STATUS = 0xC000, struct.Struct("!qqiiH12xi8s")  # offset, when a Sync last came, ..., is there a grandmaster, its name
_UTC_IS_VALID, _IS_PTP_TIME, _IS_TRACEABLE = 1 << 2, 1 << 3, 1 << 4
_UNCALIBRATED, _SLAVE = 8, 9
_STATES = (
    *("none", "initializing", "faulty", "disabled", "listening", "pre-master"),
    *("master", "passive", "uncalibrated", "slave", "grandmaster"),
)
_REFERENCES = (6, 7, 13, 14)  # clockClass of a grandmaster that has a source of time, or had one until just now
_MOST_PORTS = 32
_SLOWEST = 4  # of logSyncInterval: no profile sends it less often than every 16 s
_SOCKETS = (("uds", "ptp4l"), ("uds_ro", "ptp4lro"))
_EXACT_NS = dict(
    zip(
        range(0x20, 0x31),
        (25, 100, 250, 1e3, 2500, 1e4, 25e3, 1e5, 25e4, 1e6, 25e5, 1e7, 25e6, 1e8, 25e7, 1e9, 1e10),
        strict=True,
    )
)
_SOFTWARE = 0


class PtpClock(NamedTuple):
    """What one ptp4l knows. Offsets in ns; `exact_ns` is how exact its grandmaster says it is, None: it does not."""

    state: str  # of its port: slave, uncalibrated, master, listening, ...
    interface: str
    is_software: bool  # it steers the system's clock, and no card's
    runs_free: bool  # it measures, and steers nothing
    offset_ns: float
    heard_ns: int  # when it last heard a Sync, by the clock that stamps; 0: none since it chose its grandmaster
    sync_interval_s: float  # as its own port has it, which may not be its grandmaster's
    path_delay_ns: float
    clock_class: int  # of the grandmaster
    grandmaster: str
    exact_ns: float | None
    is_traceable: bool
    utc_offset_s: int | None  # TAI - UTC; None where nobody vouches for it
    is_ptp_time: bool  # its time is TAI; otherwise whatever its grandmaster has

    @property
    def leads(self) -> bool:
        """Does it give the time to others, and take it from none?"""
        return self.state in ("master", "grandmaster")

    @property
    def has_reference(self) -> bool:
        """Is the grandmaster's time more than its own crystal's?"""
        return self.clock_class in _REFERENCES


def read_ptp_clock(root: Sysroot, keeper: Timekeeper) -> PtpClock:
    """Asks a ptp4l that runs. OSError, whose text says what failed."""
    told = _told(root, keeper)
    path, read_only = (told.get(f"{key}_address", f"/var/run/{name}").lstrip("/") for key, name in _SOCKETS)
    if os.geteuid() and root.exists(read_only):
        path = read_only
    try:
        with unix_peer(root, path, {0}) as asking:
            return _ask_all(asking, told)
    except FileNotFoundError:
        raise OSError(errno.ENOENT, f"there is no socket /{path}") from None
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror or error} at /{path}") from error


def may_steer(root: Sysroot, keeper: Timekeeper) -> bool:
    """Of one that does not say: was it told to steer the system's clock, where it follows somebody?"""
    told = _told(root, keeper)
    return told.get("time_stamping") == "software" and told.get("free_running") != "1"


def _told(root: Sysroot, keeper: Timekeeper) -> dict[str, str]:
    """Its settings, by the file and the arguments that it was started with; those count more."""
    options = keeper.options()
    path = options.get("-f", [""])[-1]
    text = root.get_named(path.lstrip("/")) if path.startswith("/") else ""
    told = dict(re.findall(r"^[ \t]*(\w+)[ \t]+(\S+)", text, re.MULTILINE))
    told |= dict(re.findall(r"\0--(\w+)[=\0]([^\0]*)", "\0".join(("", *keeper.args))))
    return told | ({"time_stamping": "software"} if "-S" in options else {})


def _ask_all(asking: socket.socket, told: dict[str, str]) -> PtpClock:
    until = time.monotonic() + TIMEOUT_S  # for all of it
    domain = told.get("domainNumber", "0")
    domain_number = int(domain) & 0xFF if domain.isdecimal() else 0

    def get(what: tuple[int, struct.Struct], port: int = _ANY_PORT) -> tuple[tuple[Any, ...], bytes]:
        number, shape = what
        data = _get(asking, domain_number, number, port, until)
        if len(data) < shape.size:
            raise OSError(errno.EPROTO, f"its answer of {len(data)} bytes is too short")
        return shape.unpack_from(data), data[shape.size :]

    (_, ports, *_), _ = get(_DEFAULT)
    state, number, log_interval = 0, 1, 0
    for port in range(1, min(ports, _MOST_PORTS) + 1):  # the one that follows; else the first
        (_, found, _, _, _, _, log_sync, *_), _ = get(_PORT, port)
        if port == 1 or found in (_SLAVE, _UNCALIBRATED):
            state, number, log_interval = found, port, log_sync
    (_, _, stamping, length), rest = get(_PORT_PROPERTIES, number)
    (_, _, path_delay), _ = get(_CURRENT)
    (_, _, _, _, clock_class, accuracy, _, _, grandmaster), _ = get(_PARENT)
    (utc_offset, flags, _), _ = get(_PROPERTIES)
    (offset, heard, *_), _ = get(_STATUS)
    return PtpClock(
        _STATES[state] if state < len(_STATES) else str(state),
        rest[:length].decode("ascii", "backslashreplace"),
        stamping == _SOFTWARE,
        told.get("free_running") == "1",
        float(offset),
        heard,
        2.0 ** min(log_interval, _SLOWEST),
        path_delay / (1 << 16),
        clock_class,
        grandmaster.hex(),
        _EXACT_NS.get(accuracy),
        bool(flags & _IS_TRACEABLE),
        utc_offset if flags & _UTC_IS_VALID else None,
        bool(flags & _IS_PTP_TIME),
    )


def _get(asking: socket.socket, domain: int, number: int, port: int, until: float) -> bytes:
    """One data set, as bytes."""
    sequence = secrets.randbits(16)
    own, target = bytes(8) + secrets.token_bytes(2), _CLOCK + port.to_bytes(2, "big")
    size = _HEAD.size + _TLV.size
    head = _HEAD.pack(_MANAGEMENT, 2, size, domain, own, sequence, 4, 0x7F, target, 0, 0, _GET)

    def fits(answer: bytes) -> bool:
        if len(answer) < size:
            return False
        kind, _, length, _, _, answered, _, _, to, _, _, action = _HEAD.unpack_from(answer)
        is_answer = (kind & _MESSAGE_TYPE, action & _ACTION, answered, to) == (_MANAGEMENT, _RESPONSE, sequence, own)
        return bool(is_answer and length <= len(answer))

    answer = exchange(asking, head + _TLV.pack(_TLV_MANAGEMENT, 2, number), fits, {0}, until)
    kind, length, what = _TLV.unpack_from(answer, _HEAD.size)
    if (kind, what) != (_TLV_MANAGEMENT, number):
        raise OSError(errno.EPROTO, f"it refuses data set {number:#x}")
    return answer[size : size + max(length - 2, 0)]
