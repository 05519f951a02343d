"""Does another host answer, and which way leads there: what tells a change that cut this host off from a quiet peer.

Source: ssh(1), SSH_CONNECTION; connect(2): who refuses a connection is there.
"""

import ipaddress
import os
import socket

from tunectl.host.procs import read_addresses
from tunectl.host.sysroot import Sysroot

_TIMEOUT_S = 3.0
_SSH = 22
_MOST_PARENTS = 16


def answers(host: str, port: int) -> bool:
    """Does a TCP connection come about, or is it refused? Waits for three seconds."""
    try:
        socket.create_connection((host, port), _TIMEOUT_S).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return True


def read_links(root: Sysroot) -> dict[str, str]:
    """By interface, whether its link is up and which addresses it has."""
    states = {name: root.get(f"sys/class/net/{name}/operstate") for name in root.listdir("sys/class/net")}
    addresses = read_addresses()
    return {name: " ".join([state, *addresses.get(name, ())]) for name, state in sorted(states.items())}


def peer_of_ssh(root: Sysroot) -> str:
    """ADDRESS:22 of who is connected to us by ssh; "" where nobody is. sudo(8) hides it, and the parents have it."""
    connection, pid = os.environ.get("SSH_CONNECTION", ""), os.getppid()
    for _ in range(_MOST_PARENTS):
        if connection or pid < 2:
            break
        environ = root.get(f"proc/{pid}/environ").split("\0")
        connection = next((word.partition("=")[2] for word in environ if word.startswith("SSH_CONNECTION=")), "")
        parent = root.get(f"proc/{pid}/stat").rpartition(")")[2].split()[1:2]
        pid = int(parent[0]) if parent else 0
    try:
        address = ipaddress.ip_address(connection.partition(" ")[0])
    except ValueError:
        return ""
    return f"[{address}]:{_SSH}" if address.version == 6 else f"{address}:{_SSH}"
