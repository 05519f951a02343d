"""The clock behind gettimeofday and every timestamp."""

from tunectl.knobs.codecs import CHOICE
from tunectl.knobs.drivers.pseudofile import PseudoFile
from tunectl.knobs.row import Absence, Knob
from tunectl.model import Severity

_CLOCK = "sys/devices/system/clocksource/clocksource0"

KNOBS = (
    Knob(
        "clocksource.current",
        PseudoFile(f"{_CLOCK}/current_clocksource", choices=f"{_CLOCK}/available_clocksource"),
        CHOICE,
        Severity.SLOWER,
        why="The TSC is read in some twenty nanoseconds without leaving the program; hpet and acpi_pm cost a system "
        "call and a device access of a microsecond. A site's choice, because machines differ in what they have; "
        "`tunectl check` says where it has fallen back.",
        source="Documentation/admin-guide/kernel-parameters.txt (clocksource=); kernel/time/clocksource.c",
        risk="a TSC that the kernel gave up is not stable: time may jump",
        absence=Absence(with_tsc=True),
    ),
)
