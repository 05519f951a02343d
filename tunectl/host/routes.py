"""Which network interface leads to an address: the kernel's routing table, asked by rtnetlink(7)."""

from __future__ import annotations

import os
import socket


def interface_to(host: str, scope: int = 0) -> str:
    """The interface that packets to this IP address leave by: `lo` for one of this host's own.

    `scope` is that of a link-local IPv6 address: the number of the interface. OSError where no route leads there.
    """
    # Here, not above: most commands ask for no route.
    from pyroute2 import IPRoute  # type: ignore[import-untyped]
    from pyroute2.netlink.exceptions import NetlinkError  # type: ignore[import-untyped]

    if scope:
        return socket.if_indextoname(scope)
    try:
        with IPRoute() as table:
            (route,) = table.route("get", dst=host.partition("%")[0])
    except NetlinkError as error:
        raise OSError(error.code, os.strerror(error.code), host) from None
    return socket.if_indextoname(dict(route["attrs"])["RTA_OIF"])
