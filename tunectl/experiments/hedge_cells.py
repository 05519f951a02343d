"""The cells of a tunectl.probe.hedge/1 document, from what was counted. Pure."""

from __future__ import annotations

from typing import Any

from tunectl.experiments.hedge_facts import SERVERS, RawCase, RawHedge
from tunectl.experiments.hedge_void import why_void
from tunectl.experiments.hedge_warnings import case_warnings, is_collapsed
from tunectl.experiments.tick_figures import FEWEST, PERCENTILES, Figures, ratio

_COUNTED = (
    "warm_ups",
    "offered",
    "answered",
    "shed",
    "unanswered",
    "hedged",
    "won",
    "lost",
    "hedge_cancelled",
    "hedge_unfinished",
    "denied",
    "over_budget",
    "wasted",
    "cancelled_unstarted",
    "unfinished",
    "queue_max",
)
_LEAST_EXPECTED = 5.0  # both slow, by chance: a ratio to less says nothing


def cells(run: RawHedge) -> list[dict[str, Any]]:
    """A cell for each case."""
    return [_cell(run, case) for case in run.cases]


def _cell(run: RawHedge, case: RawCase) -> dict[str, Any]:
    nothing = case.reason or ("" if case.offered else "interrupted before the first request was due")
    void = "" if nothing else why_void(case, run)
    return {
        "load": case.load,
        "delay": case.delay,
        "stall": case.stall,
        "service_ns": case.service_ns,
        "cancel": case.cancel,
        "budget": case.budget if case.budget < 1 else None,
        "shed_at": case.shed_at or None,
        "seed": case.seed,
        "cpus": list(run.cpus),
        "reason": nothing or void,
        "is_void": bool(void),
        "n": 0 if nothing or void else case.offered,
        **_figures(run, case, is_measured=not nothing and not void),
        **{name: getattr(case, name) for name in _COUNTED},
        "throttled": case.throttled,
        "warnings": case_warnings(case, run) if case.offered else [],
    }


def _figures(run: RawHedge, case: RawCase, *, is_measured: bool) -> dict[str, Any]:
    """All of them null where there is no result: a void case has no figure that could be read as one."""
    hz = run.clock.hz
    if not is_measured:
        names = ("floor_ns", "delay_ns", "min_ns", "mean_ns", "percentiles_ns", "max_ns", "late_ns", "wasted_ns")
        return {
            **dict.fromkeys((*names, "utilisation", "joint_ratio", "collapsed")),
            "single_ns": dict.fromkeys(SERVERS),
            "histogram": [],
        }
    latency = Figures(case.latency, hz, case.missed)
    spread = latency.spread_ns(FEWEST) or {}
    delays = Figures(case.hedged_after, hz)
    return {
        "floor_ns": latency.ns(delays.least + (case.fastest_ticks or 0)) if delays.n else None,
        "delay_ns": delays.ns(delays.at("50")) if delays.n else None,
        "min_ns": spread["min"],
        "mean_ns": spread["mean"],
        "percentiles_ns": {name: spread[name] for name in PERCENTILES},
        "max_ns": spread["max"],
        "single_ns": {name: Figures(case.service[name], hz).spread_ns(FEWEST) for name in SERVERS},
        "late_ns": Figures(case.late, hz).spread_ns(FEWEST),
        "wasted_ns": latency.ns(case.wasted_ticks),
        "utilisation": ratio(case.busy_ticks, 2 * case.measured_ticks),
        "joint_ratio": joint_ratio(case),
        "collapsed": is_collapsed(case),
        "histogram": latency.histogram_ns(),
    }


def joint_ratio(case: RawCase) -> float | None:
    """P(both slow) / (P(A slow) x P(B slow)); 1 for servers that are slow by themselves.

    None where chance would have it less than five times: then too few requests went to both.
    """
    found = case.together
    return ratio(found.both_slow, found.expected) if found.expected >= _LEAST_EXPECTED else None
