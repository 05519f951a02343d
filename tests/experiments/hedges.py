"""What `tunectl-probe hedge` writes, made of requests whose fate is known; a tick is a nanosecond."""

from collections.abc import Iterable, Sequence
from typing import Any

from tests.experiments.feeds import HZ, around, pairs

SERVICE_NS = 3000
OWN = {"cpu_ns": 1_000_000_000, "ticks": 1_000_000_000, "preemptions": 0, "page_faults": 0}


_NONE = ("shed_at", "shed", "unanswered", "lost", "hedge_unfinished", "denied", "over_budget", "wasted", "below_floor",
         "wasted_ticks", "throttled_us")  # fmt: skip


def case(latency: Iterable[int] = (), won: Sequence[int] = (), **changes: Any) -> dict[str, Any]:
    """A raw cell: requests that took so long, those a second copy won among them; nothing shed, and no stop.

    Every second copy that did not win was cancelled. `shed` and `unanswered` add requests that missed.
    """
    answers = [*latency]
    hedged = changes.pop("hedged", len(won))
    shed, unanswered = changes.get("shed", 0), changes.get("unanswered", 0)
    offered = len(answers) + shed + unanswered
    services = [SERVICE_NS] * (len(answers) - len(won))
    return {
        "load": 0.1,
        "delay": "5000" if hedged else "none",
        "stall": "none",
        "service_ns": SERVICE_NS,
        "cancel": True,
        "budget": 1.0,
        "seed": 1,
        **dict.fromkeys(_NONE, 0),
        "reason": "",
        "warm_ups": 100,
        "offered": offered,
        "answered": len(answers),
        "hedged": hedged,
        "won": len(won),
        "hedge_cancelled": hedged - len(won),
        "cancelled_unstarted": hedged,
        "unfinished": unanswered,
        "queue_max": 3,
        "queue_sums": [offered // 4] * 4,
        "queue_arrivals": [offered] * 4,
        "measured_ticks": 1_000_000,
        "busy_ticks": 200_000,
        "free_ticks": 1_790_000,
        "fastest_ticks": 2900,
        "latency": pairs(answers),
        "won_latency": pairs(won),
        "late": pairs([50] * (offered - shed)),
        "hedged_after": pairs([5000] * hedged),
        "service": {"a": pairs(services), "b": pairs([SERVICE_NS] * len(won))},
        "shorter_of_pair": [],
        "together": together(served=(len(services), len(won))),
        "threads": [OWN, OWN, OWN],
        "throttled": None,
        **changes,
    }


def together(
    served: tuple[int, int] = (0, 0),
    slow: tuple[int, int] = (0, 0),
    first_slow: tuple[int, int] = (0, 0),
    both_slow: int = 0,
    pairs: int = 0,
) -> dict[str, Any]:
    """How often both servers were slow with one request."""
    found = {"served": [*served], "slow": [*slow], "above_ticks": [3100, 3100], "first_slow": [*first_slow]}
    return {**found, "pairs": pairs, "both_slow": both_slow}


def at_once(n: int, both_slow: int, **changes: Any) -> dict[str, Any]:
    """Two copies of each of `n` requests, of which a hundredth is slow at each server, and so many at both."""
    slow = n // 100
    return case(
        [SERVICE_NS] * n,
        **{
            "hedged": n,
            "delay": "0",
            "hedge_cancelled": 0,
            "cancelled_unstarted": 0,
            "lost": n,
            "wasted": n,
            "hedged_after": pairs([0] * n),
            "service": {"a": [SERVICE_NS, n], "b": [SERVICE_NS, n]},
            "shorter_of_pair": [SERVICE_NS, n],
            "together": together((n, n), (slow, slow), (slow // 2, slow - slow // 2), both_slow, n),
            **changes,
        },
    )


def unmeasured(reason: str, **changes: Any) -> dict[str, Any]:
    """A cell in which nothing was counted."""
    asked = ("load", "delay", "stall", "service_ns", "cancel", "budget", "shed_at", "seed")
    made = case(**changes)
    return {**{name: made[name] for name in asked}, "reason": reason}


def tail(n: int, longest: int = 300_000) -> list[int]:
    """Answers of some 3 us, a hundredth of them of 6, and a thousandth of `longest`."""
    return [longest if at % 1000 == 500 else 6_000 if at % 100 == 50 else 3_000 + at % 97 for at in range(n)]


def raw_document(*cases: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return around("hedge", cases, 3, **{"simulated": False} | changes)


def simulated_document(*cases: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The same of a simulation, which has neither CPUs nor threads."""
    without = [{**one, "threads": []} if "threads" in one else one for one in cases]
    made = raw_document(*without, simulated=True, cpus=[], **changes)
    return {**made, "clock": {"source": "simulated", "hz": HZ}, "facts": None}
