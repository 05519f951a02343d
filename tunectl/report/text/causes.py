"""What the probe's gaps were: the table of causes, what comes at regular intervals, and whether the account adds up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tunectl.report.measures import nanoseconds
from tunectl.report.text.layout import columns, prose
from tunectl.report.text.sheet import Sheet

MAX_CAUSES = 12  # rows of the table; those that took most
_HEADER = ("gaps", "total", "longest", "cause")


def causes(sheet: Sheet, body: Mapping[str, Any], indent: int) -> None:
    """The table over all CPUs; nothing where causes were not asked for."""
    asked = body.get("attribution")
    if not asked:
        return
    sheet.line()
    if asked.get("method") != "trace":
        prose(sheet, f"causes: {asked.get('reason')}; the counters below have to do", indent=indent, style="magenta")
        return
    cost = asked.get("event_cost_ns")
    said = f"; tracing an event takes {nanoseconds(cost)} at least, and is part of these" if cost else ""
    prose(sheet, f"what the gaps were, by the kernel's own trace{said}", indent=indent)
    rows = sorted(_summed(body).items(), key=lambda item: -item[1][1])
    shown = [
        (f"{count:,}", nanoseconds(total, ""), nanoseconds(longest, ""), cause)
        for cause, (count, total, longest) in rows[:MAX_CAUSES]
    ]
    columns(sheet, shown, indent=indent + 2, right={0, 1, 2}, header=_HEADER)
    if rest := rows[MAX_CAUSES:]:
        total = nanoseconds(sum(took for _, (_, took, _) in rest))
        prose(sheet, f"and {len(rest)} more causes, {total} in all", indent=indent + 2)
    lost = sum((cpu.get("trace") or {}).get("events_lost", 0) for cpu in body["cpus"])
    if lost:
        prose(sheet, f"{lost:,} events found no room in the trace buffer", indent=indent + 2, style="yellow")


def _summed(body: Mapping[str, Any]) -> dict[str, tuple[int, int, int]]:
    """Cause -> gaps, their total and the longest, over all CPUs."""
    found: dict[str, tuple[int, int, int]] = {}
    for cpu in body["cpus"]:
        for row in cpu.get("causes") or ():
            count, total, longest = found.get(row["cause"], (0, 0, 0))
            found[row["cause"]] = (count + row["count"], total + row["total_ns"], max(longest, row["max_ns"]))
    return found


def periods(sheet: Sheet, body: Mapping[str, Any], indent: int) -> None:
    """A line for each series of gaps that comes at regular intervals."""
    found = [(cpu["cpu"], period) for cpu in body["cpus"] for period in cpu.get("periods") or ()]
    if found:
        sheet.line()
    for cpu, period in found:
        every = f"{period['period_ns'] / 1e6:.3f} ms"
        known = " - ".join(dict.fromkeys(text for text in (period["name"], period["cause"]) if text))
        what = f"{period['count']:,} gaps, {nanoseconds(period['mean_ns'])} each on average"
        prose(sheet, f"{what}{': ' if known else ''}{known}", indent=indent, label=f"CPU {cpu}, every {every}: ")


def account(sheet: Sheet, body: Mapping[str, Any], indent: int) -> None:
    """Do loops and gaps add up to the run? And, with -v, the clock each core really ran at."""
    off = [abs(cpu["conservation_ppm"]) for cpu in body["cpus"] if cpu.get("conservation_ppm") is not None]
    if off:
        worst = max(off)
        said = "1 ppm" if worst < 1 else f"{worst:,.0f} ppm"
        text = f"loops and gaps add up to the run's length within {said}"
        prose(sheet, text, indent=indent, style="dim" if worst <= 1000 else "red")
    for cpu in body["cpus"] if sheet.verbose else ():
        clock = cpu.get("core_khz")
        if clock:
            text = f"core clock {clock['before'] / 1e6:.3f} GHz before, {clock['after'] / 1e6:.3f} GHz after"
            prose(sheet, text, indent=indent, label=f"CPU {cpu['cpu']}: ", style="dim")
