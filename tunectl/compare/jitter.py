"""Two jitter results side by side: every CPU both measured, and all of them together. Pure."""

from __future__ import annotations

from typing import Any

from tunectl.compare.bounds import Interval
from tunectl.compare.estimate import (
    arrival_percentile,
    gap_percentile,
    interruptions_per_s,
    longest_streak,
    stolen_ppm,
)
from tunectl.compare.sample import Sample, sample
from tunectl.compare.table import interval_body, row
from tunectl.cpulist import format_cpulist
from tunectl.probe.shapes import Cpu, Jitter

_ARRIVALS = {"99": 0.01, "99.9": 0.001, "99.99": 0.0001}
_GAPS = {"50": 0.5, "99": 0.01, "99.9": 0.001}


def jitter_groups(before: Jitter, after: Jitter, confidence: float) -> list[dict[str, Any]]:
    """A table for all CPUs together, then one a CPU where both runs measured the same several."""
    threshold = max(before.threshold_ns, after.threshold_ns)
    common = sorted({cpu.cpu for cpu in before.cpus} & {cpu.cpu for cpu in after.cpus})

    def taken(result: Jitter, only: set[int]) -> Sample:
        return sample(result, [cpu for cpu in result.cpus if cpu.cpu in only], threshold)

    if not common:  # other CPUs: what the runs say as wholes can still be told
        sides = (sample(before, before.cpus, threshold), sample(after, after.cpus, threshold))
        return [_group(f"CPUs {_listed(before.cpus)} before, {_listed(after.cpus)} after", None, *sides, confidence)]
    several = [(f"CPUs {format_cpulist(common)} together", None, set(common))] if len(common) > 1 else []
    alone = [(f"CPU {cpu}", cpu, {cpu}) for cpu in common]
    return [
        _group(name, cpu, taken(before, only), taken(after, only), confidence) for name, cpu, only in several + alone
    ]


def _listed(cpus: list[Cpu]) -> str:
    return format_cpulist(cpu.cpu for cpu in cpus)


def _group(name: str, cpu: int | None, before: Sample, after: Sample, confidence: float) -> dict[str, Any]:
    sides = (before, after)
    rows = [
        row("arrival_ns", nines, *(arrival_percentile(side, share, confidence) for side in sides))
        for nines, share in _ARRIVALS.items()
    ]
    rows += [
        row("gap_ns", nines, *(gap_percentile(side, share, confidence) for side in sides))
        for nines, share in _GAPS.items()
    ]
    rows.append(_longest(before, after, confidence))
    rows.append(row("interruptions_per_s", None, *(interruptions_per_s(side, confidence) for side in sides)))
    rows.append(row("stolen_ppm", None, *(stolen_ppm(side, confidence) for side in sides)))
    return {"name": name, "cpu": cpu, "rows": rows}


def _longest(before: Sample, after: Sample, confidence: float) -> dict[str, Any]:
    """The maximum is one observation and has no bounds; but whose gaps are the longest ones says something."""
    values = [side.whole.longest for side in (before, after)]
    made = row("max_ns", None, *(Interval(value, value, value) for value in values))
    for side in ("before", "after", "ratio"):
        if made[side]:
            made[side] |= {"low": None, "high": None}
    if not max(values):
        return made | {"ratio": interval_body(None)}
    first, occasions, chance = longest_streak(before, after)
    change = ("lower" if first else "higher") if chance < 1 - confidence else "not-significant"
    owner, other = ("before", after) if first else ("after", before)
    longest = "the longest gap is" if occasions == 1 else f"the {occasions:,} longest occasions are all"
    reason = f"{longest} from {owner}: were nothing different, the chance of that would be {chance:.2g}"
    never = other.run_ns / 1e9 / 3  # the rule of three: none seen in t leaves a rate of 3/t at 95 %
    if occasions:
        missing = "after" if first else "before"
        rate = f"less than once in {never:.3g} s of a CPU's time (95 %)"
        reason += f"; {missing} shows none as long, so there they come {rate}"
    return made | {"change": change, "reason": reason}
