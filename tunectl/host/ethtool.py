"""A NIC's settings as attributes, one value a path: `ethtool/eth0/rings/rx` holds `512`.

On the running host a path is one question or one request to the kernel, in ethtool's generic netlink messages; a
recorded host has the same paths as files. So the journal, restore and every driver treat a ring's size as they do a
file of /sys. The names are those of Documentation/netlink/specs/ethtool.yaml, and of the features in
net/ethtool/common.c. Nothing runs the program ethtool, whose text differs between releases.

A setting that the driver does not offer, or a feature that it cannot switch, is a path that does not exist.

A driver's own statistics and its card's firmware have no netlink message: `ethtool/eth0/statistics` and
`ethtool/eth0/firmware` are ioctls (net/ethtool/ioctl.c), which any user may ask.

Which network interface leads to an address: the kernel's routing table, asked by rtnetlink(7).
"""

import array
import errno
import fcntl
import os
import socket
import struct
from functools import cache
from typing import Any, NamedTuple

PREFIX = "ethtool/"
ASKED = ("statistics", "firmware")  # of a whole interface, by ioctl


class Message(NamedTuple):
    """One kind of message: its commands, and its attributes from number 1 on, as the kernel numbers them."""

    get: int
    set: int | None  # None: what it says cannot be set
    attributes: tuple[str, ...]
    one_byte: tuple[str, ...] = ()  # u8, where all others are u32
    shown: tuple[str, ...] = ()  # what tunectl has a use for, and a recording holds
    bitsets: tuple[str, ...] = ()


_FEATURES = ("hw", "wanted", "active", "nochange")
_STAMPS = ("timestamping", "tx-types", "rx-filters")
_FRAMES = "rx-usecs rx-max-frames rx-usecs-irq rx-max-frames-irq tx-usecs tx-max-frames tx-usecs-irq tx-max-frames-irq"
MESSAGES = {
    "features": Message(11, 12, _FEATURES, (), ("rx-gro", "rx-lro", "rx-ntuple-filter"), _FEATURES),
    "rings": Message(
        15,
        16,
        ("rx-max", "rx-mini-max", "rx-jumbo-max", "tx-max", "rx", "rx-mini", "rx-jumbo", "tx"),
        (),
        ("rx-max", "tx-max", "rx", "tx"),
    ),
    "channels": Message(
        17,
        18,
        ("rx-max", "tx-max", "other-max", "combined-max", "rx-count", "tx-count", "other-count", "combined-count"),
        (),
        ("rx-max", "tx-max", "combined-max", "rx-count", "tx-count", "combined-count"),
    ),
    "coalesce": Message(
        19,
        20,
        (*_FRAMES.split(), "stats-block-usecs", "use-adaptive-rx", "use-adaptive-tx"),
        ("use-adaptive-rx", "use-adaptive-tx"),
        ("rx-usecs", "rx-max-frames", "tx-usecs", "tx-max-frames", "use-adaptive-rx", "use-adaptive-tx"),
    ),
    "tsinfo": Message(25, None, (*_STAMPS, "phc-index"), (), ("phc-index",), _STAMPS),
}


def paths_of(nic: str) -> list[str]:
    """Every setting tunectl has a use for, of one interface: those it lacks, too."""
    return [f"{PREFIX}{nic}/{group}/{name}" for group, message in MESSAGES.items() for name in message.shown]


def open_setting(path: str) -> int:
    """A setting of the running host as a descriptor to read: a number and a newline. OSError where there is none."""
    nic, _, kind = path.removeprefix(PREFIX).partition("/")
    if kind in ASKED:
        text = _statistics(nic) if kind == "statistics" else _firmware(nic)
        return _holding(text)
    nic, group, name = _parts(path)
    settings = {name: value for reply in _request(group, nic, "get") for name, value in reply["attrs"]}
    if group == "features":  # those that this driver can switch: 1 where one is on
        names = {kind: _named(settings.get(kind)) for kind in _FEATURES}
        settings = {name: int(name in names["active"]) for name in names["hw"] - names["nochange"]}
    if name not in settings:
        raise _absent(path)
    return _holding(f"{settings[name]}\n")


