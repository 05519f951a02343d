"""Which sample becomes which metric: the table of the exporters. Pure.

Base units (kHz becomes hertz, thousandths of a degree become degrees); counters end in _total. Only fresh numbers are
values: what is stale or missing shows in tunectl_cpu_frequency_stale_hertz, tunectl_cpu_frequency_health and
tunectl_samples. Source: prometheus/docs, docs/practices/naming.md; node_exporter's cpu collectors for the habits.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tunectl.monitor.model import Freshness, Sample
from tunectl.monitor.rules.history import number
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
    labels: Mapping[str, Callable[[Sample], str]]  # by name, how each one's value is made
    value: Callable[[Sample], float | None]  # None: this sample has no value for this metric
    counter: bool = False
    most: int = MOST_CPUS


def label(text: str) -> str:
    """Text that others chose, on one line and no longer than is useful; the library escapes quotes."""
    return printable(text)[:_LONGEST_LABEL]


def number_of(subject: str) -> str:
    """`4` for cpu4, core4, package4, irq4; anything else as it is."""
    match = _NUMBER.fullmatch(subject)
    return match[1] if match else label(subject)


def _scaled(scale: float) -> Callable[[Sample], float | None]:
    def value(sample: Sample) -> float | None:
        found = number(sample)
        return None if found is None else found * scale

    return value


def _stale_hertz(sample: Sample) -> float | None:
    value = number(sample._replace(freshness=Freshness.FRESH)) if sample.freshness is Freshness.STALE else None
    return None if value is None else value * _KHZ


def _known(sample: Sample) -> float | None:
    return 1.0 if _NUMBER.fullmatch(sample.subject) else None  # "host": it has no such thing at all


def _drifted(sample: Sample) -> float | None:
    return 1.0 if sample.freshness is Freshness.FRESH and sample.value == "drifted" else None


def _active(sample: Sample) -> float | None:
    return float(sample.value != "inactive") if sample.freshness is Freshness.FRESH else None


def _landed(sample: Sample) -> float | None:
    """Interrupts that never came to an isolated CPU are thousands on a large host, and no news."""
    return number(sample) or None


def _knob(sample: Sample) -> str:
    match = _PARTS.fullmatch(sample.subject)
    return label(match[1] if match else sample.subject)


# Labels that are not the number in the subject: cpu4, core4, package4, irq4.
_LABELS: Mapping[str, Callable[[Sample], str]] = {
    "source": lambda sample: label(sample.source),
    "health": lambda sample: sample.freshness.value,
    "subject": lambda sample: label(sample.subject),
    "target": lambda sample: label(sample.subject),
    "knob": _knob,
    "core": lambda sample: number_of(sample.whole),
    "package": lambda sample: number_of(sample.whole or sample.subject),
}


def _row(
    name: str,
    text: str,
    *labels: str,
    scale: float = 1,
    value: Callable[[Sample], float | None] | None = None,
    counter: bool = False,
    most: int = MOST_CPUS,
    **fixed: str,
) -> Row:
    """A metric whose value is the sample's number times `scale`, or `value`; `fixed` labels have one value."""
    made = {each: _LABELS.get(each, lambda sample: number_of(sample.subject)) for each in labels}
    made |= {each: lambda _, word=word: word for each, word in fixed.items()}
    return Row(name, text, made, value or _scaled(scale), counter, most)


def _latency(name: str, text: str, scale: float = _NANO) -> Row:
    return _row(name, text, "subject", scale=scale, most=MOST)


def _messages(name: str, text: str) -> Row:
    return _row(name, text, "subject", counter=True, most=MOST)


