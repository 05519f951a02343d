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


# 1/1000 C. THERMAL_TEMP_INVALID is -274000 (include/linux/thermal.h); 127 and 255 C are an 8-bit register
# of ones, and 0 is a sensor off. A CPU has switched itself off before 125 C (THERMTRIP).
TEMPERATURE = Range(-40_000, 125_000, frozenset({0}))
# A trip that is off stands at 0, below it, at INT_MAX or at 255 C (drivers/thermal/intel, drivers/acpi/thermal.c).
TRIP = Range(1, 200_000)
# kHz. 0 and 4294967295 are no clock, nor is a number of MHz where kHz are due.
FREQUENCY = Range(10_000, 10_000_000)
PERCENT = Range(1, 100)
COUNT = Range(0, 2**64 - 1)
# powerclamp says -1 while it is off; a state above the device's own largest is another matter.
COOLING = Range(-1, 1024)


def problem(value: int, allowed: Range) -> str:
    """Why a number says nothing, or ""."""
    return "" if allowed.holds(value) else f"{value} is not plausible"


def plausible(value: int | None, allowed: Range) -> int | None:
    """The number, or None where it cannot be true."""
    return value if value is not None and allowed.holds(value) else None