def _holding(text: str) -> int:
    fd = os.memfd_create("ethtool")
    data = memoryview(text.encode())
    while data:
        data = data[os.write(fd, data) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


_SIOCETHTOOL = 0x8946
_GDRVINFO, _GSTRINGS, _GSTATS, _GSSET_INFO = 0x03, 0x1B, 0x1D, 0x37
_SET_OF_STATS, _STRING = 1, 32  # ETH_SS_STATS, ETH_GSTRING_LEN
_MOST = 65536  # statistics of one card: a thousand queues have fewer
_NAME_MOST = 15


def _statistics(nic: str) -> str:
    """`name value` a line, as the driver has them."""
    # Kernels before 2026 write as many as there are *now*, whatever was asked: so there is always room for the most.
    found = _ioctl(nic, struct.pack("=IIQI", _GSSET_INFO, 0, 1 << _SET_OF_STATS, 0))
    mask, count = struct.unpack_from("=QI", found, 8)
    if not mask or not 0 < count <= _MOST:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), f"{PREFIX}{nic}/statistics")
    names = _ioctl(nic, struct.pack("=III", _GSTRINGS, _SET_OF_STATS, count), _MOST * _STRING)
    values = _ioctl(nic, struct.pack("=II", _GSTATS, count), _MOST * 8)
    if struct.unpack_from("=I", names, 8) != (count,) or struct.unpack_from("=I", values, 4) != (count,):
        raise OSError(errno.EAGAIN, "its queues changed meanwhile", f"{PREFIX}{nic}/statistics")
    lines = []
    for place in range(count):
        name = bytes(names[12 + place * _STRING :][:_STRING]).partition(b"\0")[0].decode("ascii", "replace")
        lines.append(f"{'_'.join(name.split())} {struct.unpack_from('=Q', values, 8 + place * 8)[0]}\n")
    return "".join(lines)


def _firmware(nic: str) -> str:
    """The version of the card's firmware, as its driver words it (struct ethtool_drvinfo)."""
    found = _ioctl(nic, struct.pack("=I", _GDRVINFO), 192)
    return bytes(found[68:100]).partition(b"\0")[0].decode("ascii", "replace") + "\n"


def _ioctl(nic: str, request: bytes, room: int = 0) -> memoryview:
    """What the kernel wrote over a request. OSError: ENOENT where there is no such interface, or none of that."""
    if not 0 < len(nic.encode()) <= _NAME_MOST:
        raise _absent(f"{PREFIX}{nic}")
    try:
        return ask_interface(nic, _SIOCETHTOOL, request + bytes(room))
    except OSError as error:
        if error.errno in (errno.ENODEV, errno.EOPNOTSUPP):
            raise _absent(f"{PREFIX}{nic}") from None
        raise


def ask_interface(nic: str, number: int, request: bytes) -> memoryview:
    """An ioctl of this number with a struct ifreq that points to the request: what the kernel wrote over it."""
    held = array.array("B", request)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, number, struct.pack("16sP16x", nic.encode()[:_NAME_MOST], held.buffer_info()[0]))
    return memoryview(held)


def write_setting(path: str, text: str) -> None:
    """One setting of the running host changed; what else there is of the NIC stays. OSError where it is refused."""
    nic, group, name = _parts(path)
    largest = 0xFF if name in MESSAGES[group].one_byte else 0xFFFFFFFF
    if MESSAGES[group].set is None or not text.strip().isdecimal() or (value := int(text)) > largest:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
    if group == "features":
        flag = [["value", True]] if value else []
        bits = {"attrs": [["bit", {"attrs": [["name", name], *flag]}]]}
        _request(group, nic, "set", [["wanted", {"attrs": [["bits", bits]]}]])
    else:
        _request(group, nic, "set", [[name, value]])


def _parts(path: str) -> tuple[str, str, str]:
    parts = path.removeprefix(PREFIX).split("/")
    if len(parts) != 3 or parts[1] not in MESSAGES:
        raise _absent(path)
    nic, group, name = parts
    if name not in MESSAGES[group].shown:
        raise _absent(path)
    return nic, group, name


