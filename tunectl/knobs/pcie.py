"""PCI Express: the power states of links."""

from tunectl.knobs.codecs import CHOICE
from tunectl.knobs.drivers.pseudofile import PseudoFile
from tunectl.knobs.row import Absence, Knob, View
from tunectl.model import Severity

_POLICY = "sys/module/pcie_aspm/parameters/policy"
_DEVICES = "sys/bus/pci/devices"


def _no_links(view: View) -> str:
    """The kernel shows a link's states where it controls them (5.5 and later); elsewhere it refuses the policy."""
    for device in view.root.listdir(_DEVICES):
        if any(name.endswith("_aspm") for name in view.root.listdir(f"{_DEVICES}/{device}/link")):
            return ""
    return "the kernel controls no link's power states here: none can sleep, or the firmware keeps them to itself"


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
        absence=Absence(("pcie_aspm=off",)),
    ),
)
