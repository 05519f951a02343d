"""The pages of `probe jitter` and `probe selftest`: what interrupted each CPU, how long, and from which cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tunectl.cpulist import format_cpulist
from tunectl.report.escape import printable
from tunectl.report.figures import budget_of, figure, nanoseconds
from tunectl.report.text.charts import histogram, sparklines
from tunectl.report.text.page import TextPage, columns, notes, prose

MAX_CPUS = 64  # rows of the table: the CPUs with the longest gaps
MAX_IRQS = 8  # interrupts listed: the most frequent ones
_HEADER = ("CPU", "int/s", "stolen", "P50", "P99", "P99.9", "P99.99", "arr99.9", "max", "loop")
_LIMITS: dict[str, tuple[str, Callable[[float], str]]] = {
    "max_ns": ("longest gap", nanoseconds),
    "p99_9_ns": ("arrival P99.9", nanoseconds),
    "interruptions_per_s": ("interruptions", lambda value: f"{value:g}/s"),
    "stolen_ppm": ("stolen", lambda value: f"{value:g} ppm"),
}


def jitter(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.probe.jitter/1 body."""
    measured(body, page)
    notes(page, body.get("warnings", ()), "Warnings")


def measured(body: Mapping[str, Any], page: TextPage, indent: int = 0) -> None:
    """The verdict, the table and the histogram, without the warnings: also a section of preflight."""
    cpus = body["cpus"]
    prose(page, _headline(body), indent=indent, style="bold")
    _budget(page, body, indent)
    page.line()
    rows = sorted(cpus, key=lambda cpu: -(cpu.get("max_ns") or 0))[:MAX_CPUS] if len(cpus) > MAX_CPUS else cpus
    columns(page, [_row(body, cpu) for cpu in rows], indent=indent, right=range(len(_HEADER)), header=_HEADER)
    if len(cpus) > len(rows):
        prose(page, f"and {len(cpus) - len(rows)} more CPUs, none with a longer gap", indent=indent)
    legend = "stolen: ppm of the time; P50 to max: gaps; arr99.9: P99.9 of a randomly timed message's wait"
    prose(page, legend, indent=indent, style="dim")
    account(page, body, indent)
    histogram(page, cpus, indent)
    sparklines(page, body, indent)
    causes(page, body, indent)
    periods(page, body, indent)
    _during(page, body, indent)


def _headline(body: Mapping[str, Any]) -> str:
    cpus = format_cpulist(cpu["cpu"] for cpu in body["cpus"])
    clock = body.get("clock") or {}
    source = f", clock {clock['source']}" if clock.get("source") else ""
    granule = f" in steps of {nanoseconds(clock['granule_ns'])}" if clock.get("granule_ns") else ""
    what = f"gaps over {nanoseconds(body['threshold_ns'])}"
    return f"CPUs {cpus or '(none)'} for {body['duration_s']:.3g} s: {what}{source}{granule}"


def _budget(page: TextPage, body: Mapping[str, Any], indent: int) -> None:
    budget = budget_of(body)
    for text in budget.get("broken") or ():
        prose(page, str(text), indent=indent, label="over budget: ", style="red")
    if budget.get("verdict") == "within":
        limits = (budget.get("limits") or {}).items()
        known = [f"{_LIMITS[name][0]} {_LIMITS[name][1](value)}" for name, value in limits if name in _LIMITS]
        prose(page, f"within budget ({', '.join(known)})", indent=indent, style="green")
    elif not budget.get("broken"):
        prose(page, f"not judged: {budget.get('reason') or 'no budget'}", indent=indent, style="magenta")


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


def _during(page: TextPage, body: Mapping[str, Any], indent: int) -> None:
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
        page.line()
        prose(page, "meanwhile, on these CPUs", indent=indent)
        columns(page, rows, indent=indent + 2, right={0})


MAX_CAUSES = 12  # rows of the table: the causes that took most time
_CAUSES_HEADER = ("gaps", "total", "longest", "cause")


def causes(page: TextPage, body: Mapping[str, Any], indent: int) -> None:
    """The table of causes over all CPUs; nothing where causes were not asked for."""
    asked = body.get("attribution")
    if not asked:
        return
    page.line()
    if asked.get("method") != "trace":
        prose(page, f"causes: {asked.get('reason')}; the counters below have to do", indent=indent, style="magenta")
        return
    cost = asked.get("event_cost_ns")
    said = f"; tracing an event takes {nanoseconds(cost)} at least, and is part of these" if cost else ""
    prose(page, f"what the gaps were, by the kernel's own trace{said}", indent=indent)
    rows = sorted(_causes_summed(body).items(), key=lambda item: -item[1][1])
    shown = [
        (f"{count:,}", nanoseconds(total, ""), nanoseconds(longest, ""), cause)
        for cause, (count, total, longest) in rows[:MAX_CAUSES]
    ]
    columns(page, shown, indent=indent + 2, right={0, 1, 2}, header=_CAUSES_HEADER)
    if rest := rows[MAX_CAUSES:]:
        total = nanoseconds(sum(took for _, (_, took, _) in rest))
        prose(page, f"and {len(rest)} more causes, {total} in all", indent=indent + 2)
    lost = sum((cpu.get("trace") or {}).get("events_lost", 0) for cpu in body["cpus"])
    if lost:
        prose(page, f"{lost:,} events found no room in the trace buffer", indent=indent + 2, style="yellow")


