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
    # VMware defined leaf 0x40000010 (EAX: kHz of the TSC); KVM and others offer it, too.
    if leaves[_FEATURES][2] & _IN_HYPERVISOR and leaves[_HYPERVISOR][0] >= _TIMING and leaves[_TIMING][0]:
        return float(leaves[_TIMING][0] * 1e3)
    denominator, numerator, crystal_hz, _ = leaves[_CRYSTAL]
    if leaves[0][0] < _CRYSTAL or not denominator:  # one that lacks the leaf answers with another: leaf 0 has the last
        return None
    return crystal_hz * numerator / denominator or None
