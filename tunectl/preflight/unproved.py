"""What keeps the probe from proving anything, as things to do: a command, or what is to be decided. Pure."""

import math
from collections.abc import Iterator, Sequence

from tunectl import kinds
from tunectl.experiments.feed_budget import WHERE
from tunectl.fix import Fix, to_decide, to_type
from tunectl.preflight.beside import Beside
from tunectl.preflight.gate import Problem
from tunectl.probe.budget import LONGEST_S, needed_s
from tunectl.shapes import Feed, Jitter


def to_prove(
    live: bool,
    problem: Problem,
    probe: Jitter | None,
    beside: Sequence[Beside],
    loads: Sequence[str] = (),
    *,
    is_guest: bool = False,
) -> Iterator[Fix]:
    """What to do so that the probe measures every isolated CPU for as long as its limits need, with all of its time.

    `problem` says why nothing was measured; `beside` are the CPUs that were left to somebody else's threads.
    """
    if not live:
        yield to_decide("run it on the live host: a recorded host cannot be measured")
        return
    taken = [f"CPU {one.cpu}: {'; '.join(one.threads)}" for one in beside]
    known = {one.cpu for one in beside}
    left = probe.not_measured if probe else ()
    taken += [f"CPU {left_out.cpu}: {left_out.reason}" for left_out in left if left_out.cpu not in known]
    if taken or problem.is_taken:
        where = f" ({'; '.join(taken)})" if taken else ""
        yield to_decide(
            f"stop what runs on the isolated CPUs{where}, or decide to measure beside it, which takes time from it: "
            f"{kinds.preflight(loads, intrude=True)}"
        )
    elif problem:
        yield to_decide(f"see to it that the probe can measure: {problem.why}")
    if probe:
        yield from _to_judge(probe, loads)
    if probe and is_guest and "stolen_ppm" in probe.budget.broken_limits:
        yield to_decide(
            "this is a virtual machine: where the host below takes the time, no setting here helps; have it give each "
            "of these CPUs a core of its own, or trade on another host"
        )


def to_load(names: Sequence[str], problem: Problem, loaded: Jitter | None) -> Iterator[Fix]:
    """What to do so that the load runs, or so that the cause of what it broke is found."""
    if problem.mending:
        yield problem.mending
    elif problem:
        yield to_decide(f"see to it that the load can run, or leave it out ({kinds.preflight(['none'])}): {problem}")
    elif loaded and (why := loaded.load_problem):
        yield to_type(kinds.preflight(names), why)
    elif loaded and loaded.budget.verdict == "broken":
        yield to_type(kinds.probe_jitter(names), "says what interrupts each CPU beside that load")


def to_feed(problem: str, feed: Feed | None) -> Iterator[Fix]:
    """What to do so that feed is measured and judged, or so that it is found what takes the time."""
    if problem:
        yield to_decide(
            f"see to it that feed can be measured, or leave it out (sudo tunectl preflight --no-feed): {problem}"
        )
    elif feed and not feed.budget.limits:
        yield to_decide(f"set {WHERE} in the host file: feed was held to no limit")
    elif feed and feed.budget.verdict == "broken":
        yield to_type(kinds.probe_feed(), "says which stage takes the time")
    elif feed and feed.budget.verdict != "within":
        yield to_type(kinds.preflight(feed=True), feed.budget.reason)


def to_finish(stopped: str, loads: Sequence[str]) -> Iterator[Fix]:
    """The same once more, where it did not come to its end."""
    if stopped:
        yield to_type(kinds.preflight(loads), "to its end")


def _to_judge(probe: Jitter, loads: Sequence[str]) -> Iterator[Fix]:
    budget = probe.budget
    limits = {name: limit for name, limit in budget.limits.items() if limit is not None}
    if not limits:
        yield to_decide("set limits under [budget] in the host file: none is set")
        return
    if budget.not_judged:
        longest = max(needed_s(limits).values())
        if longest <= LONGEST_S:
            yield to_type(kinds.preflight(loads, seconds=math.ceil(longest)))
        else:
            yield to_decide(
                "set limits under [budget] in the host file, max_ns among them, that a run of a day can show"
            )
    elif budget.verdict == "not-judged" and not probe.not_measured:
        yield to_type(kinds.preflight(loads), budget.reason)