def _absent(path: str) -> OSError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _named(bitset: Any) -> set[str]:
    """The bits of a set: those listed, or, where the list has a mask, those with a value (net/ethtool/bitset.c)."""
    if bitset is None:
        return set()
    attributes = dict(bitset["attrs"])
    bits = [dict(bit["attrs"]) for _, bit in attributes["bits"]["attrs"]] if "bits" in attributes else []
    return {bit["name"] for bit in bits if "nomask" in attributes or "value" in bit}


def _request(group: str, nic: str, act: str, settings: list[Any] | None = None) -> Any:
    """One message and its answers. OSError: ENOENT where the interface or the kind of setting is not there."""
    from pyroute2.netlink import NLM_F_ACK, NLM_F_REQUEST  # type: ignore[import-untyped]
    from pyroute2.netlink.exceptions import NetlinkError  # type: ignore[import-untyped]

    try:
        asking, shape = _connection(group)
        message = shape()
        message["cmd"] = getattr(MESSAGES[group], act)
        message["version"] = 1
        message["attrs"] = [["header", {"attrs": [["name", nic]]}], *(settings or [])]
        flags = NLM_F_REQUEST | (NLM_F_ACK if settings else 0)
        return list(asking.nlm_request(message, msg_type=asking.prid, msg_flags=flags))
    except NetlinkError as error:
        # No such interface; no such family (a kernel before 5.6); a driver without such settings.
        absent = error.code in (errno.ENODEV, errno.ENOENT) or (not settings and error.code == errno.EOPNOTSUPP)
        number = errno.ENOENT if absent else error.code
        raise OSError(number, os.strerror(number), f"{PREFIX}{nic}/{group}") from None


@cache
def _connection(group: str) -> tuple[Any, Any]:
    """A socket that knows one kind of message, for the life of the process: replies carry no other sign of theirs."""
    # Here, not above: it takes longer to import than `verify` runs, and few hosts name an interface.
    from pyroute2.netlink import NLA_F_NESTED, genlmsg, nla
    from pyroute2.netlink.generic import GenericNetlinkSocket  # type: ignore[import-untyped]

    def nest(name: str, *attributes: tuple[str, str], **inside: Any) -> Any:
        return type(name, (nla,), {"nla_flags": NLA_F_NESTED, "nla_map": (("unspec", "none"), *attributes), **inside})

    device = nest("device", ("index", "uint32"), ("name", "asciiz"), ("flags", "uint32"))
    bit = nest("bit", ("index", "uint32"), ("name", "asciiz"), ("value", "flag"))
    bits = nest("bits", ("bit", "bit"), bit=bit)
    bitset = nest("bitset", ("nomask", "flag"), ("size", "uint32"), ("bits", "bits"), bits=bits)
    message = MESSAGES[group]
    kinds = dict.fromkeys(message.attributes, "uint32")
    kinds |= dict.fromkeys(message.one_byte, "uint8") | dict.fromkeys(message.bitsets, "bitset")
    described = (("unspec", "none"), ("header", "device"), *kinds.items())
    shape = type(group, (genlmsg,), {"nla_map": described, "device": device, "bitset": bitset})
    asking = GenericNetlinkSocket()
    asking.bind("ethtool", shape)
    return asking, shape


def interface_to(host: str, scope: int = 0) -> str:
    """The interface that packets to this IP address leave by: `lo` for one of this host's own.

    `scope` is that of a link-local IPv6 address: the number of the interface. OSError where no route leads there.
    """
    # Here, not above: most commands ask for no route.
    from socket import if_indextoname

    from pyroute2 import IPRoute  # type: ignore[import-untyped]
    from pyroute2.netlink.exceptions import NetlinkError

    if scope:
        return if_indextoname(scope)
    try:
        with IPRoute() as table:
            (route,) = table.route("get", dst=host.partition("%")[0])
    except NetlinkError as error:
        raise OSError(error.code, os.strerror(error.code), host) from None
    return if_indextoname(dict(route["attrs"])["RTA_OIF"])
