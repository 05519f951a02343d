"""The cells of a tunectl.probe.feed/1 document, from what was counted. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tunectl.experiments.feed_facts import RawCase, RawFeed, Series, Stamps
from tunectl.experiments.feed_figures import BARS, bars_ns, due_figures, spread_ns
from tunectl.experiments.feed_void import share_of, why_void
from tunectl.experiments.feed_warnings import case_warnings, failures
from tunectl.experiments.tick_figures import FEWEST, Figures
from tunectl.shapes import FEED_STAGES

_COUNTED = (
    "warm_ups",
    "due",
    "sent",
    "lost",
    "unsent",
    "doubled",
    "reordered",
    "strangers",
    "reads",
    "stamp_shared",
    "allocations",
    "minor_faults",
    "major_faults",
    "involuntary_switches",
    "voluntary_switches",
    "sender_involuntary_switches",
    "close_code",
    "napi_id",
)


class Judged(NamedTuple):
    """A case, the times of its messages, and why it has no figures; "" where it has."""

    case: RawCase
    due: Figures
    reason: str
    is_void: bool


def judged(run: RawFeed) -> list[Judged]:
    """Every case of a run."""
    return [_judged(case, run) for case in run.cases]


def _judged(case: RawCase, run: RawFeed) -> Judged:
    missing = case.reason or _why_nothing(case)
    void = "" if missing else why_void(case, run)
    return Judged(case, due_figures(case, run.clock.hz), missing or void, bool(void))


def _why_nothing(case: RawCase) -> str:
    if case.arrived:
        return ""
    if case.failed:
        return f"{case.failed} failed: {os.strerror(case.errno)}"
    if case.close_code:
        return f"the WebSocket reader failed with {case.close_code} before the first message"
    if not case.due:
        return "interrupted before the first message was due"
    return "every message was lost" if case.sent else "no message was sent before the end"


def cells(run: RawFeed, found: Iterable[Judged], is_round_trip: bool) -> list[dict[str, Any]]:
    """A cell for each case."""
    return [_cell(run, one, is_round_trip) for one in found]


def _cell(run: RawFeed, one: Judged, is_round_trip: bool) -> dict[str, Any]:
    case = one.case
    return {
        "transport": case.transport,
        "format": case.format,
        "symbols": case.symbols,
        "rate": case.rate,
        "burst": case.burst,
        "waiting": case.waiting,
        "tls": case.tls,
        "alloc": case.alloc,
        "cpus": list(run.cpus),
        "is_round_trip": is_round_trip,
        "reason": one.reason,
        "is_void": one.is_void,
        "failed": "; ".join(failures(case)),
        "n": 0 if one.reason else case.due,
        **_figures(run, one),
        **_counts(case),
        "stamped": case.stamped,
        "stamps": _stamps(case.stamps, run.clock.hz),
        "receiver_cpu_percent": _cpu_percent(case, run) if case.arrived else None,
        "warnings": case_warnings(case, run) if case.arrived else [],
    }


def _cpu_percent(case: RawCase, run: RawFeed) -> float | None:
    return round(100 * share_of(case, run.clock.hz), 2) if case.receiver_ticks else None


def _counts(case: RawCase) -> dict[str, Any]:
    return {
        **{name: getattr(case, name) for name in _COUNTED},
        "batch_sizes": [list(pair) for pair in zip(case.batch_sizes[::2], case.batch_sizes[1::2], strict=True)],
        "negative_stages": {name: case.negative.get(name, 0) for name in FEED_STAGES},
        "drops": {name: getattr(case.drops, name) for name in ("socket", "softnet", "nic")},
    }


def _figures(run: RawFeed, one: Judged) -> dict[str, Any]:
    """All of them null where there is no result: a void case has no figure that could be read as one."""
    case, due, hz = one.case, one.due, run.clock.hz
    if one.reason:
        names = ("due_to_book_ns", "lower_bounds_from_ns", "late_ns", "series")
        stages = dict.fromkeys(FEED_STAGES)
        return {**dict.fromkeys(names), "stages_ns": stages, "bars_ns": dict.fromkeys(BARS), "histogram": []}
    return {
        "due_to_book_ns": due.spread_ns(FEWEST),
        "lower_bounds_from_ns": due.ns(case.unsent_ticks[0]) if case.unsent else None,
        "late_ns": spread_ns(case.late, hz),
        "stages_ns": {name: spread_ns(case.stages[name], hz) for name in FEED_STAGES},
        "bars_ns": bars_ns(case, due, case.stamped),
        "histogram": due.histogram_ns(),
        "series": _series(case.series, due) if case.series else None,
    }


def _series(series: Series, due: Figures) -> dict[str, Any]:
    rows = [[count, due.ns(total), due.ns(longest)] for count, total, longest in series.intervals]
    return {"interval_s": round(series.interval_ticks / due.hz, 6), "intervals": rows}


def _stamps(stamps: Stamps | None, hz: float) -> dict[str, Any] | None:
    if stamps is None:
        return None
    return {
        "asked": stamps.asked,
        "kind": stamps.kind,
        "reason": stamps.reason,
        "were_on": stamps.were_on,
        "uncertainty_ns": None if stamps.uncertainty_ticks is None else round(stamps.uncertainty_ticks * 1e9 / hz, 1),
        "stepped": stamps.stepped,
    }


def stamp_cost_ns(found: Sequence[Judged], without: Sequence[Judged]) -> int | None:
    """How much longer the median is with stamps than without: of the first case that is stamped, and of the same.

    None where one of the two has no result, or was overloaded: its median may be a lower bound.
    """
    stamped = next((one for one in found if one.case.stamped), None)
    pair = [one for one in (stamped, *without) if one and not one.reason and not one.case.unsent]
    if len(pair) != 2:
        return None
    medians = [one.due.known_ns(one.due.at("50")) for one in pair]
    return None if None in medians else int(medians[0] or 0) - int(medians[1] or 0)
