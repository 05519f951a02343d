"""Cards behind PCI Express on a real kernel: their links, the errors that those mend, and how they sleep."""

import json
import time
from typing import Any

import pytest

from .alerts import edges, log, named, wait_for
from .lab import PREFIX, Lab
from .machine import Machine, Port
from .platforms import Platform
from .product import HOST_FILE, findings, tunectl, verify
from .test_monitor_lab import start

PORTS = (Port("e1000e", 8, "16"), Port("e1000e", 1, "2_5"), Port("bochs-display", 4, "8", is_switched=True))
EXPRESS = Platform("express", "Debian 12 with cards behind PCI Express", machine=Machine(ports=PORTS))
ROOM, RISER, SCREEN = "0000:01:00.0", "0000:02:00.0", "0000:05:00.0"  # in a wide slot, in a narrow one, behind a switch
CARDS = '[network]\ninterfaces = ["enp1s0", "enp2s0"]\n'
PCI = "/sys/bus/pci/devices"
POLICY = "/sys/module/pcie_aspm/parameters/policy"
EXPRESS_CAPABILITY, LINK_CAPABILITIES = 0x10, 0x0C
BAD_TLP = 0x40
COUNTED = ("SmiOnHost", "PcieErrors", "MemoryErrors", "LinkFlap", "NicLoss", "NicPaused", "NicCorrupt")
# struct aer_error_inj of drivers/pci/pcie/aer_inject.c: where, uncorrected, corrected, four words of a header, domain.
# The kernel counts what it finds when it looks: errors that come meanwhile are one to it.
INJECT = """
import struct, sys, time
bus, device, error, count = map(int, sys.argv[1:])
for _ in range(count):
    with open("/dev/aer_inject", "wb", buffering=0) as to:
        to.write(struct.pack("=3Bx7I", bus, device, 0, 0, error, 0, 0, 0, 0, 0))
    time.sleep(1)
"""
pytestmark = [
    pytest.mark.long,
    pytest.mark.parametrize("lab", [EXPRESS], ids=[EXPRESS.name], indirect=True, scope="session"),
]


@pytest.fixture
def express(installed: Lab) -> Lab:
    """A host that trades by two cards behind root ports."""
    installed.write("/etc/tunectl/host.toml", HOST_FILE + CARDS)
    return installed


def links(lab: Lab) -> dict[str, Any]:
    """check.card_link, by the card that it judges."""
    found = tunectl(lab, "check --format json --window 1", timeout=600).json["findings"]
    return {one["target"].removeprefix("check.card_link"): one for one in found if one["knob"] == "check.card_link"}


def can_do(lab: Lab, address: str, lanes: int, generation: int) -> None:
    """The card says that it can do so much; what it was trained to stays."""
    said = lab.get(f"{PCI}/{address}/config")
    at = said[0x34]
    while said[at] != EXPRESS_CAPABILITY:
        at = said[at + 1]
    at += LINK_CAPABILITIES
    rest = int.from_bytes(said[at : at + 4], "little") & ~0x3FF
    lab.rewrite_card(address, {at: (rest | lanes << 4 | generation).to_bytes(4, "little")})


def test_a_card_that_lost_its_lanes_is_named_and_one_on_a_riser_is_not(express: Lab) -> None:
    before = links(express)
    assert {name: one["outcome"] for name, one in before.items()} == {
        "[enp1s0]": "compliant",
        "[enp2s0]": "compliant",
        f"[{SCREEN}]": "unreadable",  # QEMU's switch says nothing of the link below it
    }
    assert "max_link_width says 0" in before[f"[{SCREEN}]"]["reason"]
    for address in (ROOM, RISER, SCREEN, "0000:04:00.0"):
        can_do(express, address, 4, 2)
    after = links(express)
    for name, port, card in (("enp1s0", "0000:00:11.0", ROOM), (SCREEN, "0000:04:00.0", SCREEN)):
        one = after[f"[{name}]"]
        assert (one["outcome"], one["observed"], one["desired"]) == ("drifted", "x1 at 2.5 GT/s", "x4 at 5 GT/s")
        assert f"from {port} to {card}" in one["reason"]
    assert after["[enp2s0]"]["outcome"] == "compliant"


