"""What a host dropped: by files, and in a namespace of its own against what `ip` says."""

import json
import sys
from pathlib import Path

import pytest

from tests.host.namespaces import namespace
from tests.trees import write
from tunectl.host.nics import COUNTERS, read_nic_drops, read_softnet_drops
from tunectl.host.sysroot import Sysroot


def nic(root: Path, kind: str = "1", **counters: str) -> Sysroot:
    """An interface eth0 with these counters, the others 0."""
    write(root, "sys/class/net/eth0/type", f"{kind}\n")
    for name in (*COUNTERS, "rx_errors"):
        write(root, f"sys/class/net/eth0/statistics/{name}", counters.get(name, "0") + "\n")
    return Sysroot(str(root))


def test_what_an_interface_dropped_is_a_sum(tmp_path: Path) -> None:
    root = nic(tmp_path, rx_dropped="3", rx_missed_errors="40", tx_dropped="500", rx_errors="6000")
    assert read_nic_drops(root, "eth0") == 543


def test_what_nobody_counts_is_unknown(tmp_path: Path) -> None:
    assert read_nic_drops(nic(tmp_path / "loopback", kind="772"), "eth0") is None
    assert read_nic_drops(nic(tmp_path / "odd", tx_dropped="many"), "eth0") is None
    root = nic(tmp_path / "lacking")
    (tmp_path / "lacking/sys/class/net/eth0/statistics/rx_dropped").unlink()
    assert read_nic_drops(root, "eth0") is None
    assert read_nic_drops(root, "eth1") is None
    assert read_softnet_drops(root) is None


def test_the_second_column_of_softnet_is_of_drops(tmp_path: Path) -> None:
    write(tmp_path, "proc/net/softnet_stat", "00000123 0000000a 00000007 0\n00000456 00000010 00000000 0\n")
    assert read_softnet_drops(Sysroot(str(tmp_path))) == 26
    write(tmp_path, "proc/net/softnet_stat", "nonsense\n")
    assert read_softnet_drops(Sysroot(str(tmp_path))) is None
    assert read_softnet_drops(Sysroot()) is not None


# A frame of a protocol that nobody here has is dropped by who receives it.
DROPPED = """
import json, socket, subprocess, time
from tunectl.host.nics import read_nic_drops
from tunectl.host.ethtool import interface_to
from tunectl.host.sysroot import Sysroot
root = Sysroot()
ways = [interface_to(address) for address in ("10.99.0.2", "10.99.0.1", "fd99::2")]
before = read_nic_drops(root, "v1")
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
    wire.bind(("v0", 0))
    for _ in range(7):
        wire.send(bytes.fromhex("ffffffffffff0202020202028889") + bytes(50))
until = time.monotonic() + 60  # a busy machine takes them in later
while read_nic_drops(root, "v1") < before + 7 and time.monotonic() < until:
    time.sleep(0.01)
shown = json.loads(subprocess.run(["ip", "-s", "-j", "link", "show", "v1"], capture_output=True, check=True).stdout)
try:
    ways.append(interface_to("192.0.2.1"))
except OSError as error:
    ways.append(error.strerror)
print(json.dumps([ways, before, read_nic_drops(root, "v1"), shown[0]["stats64"]]))
"""
ADDRESSES = """
ip link set lo up
ip addr add 10.99.0.1/24 dev v0
ip addr add fd99::1/64 dev v0 nodad
"""


@pytest.mark.slow
def test_a_real_interface_and_the_way_there() -> None:
    said = namespace(ADDRESSES + 'exec "$@"\n', sys.executable, "-c", DROPPED)
    ways, before, after, shown = json.loads(said)
    assert ways == ["v0", "lo", "v0", "Network is unreachable"]
    assert after >= before + 7
    assert after == shown["rx"]["dropped"] + shown["rx"].get("missed_errors", 0) + shown["tx"]["dropped"]
