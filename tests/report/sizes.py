"""Documents of the size that a run without options has, on a host that somebody else uses: every warning is there."""

from typing import Any

from tests.compare.hedges import hedge_document
from tests.compare.runs import cpu_of, document, simulated
from tests.experiments import contentions, feeds, hedges, wakes
from tests.report.documents import body
from tunectl.compare.compared import quiet_and_loaded
from tunectl.experiments.ends import Placed
from tunectl.experiments.feed_cells import explained_feed
from tunectl.experiments.hedge import DELAYS, LOADS
from tunectl.experiments.wake import WakeRequest, plan
from tunectl.experiments.wake_cells import explained_wake
from tunectl.shapes import JitterLoaded, fields_of, typed

SHARED: dict[str, Any] = {
    "shares_main": True,
    "is_locked": False,
    "timer_slack_ns": 50_000,
    "cpus": [{"is_isolated": False, "governor": "powersave", "core_cpus": "2-3"}] * 3,
}
TWO = SHARED | {"cpus": SHARED["cpus"][:2]}
_HYPERVISOR = {"/proc/cpuinfo": "flags\t\t: hypervisor constant_tsc\n"}


def wake(void: int = 0, factor: float = 1.0, worse: int = 0) -> dict[str, Any]:
    """`probe wake`: so many of its cases are void, and so many take `factor` times as long as all others do."""
    cells, measured = [], 0
    for at, case in enumerate(plan(WakeRequest(), Placed((2, 3)))):
        if case.reason:
            cells.append(case.cell)
            continue
        length = (120_000 if case.waiting == "sleeping" else 3_000) * (100 + at) // 100
        measured += 1
        changes: dict[str, Any] = {"throttled_us": 1} if measured <= void else {}
        length = round(length * factor) if measured <= worse else length
        changes |= {"mechanism": case.mechanism, "idle_ms": case.idle_ms, "preemptions": 1}
        cells.append(wakes.case(case.way, case.waiting, length, **changes))
    return explained_wake(wakes.raw_document(*cells, facts=TWO, host_files=_HYPERVISOR))


def feed(**changes: Any) -> dict[str, Any]:
    """`probe feed`: one case."""
    case = feeds.case(feeds.tail(20_000), involuntary_switches=3, minor_faults=2, **changes)
    return explained_feed(feeds.raw_document(case, facts=TWO, host_files=_HYPERVISOR))


def hedge(**changes: Any) -> dict[str, Any]:
    """`probe hedge`: at each load without second copies, and with each delay."""
    cases = [
        hedges.case(
            hedges.tail(20_000, length), load=load, delay=delay, hedged=0 if delay == "none" else 900, **changes
        )
        for load in map(float, LOADS.split(","))
        for delay, length in (("none", 300_000), *((delay, 6_000) for delay in DELAYS.split(",")))
    ]
    return hedge_document(*cases, facts=SHARED, host_files=_HYPERVISOR)


def contention(**changes: Any) -> dict[str, Any]:
    """`probe contention`: each kind of buffers, and each way to hand them over."""
    cases = [
        contentions.case([400] * 20_000, buffers=buffers, hand_over=hand_over, **changes)
        for buffers in ("malloc", "pool")
        for hand_over in ("mutex", "futex", "ring")
    ]
    return contentions.contention_document(*cases, facts=TWO, host_files=_HYPERVISOR)


def jitter(cpus: int) -> dict[str, Any]:
    """`probe jitter`: so many CPUs, each with gaps at regular intervals."""
    made = body("probe.jitter")
    return made | {"cpus": [made["cpus"][1] | {"cpu": 2 + at} for at in range(cpus)]}


def loaded(cpus: int) -> dict[str, Any]:
    """`probe jitter --load`: the same CPUs, quiet and under a load."""
    made = body("probe.jitter.loaded")
    for side, seed in (("quiet", 1), ("loaded", 50)):
        own = [cpu_of(simulated(seed + at, 10.0), 10.0, cpu=2 + at) for at in range(cpus)]
        made[side] = [made[side][0] | {name: document(*own)[name] for name in ("cpus", "duration_s", "warnings")}]
    held = typed({"schema": "tunectl.probe.jitter.loaded/1", **made}, JitterLoaded, "loaded")
    return {**made, "comparison": fields_of(quiet_and_loaded(held))}
