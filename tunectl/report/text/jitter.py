"""`tunectl probe jitter`: what interrupted each CPU, how long, and whether the budget holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tunectl.cpulist import format_cpulist
from tunectl.report.escape import printable
from tunectl.report.measures import nanoseconds
from tunectl.report.probed import budget_of, figure
from tunectl.report.text.causes import account, causes, periods
from tunectl.report.text.histogram import histogram
from tunectl.report.text.layout import columns, prose
from tunectl.report.text.notes import notes
from tunectl.report.text.sheet import Sheet
from tunectl.report.text.strip import strip

MAX_CPUS = 64  # rows of the table; the CPUs with the longest gaps
MAX_IRQS = 8  # sources of interrupts named; the most frequent ones
_HEADER = ("CPU", "int/s", "stolen", "P50", "P99", "P99.9", "P99.99", "arr99.9", "max", "loop")
_LIMITS: dict[str, tuple[str, Callable[[float], str]]] = {
    "max_ns": ("longest gap", nanoseconds),
    "p99_9_ns": ("arrival P99.9", nanoseconds),
    "interruptions_per_s": ("interruptions", lambda value: f"{value:g}/s"),
    "stolen_ppm": ("stolen", lambda value: f"{value:g} ppm"),
}


def render(body: Mapping[str, Any], sheet: Sheet) -> None:
    """Prints a tunectl.probe.jitter/1 body."""
    measured(body, sheet)
    notes(sheet, body.get("warnings", ()), "Warnings")


def measured(body: Mapping[str, Any], sheet: Sheet, indent: int = 0) -> None:
    """The verdict, the table and the histogram, without the warnings: also a section of preflight."""
    cpus = body["cpus"]
    prose(sheet, _summary(body), indent=indent, style="bold")
    _budget(sheet, body, indent)
    sheet.line()
    rows = sorted(cpus, key=lambda cpu: -(cpu.get("max_ns") or 0))[:MAX_CPUS] if len(cpus) > MAX_CPUS else cpus
    columns(sheet, [_row(body, cpu) for cpu in rows], indent=indent, right=range(len(_HEADER)), header=_HEADER)
    if len(cpus) > len(rows):
        prose(sheet, f"and {len(cpus) - len(rows)} more CPUs, none with a longer gap", indent=indent)
    legend = "stolen: ppm of the time; P50 to max: gaps; arr99.9: P99.9 of a randomly timed message's wait"
    prose(sheet, legend, indent=indent, style="dim")
    account(sheet, body, indent)
    histogram(sheet, cpus, indent)
    strip(sheet, body, indent)
    causes(sheet, body, indent)
    periods(sheet, body, indent)
    _during(sheet, body, indent)


def _summary(body: Mapping[str, Any]) -> str:
    cpus = format_cpulist(cpu["cpu"] for cpu in body["cpus"])
    clock = body.get("clock") or {}
    source = f", clock {clock['source']}" if clock.get("source") else ""
    granule = f" in steps of {nanoseconds(clock['granule_ns'])}" if clock.get("granule_ns") else ""
    what = f"gaps over {nanoseconds(body['threshold_ns'])}"
    return f"CPUs {cpus or '(none)'} for {body['duration_s']:.3g} s: {what}{source}{granule}"


def _budget(sheet: Sheet, body: Mapping[str, Any], indent: int) -> None:
    budget = budget_of(body)
    for text in budget.get("broken") or ():
        prose(sheet, str(text), indent=indent, label="over budget: ", style="red")
    if budget.get("verdict") == "within":
        limits = (budget.get("limits") or {}).items()
        known = [f"{_LIMITS[name][0]} {_LIMITS[name][1](value)}" for name, value in limits if name in _LIMITS]
        prose(sheet, f"within budget ({', '.join(known)})", indent=indent, style="green")
    elif not budget.get("broken"):
        prose(sheet, f"not judged: {budget.get('reason') or 'no budget'}", indent=indent, style="magenta")


def _row(body: Mapping[str, Any], cpu: Mapping[str, Any]) -> Sequence[str]:
    gap = (cpu.get("gap_ns") or {}) if cpu.get("interruptions") else {}
    rate, stolen = figure(body, cpu, "interruptions_per_s"), figure(body, cpu, "stolen_ppm")
    return (
        str(cpu["cpu"]),
        "-" if rate is None else _short(rate),
        "-" if stolen is None else _short(stolen),
        *(nanoseconds(gap.get(percentile), "") for percentile in ("50", "99", "99.9", "99.99")),
        nanoseconds(figure(body, cpu, "p99_9_ns"), ""),
        nanoseconds(figure(body, cpu, "max_ns"), ""),
        nanoseconds((cpu.get("loop_ns") or {}).get("mean"), ""),
    )


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == 0 else f"{value:.2g}"


def _during(sheet: Sheet, body: Mapping[str, Any], indent: int) -> None:
    """What the kernel counted on these CPUs while the probe ran: the likely causes."""
    irqs: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for cpu in body["cpus"]:
        counters = cpu.get("counters") or {}
        irqs.update(counters.get("irq") or {})
        others["context switches"] += sum((counters.get("context_switches") or {}).values())
        others["page faults"] += counters.get("page_faults") or 0
        others["ns stolen by the hypervisor"] += counters.get("steal_ns") or 0
        others["interruptions beyond the list of events; the histogram has them"] += cpu.get("events_lost") or 0
    names = body.get("irq_descriptions") or {}
    rows = [(f"{delta:,}", printable(irq), printable(names.get(irq, ""))) for irq, delta in irqs.most_common(MAX_IRQS)]
    rows += [(f"{count:,}", "", name) for name, count in others.items() if count]
    if rows:
        sheet.line()
        prose(sheet, "meanwhile, on these CPUs", indent=indent)
        columns(sheet, rows, indent=indent + 2, right={0})
