"""Hardware time stamps of a network interface: of which clock they are, and which packets get one. Only read.

Source: Documentation/networking/timestamping.rst, include/uapi/linux/net_tstamp.h.
"""

from __future__ import annotations

import array
import errno
import fcntl
import os
import socket
import struct
from typing import NamedTuple

from tunectl.host.sysroot import Sysroot

ALL = "all"
_FILTERS = {0: "none", 1: ALL, 2: "some"}  # HWTSTAMP_FILTER_*; those beyond are of PTP's and NTP's own packets
_SIOCGHWTSTAMP = 0x89B1
_NAME_MOST = 15


class Stamping(NamedTuple):
    """What an interface says of its stamps. Where something is not there, the error says why; "" where it is."""

    nic: str
    clock: str = ""  # /dev/ptp0; "": it has none
    clock_error: str = ""  # why that cannot be read
    receive_filter: str = ""  # which packets are stamped: none, all, some, a few
    filter_error: str = ""


def read_stamping(root: Sysroot, nic: str) -> Stamping:
    """Never raises for what the interface lacks."""
    number = root.get(f"ethtool/{nic}/tsinfo/phc-index")
    if not number.isdecimal():
        return Stamping(nic)
    clock = f"/dev/ptp{number}"
    found = Stamping(nic, clock, clock_error=_refusal(clock))
    try:
        return found._replace(receive_filter=_receive_filter(nic))
    except OSError as error:
        return found._replace(filter_error=error.strerror or str(error))


def _refusal(device: str) -> str:
    """Why a clock cannot be read, as far as that can be known without opening it."""
    if os.access(device, os.R_OK):
        return ""
    return os.strerror(errno.EACCES if os.path.exists(device) else errno.ENOENT)


def _receive_filter(nic: str) -> str:
    """ioctl SIOCGHWTSTAMP: a struct ifreq that points to a struct hwtstamp_config, which are three numbers."""
    config = array.array("i", [0, 0, 0])
    request = struct.pack("16sP16x", nic.encode()[:_NAME_MOST], config.buffer_info()[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCGHWTSTAMP, request)
    return _FILTERS.get(config[2], "a few")
