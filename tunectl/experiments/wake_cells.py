"""The cells and the speed-ups of a tunectl.probe.wake/1 document, from what was counted. Pure."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from tunectl.experiments.tick_figures import PERCENTILES, Figures, halved, ratio
from tunectl.experiments.wake_cases import TIMERS
from tunectl.experiments.wake_facts import RawCase, RawWake
from tunectl.experiments.wake_void import share_of, why_void
from tunectl.experiments.wake_warnings import case_warnings

_SLEEPING = "sleeping"


class Judged(NamedTuple):
    """A case, its delays, and why it has no figures; "" where it has."""

    case: RawCase
    delays: Figures
    reason: str
    is_void: bool

    @property
    def has_figures(self) -> bool:
        return not self.reason


def judged(run: RawWake) -> list[Judged]:
    """Every case of a run."""
    return [_judged(case, run) for case in run.cases]


def _judged(case: RawCase, run: RawWake) -> Judged:
    delays = Figures(case.delay, run.clock.hz)
    missing = "" if delays.n else case.reason or _why_nothing(case)
    void = "" if missing else why_void(case, run)
    return Judged(case, delays, missing or void, bool(void))


def _why_nothing(case: RawCase) -> str:
    if case.has_no_napi:
        return (
            "the socket's NAPI id is 0: no device queue that the kernel could poll feeds it (loopback has none), "
            "so SO_BUSY_POLL would change nothing"
        )
    if case.failed:
        what = "the queue stayed full for a second" if case.errno == errno.EAGAIN else os.strerror(case.errno)
        return f"{case.failed} failed: {what}"
    return "every message was lost" if case.sent else "interrupted before the first message"


def cells(run: RawWake, found: Iterable[Judged], is_round_trip: bool) -> list[dict[str, Any]]:
    """A cell for each case."""
    return [_cell(run, one, is_round_trip) for one in found]


def _cell(run: RawWake, one: Judged, is_round_trip: bool) -> dict[str, Any]:
    case, hz = one.case, run.clock.hz
    return {
        "mechanism": case.mechanism,
        "waiting": case.waiting,
        "way": case.way,
        "idle_ms": case.idle_ms,
        "cpus": list(run.cpus),
        "is_round_trip": is_round_trip,
        "reason": one.reason,
        "is_void": one.is_void,
        "n": one.delays.n if one.has_figures else 0,
        "sent": case.sent,
        "lost": max(case.sent - case.arrived, 0),
        "duplicates": case.duplicates,
        "reordered": case.reordered,
        "late_expirations": case.late_expirations if case.mechanism in TIMERS else None,
        **_figures(run, one),
        "period_ns": Figures([], hz).ns(case.period_ticks),
        "receiver_cpu_percent": round(100 * share_of(case, hz), 2) if one.delays.n else None,
        "napi_id": case.napi_id,
        "histogram": one.delays.histogram_ns() if one.has_figures else [],
        "warnings": case_warnings(case, run) if one.delays.n else [],
    }


def _figures(run: RawWake, one: Judged) -> dict[str, Any]:
    """All of them null where there is no result: a void case has no figure that could be read as one."""
    case, delays, hz = one.case, one.delays, run.clock.hz
    has = one.has_figures
    spreads = {
        "after_send_ns": case.after_send,
        "send_call_ns": case.send_call,
        "late_ns": case.late,
        "far_ns": case.far,
        "one_way_estimate_ns": halved(case.away),  # nothing says that both directions take the same
    }
    return {
        "min_ns": delays.ns(delays.least) if has else None,
        "mean_ns": delays.mean_ns() if has else None,
        "percentiles_ns": delays.percentiles_ns() if has else None,
        "max_ns": delays.ns(delays.most) if has else None,
        **{name: Figures(values, hz).spread_ns() if has else None for name, values in spreads.items()},
    }


def speedups(found: Sequence[Judged]) -> list[dict[str, Any]]:
    """How many times shorter than asleep, for each case that has figures and did not sleep."""
    return list(_speedups(found))


def _speedups(found: Sequence[Judged]) -> Iterator[dict[str, Any]]:
    for one in found:
        over = _sleeping_like(one.case, found)
        if over and one.has_figures and one.case.waiting != _SLEEPING:
            yield _speedup(one, over)


def _sleeping_like(case: RawCase, found: Iterable[Judged]) -> Judged | None:
    """The first that slept, of the same mechanism and idle time, and has figures."""
    key = (case.mechanism, case.idle_ms, _SLEEPING)
    like = (one for one in found if (one.case.mechanism, one.case.idle_ms, one.case.waiting) == key)
    return next((one for one in like if one.has_figures), None)


def _speedup(one: Judged, over: Judged) -> dict[str, Any]:
    return {
        "mechanism": one.case.mechanism,
        "idle_ms": one.case.idle_ms,
        "waiting": one.case.waiting,
        "way": one.case.way,
        "over": over.case.way,
        "mean": ratio(over.delays.mean, one.delays.mean),
        "percentiles": {name: ratio(over.delays.at(name), one.delays.at(name)) for name in PERCENTILES},
        "max": ratio(over.delays.most, one.delays.most),
    }
