"""How far the kernel's counters rose between two looks. Pure.

A difference is taken of each member (a CPU's count of one thing) that both looks have, and only then are differences
added: the largest of several counts hides a smaller one that rises, and a sum falls or jumps when a CPU goes or comes.
"""

from collections.abc import Hashable, Mapping
from typing import TypeVar

K = TypeVar("K", bound=Hashable)

INTERRUPTS = 32  # unsigned int: kernel/irq/proc.c, arch/x86/include/asm/hardirq.h, fs/proc/softirqs.c
THROTTLES = 64  # unsigned long: drivers/thermal/intel/therm_throt.c
# A fall that a wrap explains by less than this share of all values is one. More never comes between two looks: a CPU
# that takes 100,000 interrupts a second needs 45 minutes for it.
_SHARE = 16


def rise(then: int, now: int, bits: int = INTERRUPTS) -> int | None:
    """How often it counted; None where it began anew meanwhile. `bits`: the kernel's width, at which it wraps."""
    if now >= then:
        return now - then
    values = 1 << bits
    wrapped = now + values - then
    return wrapped if then < values and wrapped < values // _SHARE else None


def rises(before: Mapping[K, int], after: Mapping[K, int], bits: int = INTERRUPTS) -> dict[K, int]:
    """rise() of each member that both looks have; one that came, went or began anew is left out."""
    return {
        member: count
        for member, now in after.items()
        if member in before and (count := rise(before[member], now, bits)) is not None
    }
