"""Every CPU's gaps over time, each a point at its moment and length, in the colour of its cause. Pure."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tunectl.report.causes import Group, names_of
from tunectl.report.charts import MAX_SPARKLINES, LogScale, timeline
from tunectl.shapes import Cpu, Jitter
from tunectl.wording import nanoseconds, plural

WIDTH, HEIGHT = 10_000, 1_000  # fine enough that the script reads three digits back
MOST = 1_200  # points of a CPU: the longest gaps
COLOURS = 6  # causes that have one of their own
SLICES = 240
_OTHER, _UNLISTED = 0, 9  # classes of the style sheet


def gap_strips(result: Jitter, causes: Sequence[Group]) -> dict[str, Any] | None:
    """A strip for each CPU, those with the longest gaps, on one scale; None where no gap's time is known.

    `causes`: as `grouped` gives them, the most time first.
    """
    cpus = sorted(sorted(result.cpus, key=lambda cpu: -cpu.max_ns)[:MAX_SPARKLINES], key=lambda cpu: cpu.cpu)
    if not any(cpu.events or cpu.series for cpu in cpus):
        return None
    top = max([cpu.max_ns for cpu in cpus] + [10 * result.threshold_ns, 10])
    scale = LogScale.over(max(result.threshold_ns, 1), top, HEIGHT, 0)
    colours = {cause.cause: number for number, cause in enumerate(causes[:COLOURS], 1)}
    limit = result.budget.limits.get("max_ns")
    step = -(-len(scale.decades()) // 3)  # at most three labels
    strips = [_strip(result, cpu, scale, colours) for cpu in cpus]
    return {
        "strips": strips,
        "left_out": len(result.cpus) - len(cpus),
        "is_thinned": any(strip["shown"] < strip["listed"] for strip in strips),
        "legend": [{"number": number, "name": name} for name, number in colours.items()],
        "has_others": any(path["number"] == _OTHER for strip in strips for path in strip["paths"]) and bool(colours),
        "has_unlisted": any(path["number"] == _UNLISTED for strip in strips for path in strip["paths"]),
        "marks": [
            {"at": round(scale.at(ns) / 10, 1), "label": "" if place % step else nanoseconds(ns)}
            for place, ns in enumerate(scale.decades()[:-1])
        ],
        "limit": round(scale.at(limit) / 10, 1) if limit and scale.low <= limit <= scale.high else None,
        "scale": f"{scale.low:g} {scale.high:g}",
        "run_ns": round(max(map(result.seconds, result.cpus)) * 1e9),
        "width": WIDTH,
        "height": HEIGHT,
    }


def _strip(result: Jitter, cpu: Cpu, scale: LogScale, colours: Mapping[str, int]) -> dict[str, Any]:
    run_ns = max(result.seconds(cpu) * 1e9, 1.0)
    known_ns = result.complete_ns(cpu)
    points = _listed(result, cpu, colours) + _unlisted(result, cpu, known_ns)
    longest = max(points, key=lambda point: point[1], default=(0.0, 0.0, _OTHER))
    limit = result.budget.limits.get("max_ns") or math.inf
    spots: dict[tuple[int, bool, int, int], None] = {}  # each drawn once, the longest first
    for at, ns, number in sorted(points, key=lambda point: -point[1]):
        if len(spots) == MOST:
            break
        spots.setdefault((number, ns > limit, round(min(at / run_ns, 1) * WIDTH), round(scale.at(ns))))
    looks = sorted({(number, is_over) for number, is_over, _, _ in spots}, key=lambda look: look[::-1])
    has_series = bool(cpu.series and cpu.series.intervals)
    whole = has_series or len(cpu.events) == cpu.interruptions
    return {
        "cpu": cpu.cpu,
        "longest_ns": cpu.max_ns,
        "said": f"{plural(cpu.interruptions, 'gap')}; the longest drawn is {nanoseconds(longest[1])}, after"
        f" {nanoseconds(longest[0])}" if points else "no gap",
        "paths": [
            {
                "number": look[0],
                "is_over": look[1],
                "d": "".join(f"M{x} {y}h0" for *of, x, y in spots if tuple(of) == look),
            }
            for look in looks
        ],
        "listed": len(points),
        "shown": len(spots),
        "known": WIDTH if whole else round(known_ns / run_ns * WIDTH),
    }  # fmt: skip


def _listed(result: Jitter, cpu: Cpu, colours: Mapping[str, int]) -> list[tuple[float, float, int]]:
    """(ns from the start, length in ns, colour) of each gap in the list."""
    names, tick = names_of(result), 1e9 / result.clock.hz
    begin = cpu.tsc_start or (cpu.events[0][0] if cpu.events else 0)
    numbers = [colours.get(names.get(label, ""), _OTHER if colours else 1) for label in result.labels]
    return [
        ((start - begin) * tick, (end - start) * tick, numbers[label] if label < len(numbers) else _OTHER)
        for start, end, label in cpu.events
    ]


def _unlisted(result: Jitter, cpu: Cpu, known_ns: float) -> list[tuple[float, float, int]]:
    """Where the list was full, of each moment the longest gap that was counted."""
    if not cpu.series or len(cpu.events) == cpu.interruptions:
        return []
    slices = timeline(result, cpu, SLICES)
    width = result.seconds(cpu) * 1e9 / max(len(slices), 1)
    return [
        ((at + 0.5) * width, one.longest_ns, _UNLISTED)
        for at, one in enumerate(slices)
        if one and one.longest_ns and (at + 0.5) * width > known_ns
    ]
