"""The clock of a card beside the system's: PTP_SYS_OFFSET_EXTENDED reads one between two readings of the other.

Root alone may open /dev/ptpN; to read it asks the card's own registers, on the CPU that this process is on, and sets
nothing. Source: include/uapi/linux/ptp_clock.h; Documentation/driver-api/ptp.rst; drivers/ptp/ptp_chardev.c.
"""

import errno
import fcntl
import os
import struct
import time
from typing import NamedTuple

from tunectl.host.sysroot import Sysroot

_SAMPLES = 5
_MOST = 25  # PTP_MAX_SAMPLES
_HEAD, _TIME = struct.Struct("=I12x"), struct.Struct("=qI4x")  # how many; seconds and nanoseconds
_SIZE = _HEAD.size + _MOST * 3 * _TIME.size
_READ_WRITE, _MAGIC, _NUMBER = 3, ord("="), 9
_EXTENDED = _READ_WRITE << 30 | _SIZE << 16 | _MAGIC << 8 | _NUMBER
_CLOCKFD = 3  # include/linux/posix-timers.h: the clock behind an open file
_CLOCKED = errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL


class CardClock(NamedTuple):
    """The card's time less the system's, as the shortest of some readings has it; it lay within `window_ns`."""

    ahead_ns: int
    window_ns: int


def read_card_clock(root: Sysroot, device: str) -> CardClock:
    """Of /dev/ptpN. OSError where this user may not, or the card cannot."""
    fd = root.open_device(device)
    try:
        asked = bytearray(_SIZE)
        _HEAD.pack_into(asked, 0, _SAMPLES)
        fcntl.ioctl(fd, _EXTENDED, asked)
    except OSError as error:
        if error.errno in _CLOCKED:
            raise OSError(error.errno, "its driver does not compare the two clocks") from error
        raise
    finally:
        os.close(fd)
    return parse_samples(bytes(asked))


def read_card_time_ns(root: Sysroot, device: str) -> int:
    """What the clock of /dev/ptpN shows, which every driver can tell. OSError where this user may not ask."""
    fd = root.open_device(device)
    try:
        return time.clock_gettime_ns(~fd << 3 | _CLOCKFD)
    finally:
        os.close(fd)


def parse_samples(answer: bytes) -> CardClock:
    """The system before, the card, the system after; the narrowest of them counts. Pure."""
    (count,) = _HEAD.unpack_from(answer)
    times = [seconds * 1_000_000_000 + ns for seconds, ns in _TIME.iter_unpack(answer[_HEAD.size :])]
    triples = [times[at : at + 3] for at in range(0, 3 * min(count, _MOST), 3)]
    clocks = [CardClock(card - (before + after) // 2, after - before) for before, card, after in triples]
    clocks = [clock for clock in clocks if clock.window_ns >= 0]
    if not clocks:
        raise OSError(errno.EPROTO, "it has no reading")
    return min(clocks, key=lambda clock: clock.window_ns)
