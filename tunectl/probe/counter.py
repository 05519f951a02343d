"""What a processor and its hypervisor say of the rate of the counter that the probe reads. Pure."""

from collections.abc import Mapping
from typing import Any

_FEATURES, _CRYSTAL, _HYPERVISOR, _TIMING = 1, 0x15, 0x4000_0000, 0x4000_0010  # CPUID leaves
_IN_HYPERVISOR = 1 << 31  # ECX of the features
_STATED = ("cpuid", "cntfrq")


def shown_clock(written: Mapping[str, Any]) -> dict[str, Any]:
    """The clock of a document as the native program wrote it, with what was stated as one rate."""
    clock = {name: value for name, value in written.items() if name not in _STATED}
    return clock if clock == written else clock | {"stated_hz": stated_hz(written)}


def stated_hz(written: Mapping[str, Any]) -> float | None:
    """In Hz; None where nobody states one."""
    if "cntfrq" in written:
        return float(written["cntfrq"]) or None
    leaves = {leaf: registers for leaf, *registers in written["cpuid"]}
    return _by_hypervisor(leaves) or _by_crystal(leaves)


def _by_hypervisor(leaves: Mapping[int, list[int]]) -> float | None:
    """VMware defined leaf 0x40000010 (EAX: kHz of the TSC); KVM and others offer it, too."""
    if not leaves[_FEATURES][2] & _IN_HYPERVISOR or leaves[_HYPERVISOR][0] < _TIMING:
        return None
    return leaves[_TIMING][0] * 1e3 or None


def _by_crystal(leaves: Mapping[int, list[int]]) -> float | None:
    """A processor that lacks the leaf answers with another: leaf 0 says which is the last."""
    denominator, numerator, crystal_hz, _ = leaves[_CRYSTAL]
    if leaves[0][0] < _CRYSTAL or not denominator:
        return None
    return crystal_hz * numerator / denominator or None
