"""The tables of a comparison: a measure before and after, their ratio, and whether it says anything. Pure."""

from __future__ import annotations

import math
from typing import Any

from tunectl.compare.bounds import Interval, ratio_interval
from tunectl.compare.estimate import (
    arrival_percentile,
    gap_percentile,
    interruptions_per_s,
    longest_streak,
    stolen_ppm,
)
from tunectl.compare.lengths import Lengths
from tunectl.compare.sample import Sample, sample
from tunectl.cpulist import format_cpulist
from tunectl.probe.shapes import Case, Cpu, Jitter, Wake

TOO_SHORT = "one of the runs is too short to bound it"
INCLUDES_ONE = "the bounds of the ratio include 1"
NONE_IN_EITHER = "none in either run"


def row(measure: str, percentile: str | None, before: Interval | None, after: Interval | None) -> dict[str, Any]:
    """One row. A side that is None had nothing to measure: no ratio then."""
    ratio = ratio_interval(before, after) if before and after else None
    verdict, reason = _judged(before, after, ratio)
    return {
        "measure": measure,
        "percentile": percentile,
        "before": interval_body(before),
        "after": interval_body(after),
        "ratio": interval_body(ratio),
        "change": verdict,
        "reason": reason,
    }


def _judged(before: Interval | None, after: Interval | None, ratio: Interval | None) -> tuple[str, str]:
    if before is None or after is None:
        return "not-comparable", NONE_IN_EITHER if before is after else "none in one of the runs"
    if ratio is None:
        return "not-significant", NONE_IN_EITHER
    if ratio.high < 1:
        return "lower", ""
    if ratio.low > 1:
        return "higher", ""
    unbounded = math.inf in (before.high, after.high)
    return "not-significant", TOO_SHORT if unbounded else INCLUDES_ONE


def interval_body(interval: Interval | None) -> dict[str, float | None] | None:
    """An interval for JSON: an unknown bound is null."""
    return None if interval is None else {name: _finite(value) for name, value in interval._asdict().items()}


def _without_bounds(measure: str, before: float | None, after: float | None) -> dict[str, Any]:
    """A row of two single observations."""
    sides = [None if value is None else Interval(value, value, value) for value in (before, after)]
    made = row(measure, None, sides[0], sides[1])
    for side in ("before", "after", "ratio"):
        if made[side]:
            made[side] |= {"low": None, "high": None}
    return made


def _finite(value: float) -> float | None:
    if not math.isfinite(value):
        return None
    return float(f"{value:.6g}")  # no bound is exact to more digits


_ARRIVALS = {"99": 0.01, "99.9": 0.001, "99.99": 0.0001}
_GAPS = {"50": 0.5, "99": 0.01, "99.9": 0.001}


def jitter_groups(before: Jitter, after: Jitter, confidence: float) -> list[dict[str, Any]]:
    """A table for all common CPUs together, then one for each, if there are several."""
    threshold = max(before.threshold_ns, after.threshold_ns)
    common = sorted({cpu.cpu for cpu in before.cpus} & {cpu.cpu for cpu in after.cpus})

    def taken(result: Jitter, only: set[int]) -> Sample:
        return sample(result, [cpu for cpu in result.cpus if cpu.cpu in only], threshold)

    if not common:  # no CPU in common: the two runs are compared as wholes
        sides = (sample(before, before.cpus, threshold), sample(after, after.cpus, threshold))
        return [
            _jitter_group(f"CPUs {_listed(before.cpus)} before, {_listed(after.cpus)} after", None, *sides, confidence)
        ]
    several = [(f"CPUs {format_cpulist(common)} together", None, set(common))] if len(common) > 1 else []
    alone = [(f"CPU {cpu}", cpu, {cpu}) for cpu in common]
    return [
        _jitter_group(name, cpu, taken(before, only), taken(after, only), confidence)
        for name, cpu, only in several + alone
    ]


def _listed(cpus: list[Cpu]) -> str:
    return format_cpulist(cpu.cpu for cpu in cpus)


def _jitter_group(name: str, cpu: int | None, before: Sample, after: Sample, confidence: float) -> dict[str, Any]:
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
    """The maximum is one observation and has no bounds. But which run the longest gaps are from says something."""
    values = [side.whole.longest for side in (before, after)]
    made = _without_bounds("max_ns", *values)
    if not max(values):
        return made | {"ratio": interval_body(None)}
    first, occasions, chance = longest_streak(before, after)
    change = ("lower" if first else "higher") if chance < 1 - confidence else "not-significant"
    owner, other = ("before", after) if first else ("after", before)
    longest = "the longest gap is" if occasions == 1 else f"the {occasions:,} longest occasions are all"
    reason = f"{longest} from {owner}: were nothing different, the chance of that would be {chance:.2g}"
    never = other.run_ns / 1e9 / 3  # the rule of three: with none seen in a time t, the rate is below 3/t (95 %)
    if occasions:
        missing = "after" if first else "before"
        rate = f"less than once in {never:.3g} s of a CPU's time (95 %)"
        reason += f"; {missing} shows none as long, so there they come {rate}"
    return made | {"change": change, "reason": reason}


_WAKES = {"50": 0.5, "99": 0.01, "99.9": 0.001}
Key = tuple[str, str, str, float, bool]


def key_of(case: Case) -> Key:
    """Cases with the same key are the same experiment."""
    return case.mechanism, case.waiting, case.wait_method, case.idle_ms, case.is_round_trip


def wake_groups(before: Wake, after: Wake, confidence: float) -> list[dict[str, Any]]:
    """A table for each case that both runs have."""
    later = {key_of(case): case for case in after.cases}
    pairs = [(case, later[key_of(case)]) for case in before.cases if key_of(case) in later]
    pairs = [pair for pair in pairs if pair[0].n or pair[1].n]  # a case that neither run could measure has no table
    return [_wake_group(*pair, confidence) for pair in pairs]


def _wake_group(before: Case, after: Case, confidence: float) -> dict[str, Any]:
    """Messages are sent one after the other with a pause between them, so they count as independent."""
    sides = [Sample(0.0, _lengths(case), (), 0.0, ()) for case in (before, after)]
    rows = [
        row("wake_ns", nines, *(gap_percentile(side, share, confidence) for side in sides))
        for nines, share in _WAKES.items()
    ]
    rows.append(_plain("max_ns", before.max_ns, after.max_ns, "one observation has no bounds"))
    rows.append(
        _plain("receiver_cpu_percent", before.receiver_cpu_percent, after.receiver_cpu_percent, "one figure a run")
    )
    return {"name": before.name, "cpu": None, "rows": rows}


def _lengths(case: Case) -> Lengths:
    return Lengths((min((low + high) / 2, case.max_ns or high), count) for low, high, count in case.histogram)


def _plain(measure: str, before: float | None, after: float | None, reason: str) -> dict[str, Any]:
    """A row that is shown and not judged."""
    return _without_bounds(measure, before, after) | {"change": "not-comparable", "reason": reason}
