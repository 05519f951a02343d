"""Which numbers of firmware and drivers can be true. What lies outside is as good as unreadable. Pure.

A sensor that is off, a register read as all ones and the kernel's own "invalid" are numbers, too: nothing is compliant
by them, nothing alarms, and nothing is known by them that was not.
"""

from typing import NamedTuple


class Range(NamedTuple):
    """What a quantity can be, both ends included, and the numbers within it that mean "no reading"."""

    least: int
    most: int
    marks: frozenset[int] = frozenset()

    def holds(self, value: int) -> bool:
        """Can it be true?"""
        return self.least <= value <= self.most and value not in self.marks

    def up_to(self, most: int | None) -> "Range":
        """The same of a device that says its own largest number; None where it does not."""
        return self if most is None else self._replace(most=min(self.most, most))


# 1/1000 C. THERMAL_TEMP_INVALID is -274000 (include/linux/thermal.h); 127 and 255 C are an 8-bit register
# of ones, and 0 is a sensor off. A CPU has switched itself off before 125 C (THERMTRIP).
TEMPERATURE = Range(-40_000, 125_000, frozenset({0}))
# A trip that is off stands at 0, below it, at INT_MAX or at 255 C (drivers/thermal/intel, drivers/acpi/thermal.c).
TRIP = Range(1, 200_000)
# kHz. 0 and 4294967295 are no clock, nor is a number of MHz where kHz are due.
FREQUENCY = Range(10_000, 10_000_000)
# Percent of the highest clock: intel_pstate clamps into this what is written (drivers/cpufreq/intel_pstate.c).
SHARE = Range(1, 100)
COUNT = Range(0, 2**64 - 1)
# Of a PCI Express link, lanes and GT/s: 0 is no link, 63 and 255 are a register of ones.
LINK_WIDTHS = frozenset({1, 2, 4, 8, 12, 16, 32})
LINK_SPEEDS = frozenset({2.5, 5.0, 8.0, 16.0, 32.0, 64.0, 128.0})
# powerclamp says -1 while it is off. A device says its own largest in max_state.
COOLING = Range(-1, 1024)


def problem(value: int, allowed: Range) -> str:
    """Why a number says nothing, or ""."""
    return "" if allowed.holds(value) else f"{value} is not plausible"


def plausible(value: int | None, allowed: Range) -> int | None:
    """The number, or None where it cannot be true."""
    return value if value is not None and allowed.holds(value) else None
