"""What came in the last ten minutes: SMIs, errors of PCI Express and memory, links, lost packets. Pure."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tunectl.fix import Fix, to_decide
from tunectl.host.hardware import FEWER_SMIS
from tunectl.monitor.model import Condition, Freshness, Health
from tunectl.monitor.rules.history import History, number, unknown


class _Kind(NamedTuple):
    """One kind of count, and its rule."""

    rule: str
    why: str
    source: str
    quantity: str
    least: int  # in ten minutes is trouble; fewer are chance
    said: str  # {subject} and {count}
    fix: Fix


_READER = to_decide(
    "have its reader keep up and run in time, and make its ring longer (net.rx_ring); tunectl preflight says whether "
    "the host holds it up"
)
_CABLE = to_decide("clean or replace cable and transceiver, try another port of the switch; its log says what it saw")
KINDS = (
    _Kind(
        "SmiOnHost",
        "a system management interrupt stops all CPUs for tens or hundreds of us, and no kernel can put it off",
        "the rise of MSR_SMI_COUNT on a housekeeping CPU (Intel SDM volume 4, MSR 34H)",
        *("smis", 1, "SMIs stopped all CPUs of the {subject}"),
        FEWER_SMIS,
    ),
    # Healthy links mend one now and then; the kernel handles each by an interrupt, and the packet is sent again.
    _Kind(
        "PcieErrors",
        "each corrected error sends a packet again, and interrupts a CPU",
        "the rise of aer_dev_correctable, error by error: ten in ten minutes",
        *("pcie_errors", 10, "{subject} corrected PCI Express errors"),
        to_decide("reseat the card and its riser, try another slot and other firmware: sudo dmesg | grep -i aer"),
    ),
    _Kind(
        "MemoryErrors",
        "each corrected error interrupts a CPU, or stops all for the firmware, and a module that has many will fail",
        "the rise of EDAC's ce_count: ten in ten minutes",
        *("memory_errors", 10, "memory controller {subject} corrected errors"),
        to_decide("replace the module: the kernel's log and the BMC name it (sudo dmesg | grep -i edac)"),
    ),
    _Kind(
        "LinkFlap",
        "while the link is down nothing arrives, and what was sent meanwhile is lost",
        "the rise of carrier_changes (Documentation/ABI/testing/sysfs-class-net)",
        *("carrier_changes", 1, "the link of {subject} went down or came up"),
        _CABLE,
    ),
    _Kind(
        "NicLoss",
        "a packet that finds no room is a gap in the feed: its reader was late, or the ring too short",
        "the rise of the driver's own counts of packets without room (tunectl/host/niccounters.py)",
        *("nic_lost", 1, "{subject} had no room for packets that arrived"),
        _READER,
    ),
    _Kind(
        "NicPaused",
        "a pause frame holds the line: every packet behind it waits, whoever it is for",
        "the rise of the driver's own counts of pause frames (tunectl/host/niccounters.py)",
        *("nic_paused", 1, "{subject} sent or got pause frames, and everything behind them waited"),
        to_decide(
            "switch flow control off at both ends (ethtool -A), and see who is too slow: the switch, or this host"
        ),
    ),
    _Kind(
        "NicCorrupt",
        "a packet that arrived broken is lost, and the link's error correction is at its end",
        "the rise of the driver's own counts of broken packets (tunectl/host/niccounters.py)",
        *("nic_corrupt", 1, "{subject} received what it could not mend"),
        _CABLE,
    ),
)


def judge_of(kind: _Kind) -> Callable[[History], Iterable[Condition]]:
    """The judge of this rule: bad above its least, between while anything came in ten minutes."""

    def judge(history: History) -> Iterator[Condition]:
        for subject, sample in history.get(kind.quantity).items():
            if sample.freshness is Freshness.ABSENT:
                continue
            count = number(sample)
            if count is None:
                yield unknown(kind.rule, sample)
                continue
            health = Health.BAD if count >= kind.least else Health.BETWEEN if count > 0 else Health.GOOD
            also = f" ({sample.kind})" if sample.kind else ""
            summary = f"{kind.said.format(subject=subject)}{also}: {sample.reason}" if count else ""
            yield Condition(kind.rule, subject, health, count, 0, sample.source, summary, kind.fix)

    return judge
