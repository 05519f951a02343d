"""Which sample becomes which metric: the table of the exporters. Pure.

Base units (kHz becomes hertz, thousandths of a degree become degrees); counters end in _total. Only fresh numbers are
values: what is stale or missing shows in tunectl_cpu_frequency_stale_hertz, tunectl_cpu_frequency_health and
tunectl_samples. Source: prometheus/docs, docs/practices/naming.md; node_exporter's cpu collectors for the habits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NamedTuple

from tunectl.monitor.model import Sample
from tunectl.report.escape import printable

_KHZ, _MILLI, _NANO = 1e3, 1e-3, 1e-9
MOST = 100  # series of a metric whose subjects are not CPUs
MOST_CPUS = 8192  # the kernel's own limit is CONFIG_NR_CPUS=8192
_LONGEST_LABEL = 128
_NUMBER = re.compile(r"[a-z_]+(\d+)")
_PARTS = re.compile(r"([^\[]*)(?:\[.*\])?", re.DOTALL)


class Row(NamedTuple):
    """One metric of the table."""

    name: str  # without tunectl_
    text: str
    labels: tuple[str, ...]
    of: Callable[[Sample], tuple[str, ...]]  # the labels' values
    value: Callable[[Sample], float | None]  # None: this sample has no value for this metric
    counter: bool = False
    most: int = MOST_CPUS


def label(text: str) -> str:
    """Text that others chose, on one line and no longer than is useful; the library escapes quotes."""
    return printable(text)[:_LONGEST_LABEL]


def number_of(subject: str) -> str:
    """`4` for cpu4, core4, package4, irq4; anything else as it is."""
    found = _NUMBER.fullmatch(subject)
    return found[1] if found else label(subject)


def number(sample: Sample) -> float | None:
    """The value of a sample that is fresh and a finite number."""
    value = sample.value
    if sample.freshness != "fresh" or isinstance(value, bool | str) or value is None or not math.isfinite(value):
        return None
    return float(value)


def _scaled(scale: float) -> Callable[[Sample], float | None]:
    def value(sample: Sample) -> float | None:
        found = number(sample)
        return None if found is None else found * scale

    return value


def _stale(sample: Sample) -> float | None:
    return number(sample._replace(freshness=type(sample.freshness)("fresh"))) if sample.freshness == "stale" else None


def _only(sample: Sample) -> tuple[str, ...]:
    return (number_of(sample.subject),)


def _sourced(sample: Sample) -> tuple[str, ...]:
    return number_of(sample.subject), label(sample.source)


def _kind(word: str) -> Callable[[Sample], tuple[str, ...]]:
    return lambda sample: (number_of(sample.subject), word)


def _stale_hertz(sample: Sample) -> float | None:
    found = _stale(sample)
    return None if found is None else found * _KHZ


def _drifted(sample: Sample) -> float | None:
    return 1.0 if sample.freshness == "fresh" and sample.value == "drifted" else None


def _target(sample: Sample) -> tuple[str, ...]:
    found = _PARTS.fullmatch(sample.subject)
    return (label(found[1] if found else sample.subject), label(sample.subject))


def _active(sample: Sample) -> float | None:
    return float(sample.value != "inactive") if sample.freshness == "fresh" else None


def _landed(sample: Sample) -> float | None:
    """Interrupts that never came to an isolated CPU are thousands on a large host, and no news."""
    return number(sample) or None


def _gauge(name: str, text: str, scale: float, *labels: str, of: Callable[[Sample], tuple[str, ...]] = _only) -> Row:
    return Row(name, text, labels, of, _scaled(scale))


def _counter(name: str, text: str, *labels: str, of: Callable[[Sample], tuple[str, ...]] = _only) -> Row:
    return Row(name, text, labels, of, _scaled(1), counter=True)


def _said_by(sample: Sample) -> tuple[str, ...]:
    return (label(sample.subject),)


def _latency(name: str, text: str, scale: float = _NANO) -> tuple[Row, ...]:
    return (Row(name, text, ("subject",), _said_by, _scaled(scale), most=MOST),)


def _messages(name: str, text: str) -> tuple[Row, ...]:
    return (Row(name, text, ("subject",), _said_by, _scaled(1), counter=True, most=MOST),)


_FREQUENCY = "What a CPU runs at, where that is known now; source: how it is known."
_STALE = "What a file shows as a CPU's frequency where it is a fallback and no measurement."
_FRESHNESS = "1 for how a CPU's frequency is known now: fresh, stale, no-data, absent."
_LIMIT = "The highest frequency that the firmware (bios) or cpufreq (max) permits."
_KERNEL = "Timer ticks, function calls and reschedules that an isolated CPU took."


def _frequencies() -> tuple[Row, ...]:
    def freshness(sample: Sample) -> tuple[str, ...]:
        return number_of(sample.subject), label(sample.source), sample.freshness.value

    def known(sample: Sample) -> float | None:
        return 1.0 if _NUMBER.fullmatch(sample.subject) else None  # "host": it has no such thing at all

    return (
        _gauge("cpu_frequency_hertz", _FREQUENCY, _KHZ, "cpu", "source", of=_sourced),
        Row("cpu_frequency_stale_hertz", _STALE, ("cpu", "source"), _sourced, _stale_hertz),
        Row("cpu_frequency_health", _FRESHNESS, ("cpu", "source", "health"), freshness, known),
    )


ROWS: dict[str, tuple[Row, ...]] = {
    "core_throttles": (_counter("core_throttles", "How often a physical core was throttled for heat.", "core"),),
    "package_throttles": (_counter("package_throttles", "How often a package was throttled for heat.", "package"),),
    "thermal_interrupts": (_counter("thermal_interrupts", "Thermal event interrupts that a CPU took.", "cpu"),),
    "frequency_khz": _frequencies(),
    "core_khz": _frequencies(),
    "sentinel_khz": (
        _gauge("package_frequency_hertz", "The best fresh frequency of a package's ticking CPU.", _KHZ, "package"),
    ),
    "base_khz": (_gauge("cpu_base_frequency_hertz", "The frequency a CPU is sold with.", _KHZ, "cpu"),),
    "bios_limit_khz": (_gauge("cpu_frequency_limit_hertz", _LIMIT, _KHZ, "cpu", "limit", of=_kind("bios")),),
    "max_khz": (_gauge("cpu_frequency_limit_hertz", _LIMIT, _KHZ, "cpu", "limit", of=_kind("max")),),
    "temperature_mc": (_gauge("temperature_celsius", "Of a thermal zone that is no CPU's own.", _MILLI, "zone"),),
    "trip_mc": (_gauge("temperature_trip_celsius", "Where a thermal zone begins to slow the CPUs.", _MILLI, "zone"),),
    "cooling_state": (_gauge("cooling_state", "What a cooling device does now; 0 is nothing.", 1, "device"),),
    "interrupts": (
        Row(
            "isolated_interrupts",
            f"Device interrupts that landed on isolated CPUs; the {MOST} busiest.",
            ("irq", "device"),
            lambda sample: (number_of(sample.subject), label(sample.reason)),
            _landed,
            counter=True,
            most=MOST,
        ),
    ),
    "timer_ticks": (_counter("cpu_interrupts", _KERNEL, "cpu", "kind", of=_kind("timer")),),
    "function_calls": (_counter("cpu_interrupts", _KERNEL, "cpu", "kind", of=_kind("function-call")),),
    "reschedules": (_counter("cpu_interrupts", _KERNEL, "cpu", "kind", of=_kind("reschedule")),),
    "latency_p99_9_ns": _latency("latency_p99_9_seconds", "The worst P99.9 of the windows that ended just now."),
    "latency_max_ns": _latency("latency_max_seconds", "The maximum of the windows that ended just now."),
    "latency_count": _latency("latency_window_samples", "How many latencies the last window has.", 1),
    # These cover some windows, so that a scrape that comes once in a while misses no bad one.
    "latency_worst_p99_9_ns": _latency("latency_worst_p99_9_seconds", "The worst P99.9 of the last few windows."),
    "latency_worst_max_ns": _latency("latency_worst_max_seconds", "The worst maximum of the last few windows."),
    "latency_open_max_ns": _latency("latency_open_max_seconds", "The maximum so far of the window that is open."),
    "latency_missed": _latency("latency_window_missed", "Messages in a window that were longer than promised.", 1),
    "latency_allowed": _latency("latency_window_missed_allowed", "How many of a window's messages may be longer.", 1),
    "latency_missed_per_day": _latency("latency_missed_per_day", "Misses in a day, at the rate of that window.", 1),
    "latency_window_dropped": _latency("latency_window_dropped", "Datagrams of a window that the kernel dropped.", 1),
    "latency_bad_input": _messages("latency_bad_input", "Words from the application that were no latency."),
    "latency_bad_pairs": _messages("latency_bad_pairs", "Pairs from the application that were done before due."),
    "latency_dropped": _messages("latency_dropped", "Datagrams from the application that the kernel dropped."),
    "knob": (
        Row(
            "knob_drifted",
            f"1 for a target that drifted; the first {MOST}.",
            ("knob", "target"),
            _target,
            _drifted,
            most=MOST,
        ),
    ),
    "manager": (
        Row("manager_active", "1 where another program that tunes runs.", ("manager",), _only, _active, most=MOST),
    ),
}
