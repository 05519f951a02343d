"""Do the figures of a document say what its own histogram and list say? Pure.

A file that somebody edited, or that was put together from two, is no result. A figure was made of the very gaps that
the histogram counts, so it lies within what the ends of the buckets allow. The ends are whole nanoseconds, rounded
down.
"""

from __future__ import annotations

from collections.abc import Iterator

from tunectl.probe.explain import ARRIVALS
from tunectl.probe.lengths import Lengths
from tunectl.shapes import Cpu

_ROUNDED_NS = 2  # figures are rounded down, and so is the length of the run


def disagreement(cpu: Cpu) -> str:
    """The first figure of a CPU that its gaps contradict: key, what it says, what is possible; "" where none is.

    But for the percentiles of gaps, which each table of figures has.
    """
    return next(_disagreements(cpu), "")


def _disagreements(cpu: Cpu) -> Iterator[str]:
    if (listed := len(cpu.events)) + cpu.events_lost != cpu.interruptions:
        yield f"events: {listed:,} and {cpu.events_lost:,} lost are not the {cpu.interruptions:,} interruptions"
    least = Lengths((float(low), count) for low, _, count in cpu.histogram)
    most = Lengths((float(high + 1), count) for _, high, count in cpu.histogram)
    yield from _outside("max_ns", cpu.max_ns, least.longest, most.longest)
    yield from _outside("stolen_ns", cpu.stolen_ns, least.sums[0], most.sums[0])
    run_ns = cpu.duration_ns
    if not run_ns:
        return
    if abs(cpu.stolen_ppm * run_ns / 1e6 - cpu.stolen_ns) > _ROUNDED_NS + run_ns * 1e-9:  # three decimals of a ppm
        yield f"stolen_ppm: {cpu.stolen_ppm:g}, and stolen_ns of duration_ns is {cpu.stolen_ns * 1e6 / run_ns:g}"
    for name in filter(cpu.arrival_ns.__contains__, ARRIVALS):
        of = (side.arrival_percentile(ARRIVALS[name], run_ns) for side in (least, most))
        yield from _outside(f"arrival_ns[{name}]", cpu.arrival_ns[name], *of)


def _outside(key: str, said: float, least: float, most: float) -> Iterator[str]:
    if not least - _ROUNDED_NS <= said <= most + _ROUNDED_NS:
        yield f"{key}: {said:,.12g}, and the histogram allows {least:,.12g} to {most:,.12g}"
