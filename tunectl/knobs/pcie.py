"""PCI Express: the power states of links, and of the cards that matter to a trader."""

from tunectl.host.cards import DEVICES, trading_cards
from tunectl.knobs.codecs import CHOICE, SWITCH
from tunectl.knobs.drivers.pseudofile import PseudoFile
from tunectl.knobs.row import Absence, Knob, View, once
from tunectl.model import Severity

_POLICY = "sys/module/pcie_aspm/parameters/policy"
_SLEPT = "by itself, where nothing is sent. It wakes later than from L1."
_ASKED = "once the card was put to sleep (PCI-PM). The card then wakes later."
_SUBSTATES = {
    "l1_1_aspm": f"The link goes from L1 to L1.1 {_SLEPT}",
    "l1_2_aspm": f"The link goes from L1 to L1.2, in which even its common voltage is off, {_SLEPT}",
    "l1_1_pcipm": f"The link goes to L1.1 {_ASKED}",
    "l1_2_pcipm": f"The link goes to L1.2, in which even its common voltage is off, {_ASKED}",
}


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
    return "" if _ways(view) else "the host file names no PCI network card; there is no graphics card or accelerator"


def _of_cards(path: str) -> PseudoFile:
    return PseudoFile(f"{DEVICES}/{{name}}/{path}", idle=_no_cards, among=_ways)


def _of_link(name: str, why: str, after: tuple[str, ...] = ()) -> Knob:
    """One state that a link can sleep in."""
    return Knob(
        f"pcie.{name}",
        _of_cards(f"link/{name}"),
        SWITCH,
        Severity.SLOWER,
        why=why,
        source=f"Documentation/ABI/testing/sysfs-bus-pci (link/{name}); drivers/pci/pcie/aspm.c",
        risk="more power",
        after=after,
        absence=Absence(("pcie_aspm=off",)),
    )


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
    _of_link(
        "l0s_aspm",
        "A link in L0s takes microseconds to carry the next message, in each direction by itself. What is "
        "switched off here stays off whatever policy comes later.",
    ),
    # What takes L1 away takes its substates along, and gives L1 alone back: each has to be seen, and kept, before.
    _of_link(
        "l1_aspm",
        "A link in L1 takes microseconds, and in its substates tens of them, to carry the next message. Without L1 "
        "there are no substates. What is switched off here stays off whatever policy comes later.",
        after=tuple(f"pcie.{name}" for name in _SUBSTATES),
    ),
    *(_of_link(name, why) for name, why in _SUBSTATES.items()),
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
