"""Whether a case of `hedge` says what it seems to say: had each thread its CPU, did the client keep time? Pure."""

from __future__ import annotations

from tunectl.experiments.hedge_facts import RawCase, RawHedge
from tunectl.experiments.pair_receiver import cpu_share, why_no_spinner, why_throttled
from tunectl.experiments.tick_figures import Figures
from tunectl.wording import nanoseconds

LATE_MOST = 0.1  # of the service time, by which one request in a hundred may be sent late
ROLES = ("client", "server A", "server B")


def why_void(case: RawCase, run: RawHedge) -> str:
    """Why the times of a measured case are no result; "" where they are one, and in a simulation."""
    if run.simulated:
        return ""
    if throttled := why_throttled(case.throttled_us):
        return throttled
    for cpu, thread in zip(run.cpus, case.threads, strict=False):
        if reason := why_no_spinner(cpu_share(thread.cpu_ns, thread.ticks, run.clock.hz), cpu):
            return reason
    late = Figures(case.late, run.clock.hz)
    late_ns = late.at("99") * 1e9 / run.clock.hz if late.n else 0.0
    if late_ns <= LATE_MOST * case.service_ns:
        return ""
    return (
        f"void: the client sent one request in a hundred {nanoseconds(late_ns)} late or later (it may be "
        f"{nanoseconds(LATE_MOST * case.service_ns)}, a tenth of the service time): the load was not what was asked for"
    )
