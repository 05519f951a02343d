"""Links that come up: the kernel's own messages, and one of each kind taken apart."""

import os
import struct
import subprocess
import sys

import pytest

from tunectl.host.devices import parse_links


def message(kind: int, index: int, flags: int, family: int = 0) -> bytes:
    """One link message, with an attribute that is of no interest."""
    body = struct.pack("=BxHiII", family, 1, index, flags, 0) + struct.pack("=HH4s", 8, 3, b"v0\0\0")
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


def test_two_messages_in_one_datagram() -> None:
    data = message(16, 3, 0x1043) + message(16, 4, 0x1003)
    assert list(parse_links(data)) == [(3, True), (4, False)]


def test_an_interface_that_goes_away_and_a_bridge_port() -> None:
    assert list(parse_links(message(17, 3, 0) + message(16, 3, 0x40, family=7))) == [(3, None)]


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 16, b"\x20\0\0\0\x10\0", message(16, 3, 0x40)[:20], message(99, 3, 0x40)]
)
def test_what_is_cut_off_or_something_else(data: bytes) -> None:
    assert list(parse_links(data)) == []


# In a network namespace of its own: a pair of interfaces, of which one end is taken down and up.
SCRIPT = """
import subprocess, time
from tunectl.host.devices import LinkMonitor
def ip(words): subprocess.run(["ip", *words.split()], check=True)
ip("link add v0 type veth peer name v1")
seen = []
monitor = LinkMonitor(seen.append)
monitor.start()
for turn in (1, 2):
    ip("link set v0 up"); ip("link set v1 up")
    deadline = time.monotonic() + 60  # told a while after it came, and not at all if it is gone by then
    while seen.count("v0") < turn:
        assert time.monotonic() < deadline, seen
        time.sleep(0.01)
    ip("link set v1 down"); ip("link set v0 down")
monitor.stop()
assert seen.count("v0") == 2, seen
"""


def test_a_real_link_that_comes_up_twice() -> None:
    if os.geteuid() or subprocess.run(["unshare", "-n", "ip", "link"], capture_output=True).returncode:
        pytest.skip("a network namespace needs root, unshare and ip")
    ran = subprocess.run(["unshare", "-n", sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=180)
    assert ran.returncode == 0, ran.stderr
