"""The stamps of a trace on the counter that the probe reads. Pure.

`x86-tsc` is that counter. `mono_raw` is CLOCK_MONOTONIC_RAW, which the kernel makes of its clocksource by a factor that
nothing adjusts (kernel/time/timekeeping.c, ktime_get_raw_fast_ns()). Where the clocksource is the counter, each CPU's
readings of both, just before its run and just after, are two points of one straight line. The line has a step where the
kernel stopped the clock and not the counter, as in a suspend.
"""

from collections.abc import Iterable, Iterator
from math import ceil
from typing import NamedTuple

from tunectl.probe.causes import Event
from tunectl.probe.raw import SAME_COUNTER, Clock, Cpu
from tunectl.wording import ppm

COUNTER, RAW = "x86-tsc", "mono_raw"  # in the order in which they are asked for
CLOCKS = (COUNTER, RAW)
CLOCKSOURCE = "sys/devices/system/clocksource/clocksource0/current_clocksource"
# A stamp and each reading are rounded down to a nanosecond, and the middle of a reading's bracket to a tick.
_ROUNDED_NS, _ROUNDED_TICKS = 2, 1
_ROUNDED_PPM = 1e-4  # in a document
# The outer stamps of a bracket are not fenced, so it may be a little narrower than the time that it took.
_UNFENCED = 2


class Line(NamedTuple):
    """Brings stamps of one CPU to the counter."""

    ticks: int  # at a moment
    ns: int  # at the same one
    per_ns: float
    error_ticks: int  # of what is brought

    def at(self, stamp: int) -> int:
        """In ticks, at most `error_ticks` off between the readings."""
        return self.ticks + round((stamp - self.ns) * self.per_ns)

    def brought(self, events: Iterable[Event]) -> Iterator[Event]:
        """The same events with stamps of the counter."""
        ticks, start, per_ns = self.ticks, self.ns, self.per_ns
        return ((ticks + round((stamp - start) * per_ns), what) for stamp, what in events)


def refusal(clocksource: str) -> str:
    """Why `mono_raw` says nothing of the probe's counter on a kernel with this clocksource; "" where it does."""
    if clocksource in (names[0] for names in SAME_COUNTER.values()):
        return ""
    return f"{RAW} goes by the clocksource, which is {clocksource or 'not known'}, and not by the probe's counter"


def line_of(cpu: Cpu, clock: Clock) -> Line:
    """Through both readings of a CPU."""
    (before, before_ns), (after, after_ns) = cpu.clock_readings
    per_ns = (after - before) / (after_ns - before_ns)
    widest = max(cpu.clock_half_widths or (0, 0))
    # The same bound as for the stamps of packets (native/src/feed/stamps.c).
    return Line(before, before_ns, per_ns, _UNFENCED * widest + ceil(_ROUNDED_NS * clock.hz / 1e9) + _ROUNDED_TICKS)


def problem(cpus: Iterable[Cpu], clock: Clock) -> str:
    """Why these readings are not two points of one straight line; "" where nothing speaks against it."""
    if why := refusal(clock.kernel_source):
        return why
    if not clock.is_the_clocksource:
        return f"{RAW} goes by the clocksource {clock.kernel_source}, and the probe by {clock.source}"
    if abs(clock.drift_ppm) > _UNFENCED * (clock.error_ppm + clock.initial_error_ppm) + _ROUNDED_PPM:
        return f"{RAW} and the counter went apart by {ppm(clock.drift_ppm)} during the run"
    for cpu in cpus:
        (before, before_ns), (after, after_ns) = cpu.clock_readings
        if cpu.clock_half_widths is None or before_ns >= after_ns or before >= after:
            return f"{RAW} and the counter were not read together on CPU {cpu.cpu}"
        if cpu.steps_back:
            return f"the counter went backwards on CPU {cpu.cpu}"
        apart_ppm = ((after - before) * 1e9 / (after_ns - before_ns) / clock.hz - 1) * 1e6
        doubt_ppm = sum(cpu.clock_half_widths) * 1e6 / (after - before)
        if abs(apart_ppm) > _UNFENCED * (clock.error_ppm + doubt_ppm) + _ROUNDED_PPM:
            return f"{RAW} and the counter went apart by {ppm(apart_ppm)} on CPU {cpu.cpu}"
    return ""