_FREQUENCY = "What a CPU runs at, where that is known now; source: how it is known."
_STALE = "What a file shows as a CPU's frequency where it is a fallback and no measurement."
_FRESHNESS = "1 for how a CPU's frequency is known now: fresh, stale, no-data, absent."
_LIMIT = "The highest frequency that the firmware (bios), cpufreq (max) or max_perf_pct (percent) permits."
_KERNEL = "Timer ticks, function calls and reschedules that an isolated CPU took."
_CORE = "How often a physical core was throttled for heat, as each of its CPUs counted it."
_PACKAGE = "How often a package was throttled for heat, as each of its CPUs counted it."
_BEST = "The best fresh frequency of a package's ticking CPU."
_LANDED = f"Device interrupts that landed on isolated CPUs; the {MOST} busiest."
_ERROR = "The most that the host's clock can be off, as who steers it says."
_DRIFTED = f"1 for a target that drifted; the first {MOST}."
_INTERRUPT = {
    "irq": lambda sample: number_of(sample.whole or sample.subject),
    "device": lambda sample: label(sample.kind),
    "cpu": lambda sample: ",".join(map(str, sorted(sample.cpus))),
}
_FREQUENCIES = (
    _row("cpu_frequency_hertz", _FREQUENCY, "cpu", "source", scale=_KHZ),
    _row("cpu_frequency_stale_hertz", _STALE, "cpu", "source", value=_stale_hertz),
    _row("cpu_frequency_health", _FRESHNESS, "cpu", "source", "health", value=_known),
)
_TABLE: dict[str, Row] = {
    "core_throttles": _row("core_throttles", _CORE, "core", "cpu", counter=True),
    "package_throttles": _row("package_throttles", _PACKAGE, "package", "cpu", counter=True),
    "thermal_interrupts": _row("thermal_interrupts", "Thermal event interrupts that a CPU took.", "cpu", counter=True),
    "sentinel_khz": _row("package_frequency_hertz", _BEST, "package", scale=_KHZ),
    "base_khz": _row("cpu_base_frequency_hertz", "The frequency a CPU is sold with.", "cpu", scale=_KHZ),
    "bios_limit_khz": _row("cpu_frequency_limit_hertz", _LIMIT, "cpu", scale=_KHZ, limit="bios"),
    "max_khz": _row("cpu_frequency_limit_hertz", _LIMIT, "cpu", scale=_KHZ, limit="max"),
    "max_perf_khz": _row("cpu_frequency_limit_hertz", _LIMIT, "cpu", scale=_KHZ, limit="percent"),
    "temperature_mc": _row("temperature_celsius", "Of a thermal zone that is no CPU's own.", "zone", scale=_MILLI),
    "trip_mc": _row("temperature_trip_celsius", "Where a thermal zone begins to slow the CPUs.", "zone", scale=_MILLI),
    "cooling_state": _row("cooling_state", "What a cooling device does now; 0 is nothing.", "device"),
    "interrupts": Row("isolated_interrupts", _LANDED, _INTERRUPT, _landed, counter=True, most=MOST),
    "timer_ticks": _row("cpu_interrupts", _KERNEL, "cpu", kind="timer", counter=True),
    "function_calls": _row("cpu_interrupts", _KERNEL, "cpu", kind="function-call", counter=True),
    "reschedules": _row("cpu_interrupts", _KERNEL, "cpu", kind="reschedule", counter=True),
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
    "clock_error_ns": _row("clock_error_bound_seconds", _ERROR, scale=_NANO),
    "clock_step_ns": _row("clock_step_seconds", "The largest step of the host's clock in the last hour.", scale=_NANO),
    "knob": _row("knob_drifted", _DRIFTED, "knob", "target", value=_drifted, most=MOST),
    "unconfirmed_s": _row("unconfirmed_seconds", "Until a change that nobody confirmed is taken back."),
    "manager": _row("manager_active", "1 where another program that tunes runs.", "manager", value=_active, most=MOST),
}
# A quantity has one metric, but a CPU's frequency has three, whichever way it is known.
ROWS: dict[str, tuple[Row, ...]] = {
    **{quantity: (row,) for quantity, row in _TABLE.items()},
    **dict.fromkeys(("frequency_khz", "core_khz"), _FREQUENCIES),
}
