"""PCI Express: the power states of links, and of the cards that matter to a trader."""

from tunectl.host.cards import DEVICES, trading_cards
from tunectl.knobs.codecs import CHOICE, SWITCH
from tunectl.knobs.drivers.pseudofile import PseudoFile
from tunectl.knobs.row import Absence, Knob, View, once
from tunectl.model import Severity

_POLICY = "sys/module/pcie_aspm/parameters/policy"


def _no_links(view: View) -> str:
    """The kernel shows a link's states where it controls them (5.5 and later); elsewhere it refuses the policy."""
    for device in view.root.listdir(DEVICES):
        if any(name.endswith("_aspm") for name in view.root.listdir(f"{DEVICES}/{device}/link")):
            return ""
    return "the kernel controls no link's power states here: none can sleep, or the firmware keeps them to itself"


@once
def _ways(view: View) -> frozenset[str]:
    """The cards of the host file's interfaces, graphics cards, accelerators, and the bridges above each."""
    cards = trading_cards(view.root, [name for name in view.interfaces if "/" not in name])
    return frozenset(address for card in cards for address in card.way)


def _no_cards(view: View) -> str:
    return "" if _ways(view) else "the host file names no network card, and there is no graphics card or accelerator"


def _of_cards(path: str) -> PseudoFile:
    return PseudoFile(f"{DEVICES}/{{name}}/{path}", idle=_no_cards, among=_ways)


KNOBS = (
    Knob(
        "pcie.aspm_policy",
        PseudoFile(_POLICY, choices=_POLICY, idle=_no_links),
        CHOICE,
        Severity.SLOWER,
        why="A link that sleeps takes microseconds (L1), or tens of them (its substates), to carry the next message "
        "of a NIC. `performance` keeps links awake; `default` leaves them as the firmware set them up.",
        source="drivers/pci/pcie/aspm.c; Documentation/admin-guide/kernel-parameters.txt (pcie_aspm=)",
        risk="more power",
        # It hides what a link may do; what is taken from a link comes back only by another write to that link.
        after=("pcie.l0s_aspm", "pcie.l1_aspm"),
        absence=Absence(("pcie_aspm=off",)),
    ),
    Knob(
        "pcie.l0s_aspm",
        _of_cards("link/l0s_aspm"),
        SWITCH,
        Severity.SLOWER,
        why="A link in L0s takes microseconds to carry the next message, in each direction by itself. What is "
        "switched off here stays off whatever policy comes later.",
        source="Documentation/ABI/testing/sysfs-bus-pci (link/l0s_aspm); drivers/pci/pcie/aspm.c",
        risk="more power",
        absence=Absence(("pcie_aspm=off",)),
    ),
    Knob(
        "pcie.l1_aspm",
        _of_cards("link/l1_aspm"),
        SWITCH,
        Severity.SLOWER,
        why="A link in L1 takes microseconds, and in its substates tens of them, to carry the next message. Without L1 "
        "there are no substates. What is switched off here stays off whatever policy comes later.",
        source="Documentation/ABI/testing/sysfs-bus-pci (link/l1_aspm); drivers/pci/pcie/aspm.c",
        risk="more power",
        absence=Absence(("pcie_aspm=off",)),
    ),
    Knob(
        "pcie.runtime_power",
        _of_cards("power/control"),
        CHOICE,
        Severity.STALL,
        why="With `auto` the kernel suspends a card, and the bridges above it, when it is idle. The first message "
        "after a pause waits until it woke; a display driver that did so cost a CPU a millisecond (a public report).",
        source="Documentation/ABI/testing/sysfs-devices-power (power/control); Documentation/power/runtime_pm.rst",
        risk="more power",
    ),
)