def test_errors_of_a_link_are_counted_and_their_card_is_named(express: Lab) -> None:
    start(express, extra=CARDS)
    time.sleep(20)  # the second look at the counters, with which the first is compared
    assert not [edge.name for edge in edges(express) if edge.rule in COUNTED], log(express)
    express.write("/root/inject.py", INJECT)
    express.run(f"modprobe aer_inject && python3 /root/inject.py 1 0 {BAD_TLP} 20", timeout=120)
    assert int(express.run(f"awk '/BadTLP/ {{print $2}}' {PCI}/{ROOM}/aer_dev_correctable").out) >= 10
    found = wait_for(express, named("PcieErrors", "firing"), 120)
    (edge,) = [edge for edge in found if edge.rule in COUNTED]
    assert edge.name == f"PcieErrors[{ROOM}]"
    assert "on the way to enp1s0" in str(edge.fields)
    assert "BadTLP" in str(edge.fields)


def test_what_sleeps_is_kept_awake_and_may_sleep_again(express: Lab) -> None:
    express.write(POLICY, "powersave")
    express.write(f"{PCI}/{RISER}/power/control", "auto")
    paths = f"{POLICY} {PCI}/*/link/* {PCI}/*/power/control"
    before = express.run(f"grep . {paths}").out
    assert f"{RISER}/link/l0s_aspm:1" in before
    knobs = ("pcie.aspm_policy", f"pcie.l0s_aspm[{RISER}]", f"pcie.runtime_power[{RISER}]")
    assert {*knobs} <= findings(verify(express), "drifted").keys()
    tunectl(express, "apply --yes --runtime -q")
    assert express.read(POLICY) == "default [performance] powersave powersupersave "
    assert {*knobs} <= findings(verify(express), "compliant").keys()
    tunectl(express, "restore --yes -q")
    assert express.run(f"grep . {paths}").out == before


# Each read that came with the cards and the clock, many times over: how many interrupts of the kernel's own came to the
# isolated CPUs meanwhile, and as many seconds without it.
READS = """
import json, time
from tunectl.host.cards import read_links, trading_cards
from tunectl.host.hardware import count_smis
from tunectl.host.hosttime import read_host_time
from tunectl.host.ptpclock import read_card_clock
from tunectl.host.sysroot import Sysroot
from tunectl.monitor.sources.cards import _drivers, _kernels

ROOT, CARDS, TIMES = Sysroot("/"), ("enp1s0", "enp2s0"), 20
READS = {
    "links": lambda: [read_links(ROOT, card) for card in trading_cards(ROOT, CARDS)],
    "counted by the kernel": lambda: dict(_kernels(ROOT, CARDS)),
    "counted by drivers": lambda: dict(_drivers(ROOT, CARDS)),
    "clock": lambda: read_host_time(ROOT),
    "card's clock": lambda: read_card_clock(ROOT, "dev/ptp0"),
    "smis": lambda: count_smis(ROOT, frozenset({0})).count is not None,
}

def sent():
    rows = [line.split() for line in open("/proc/interrupts")]
    return sum(int(row[1 + cpu]) for row in rows if row[0] in ("CAL:", "TLB:", "RES:", "IWI:") for cpu in (2, 3))

def during(read):
    before = sent()
    for _ in range(TIMES):
        read()
    return sent() - before

for read in READS.values():
    read()
waits = lambda: time.sleep(0.05)
print(json.dumps({name: [bool(read()), during(read), during(waits)] for name, read in READS.items()}))
"""


def test_no_read_of_cards_and_clock_reaches_an_isolated_cpu(tuned: Lab) -> None:
    tuned.run("modprobe msr")
    said = tuned.run(f"taskset -c 1 {PREFIX}/bin/python3 -", stdin=READS, timeout=300).out
    found = json.loads(said)
    assert all(answered for answered, _, _ in found.values()), said
    assert not {name: counts for name, (_, *counts) in found.items() if counts[0] > counts[1] + 2}, said
