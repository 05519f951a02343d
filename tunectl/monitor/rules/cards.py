"""What came in the last ten minutes: SMIs, errors of PCI Express and memory, links, lost packets. Pure."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tunectl.fix import Fix, to_decide
from tunectl.host.hardware import FEWER_SMIS
from tunectl.monitor.model import Condition, Freshness, Health
from tunectl.monitor.rules.history import History, number, unknown


class _Kind(NamedTuple):
    """One kind of count."""

    rule: str
    quantity: str
    least: int  # in ten minutes is trouble; fewer are chance
    said: str  # {subject} and {count}
    fix: Fix


_READER = to_decide(
    "have its reader keep up and run in time, and make its ring longer (net.rx_ring); tunectl preflight says whether "
    "the host holds it up"
)
_CABLE = to_decide("clean or replace cable and transceiver, try another port of the switch; its log says what it saw")
_KINDS = (
    _Kind(
        "SmiOnHost",
        "smis",
        1,
        "SMIs stopped all CPUs of the {subject}",
        FEWER_SMIS,
    ),
    # Healthy links mend one now and then; the kernel handles each by an interrupt, and the packet is sent again.
    _Kind(
        "PcieErrors",
        "pcie_errors",
        10,
        "{subject} corrected PCI Express errors",
        to_decide("reseat the card and its riser, try another slot and other firmware: sudo dmesg | grep -i aer"),
    ),
    _Kind(
        "MemoryErrors",
        "memory_errors",
        10,
        "memory controller {subject} corrected errors",
        to_decide("replace the module: the kernel's log and the BMC name it (sudo dmesg | grep -i edac)"),
    ),
    _Kind("LinkFlap", "carrier_changes", 1, "the link of {subject} went down or came up", _CABLE),
    _Kind("NicLoss", "nic_lost", 1, "{subject} had no room for packets that arrived", _READER),
    _Kind(
        "NicPaused",
        "nic_paused",
        1,
        "{subject} sent or got pause frames, and everything behind them waited",
        to_decide(
            "switch flow control off at both ends (ethtool -A), and see who is too slow: the switch, or this host"
        ),
    ),
    _Kind("NicCorrupt", "nic_corrupt", 1, "{subject} received what it could not mend", _CABLE),
)


def judge_of(rule: str) -> Callable[[History], Iterable[Condition]]:
    """The judge of this rule: bad above its least, between while anything came in ten minutes."""
    (kind,) = (one for one in _KINDS if one.rule == rule)

    def judge(history: History) -> Iterator[Condition]:
        for subject, sample in history.get(kind.quantity).items():
            if sample.freshness is Freshness.ABSENT:
                continue
            count = number(sample)
            if count is None:
                yield unknown(rule, sample)
                continue
            health = Health.BAD if count >= kind.least else Health.BETWEEN if count > 0 else Health.GOOD
            also = f" ({sample.kind})" if sample.kind else ""
            summary = f"{kind.said.format(subject=subject)}{also}: {sample.reason}" if count else ""
            yield Condition(rule, subject, health, count, 0, sample.source, summary, kind.fix)

    return judge
