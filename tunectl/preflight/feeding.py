"""`probe feed` as a part of preflight: its default case for a few seconds, on the CPUs that the probe had measured.

Without time stamps: to switch them on patches the kernel's code, which interrupts every CPU of a host that is about
to trade; and the time from due to the book needs none.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tunectl.cpulist import CpuSet, format_cpulist, named_cpus
from tunectl.errors import TunectlError
from tunectl.experiments.feed import RATE, FeedRequest, run_feed
from tunectl.experiments.feed_budget import judge_feed
from tunectl.shapes import FEWEST_P99_9, Feed, plain, typed
from tunectl.work import Tell

SECONDS = 3 * FEWEST_P99_9 / RATE  # thirty messages are beyond P99.9


class Fed(NamedTuple):
    """What came of it. `problem` says why there is no result; "" where there is one."""

    result: Feed | None = None
    document: dict[str, Any] | None = None
    problem: str = ""


def measure_feed(cpus: CpuSet, limits: Mapping[str, float], intrude: bool, tell: Tell) -> Fed:
    """Measures on two of these CPUs, those that the probe has measured, and holds the result to its limits."""
    if len(cpus) < 2:
        where = f"the probe measured {named_cpus(cpus)} alone" if cpus else "the probe measured none"
        return Fed(problem=f"feed: not run: it needs two isolated CPUs, and {where}")
    request = FeedRequest(among=format_cpulist(cpus), stamps="off", duration_s=SECONDS, intrude=intrude)
    try:
        document = run_feed(request, tell)
    except TunectlError as error:
        return Fed(problem=f"feed: {error}")
    feed = typed(document, Feed)
    budget = judge_feed(feed, limits)
    return Fed(feed.held(budget), {**document, "budget": plain(budget)})