def _causes_summed(body: Mapping[str, Any]) -> dict[str, tuple[int, int, int]]:
    """Cause -> gaps, their total and the longest, over all CPUs."""
    found: dict[str, tuple[int, int, int]] = {}
    for cpu in body["cpus"]:
        for row in cpu.get("causes") or ():
            count, total, longest = found.get(row["cause"], (0, 0, 0))
            found[row["cause"]] = (count + row["count"], total + row["total_ns"], max(longest, row["max_ns"]))
    return found


def periods(page: TextPage, body: Mapping[str, Any], indent: int) -> None:
    """A line for each series of gaps that comes at regular intervals."""
    found = [(cpu["cpu"], period) for cpu in body["cpus"] for period in cpu.get("periods") or ()]
    if found:
        page.line()
    for cpu, period in found:
        every = f"{period['period_ns'] / 1e6:.3f} ms"
        known = " - ".join(dict.fromkeys(text for text in (period["name"], period["cause"]) if text))
        what = f"{period['count']:,} gaps, {nanoseconds(period['mean_ns'])} each on average"
        prose(page, f"{what}{': ' if known else ''}{known}", indent=indent, label=f"CPU {cpu}, every {every}: ")


def account(page: TextPage, body: Mapping[str, Any], indent: int) -> None:
    """Do loops and gaps add up to the run? And, with -v, the clock each core really ran at."""
    off = [abs(cpu["conservation_ppm"]) for cpu in body["cpus"] if cpu.get("conservation_ppm") is not None]
    if off:
        worst = max(off)
        said = "1 ppm" if worst < 1 else f"{worst:,.0f} ppm"
        text = f"loops and gaps add up to the run's length within {said}"
        prose(page, text, indent=indent, style="dim" if worst <= 1000 else "red")
    for cpu in body["cpus"] if page.verbose else ():
        clock = cpu.get("core_khz")
        if clock:
            text = f"core clock {clock['before'] / 1e6:.3f} GHz before, {clock['after'] / 1e6:.3f} GHz after"
            prose(page, text, indent=indent, label=f"CPU {cpu['cpu']}: ", style="dim")


_PHASES_HEADER = ("", "injected", "found", "as lost", "missed", "shortest", "too long by", "what")
_PHASE_STYLES = {"passed": "green", "failed": "red", "not-run": "magenta"}


def selftest(body: Mapping[str, Any], page: TextPage) -> None:
    """Prints a tunectl.probe.selftest/1 body."""
    verdict = "every known interruption was found" if body["passed"] else "not passed"
    style = "bold green" if body["passed"] else "bold red"
    prose(page, f"CPU {body['cpu']}, gaps over {nanoseconds(body['threshold_ns'])}: {verdict}", style=style)
    if body.get("vouched_ns"):
        text = f"interruptions from {nanoseconds(body['vouched_ns'])} on are vouched for on this host"
    else:
        text = "no length is vouched for on this host"
    prose(page, text)
    page.line()
    columns(page, [_phase(phase) for phase in body["phases"]], right=range(1, 7), header=_PHASES_HEADER)
    for phase in body["phases"]:
        if phase["reason"]:
            prose(page, phase["reason"], label=f"{phase['name']}: ", style=_PHASE_STYLES.get(phase["outcome"], ""))
    legend = "too long by: median of the gap less what was injected, the ways in and out of the kernel"
    prose(page, legend, style="dim")


def _phase(phase: Mapping[str, Any]) -> tuple[str, ...]:
    figures: tuple[str, ...] = ("", "", "", "", "")
    if "max_error_ns" in phase:  # this phase measures one long stop; the others count gaps
        figures = ("", "", "", nanoseconds(phase["max_ns"], ""), nanoseconds(phase["max_error_ns"], ""))
    elif "found" in phase:
        error = (phase.get("length_error_ns") or {}).get("median")
        counts = (f"{phase[name]:,}" for name in ("found", "counted_as_lost", "missed"))
        figures = (*counts, nanoseconds(phase["shortest_gap_ns"], ""), nanoseconds(error, ""))
    return (phase["outcome"], f"{phase['injected']:,}", *figures, phase["name"])
