"""What keeps the probe from proving anything, as things to do: a command, or what is to be decided. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tunectl.fix import Fix, to_decide, to_type
from tunectl.preflight.beside import Beside
from tunectl.probe.budget import needed_s

STOP = "GO needs them stopped, or --intrude"
_A_DAY_S = 86400
_AGAIN = "sudo tunectl preflight"


def to_prove(live: bool, problem: str, probe: Mapping[str, Any] | None, beside: Sequence[Beside]) -> Iterator[Fix]:
    """What to do so that the probe measures every isolated CPU, and for as long as its limits need.

    `problem` says why nothing was measured; `beside` are the CPUs that were left to somebody else's threads.
    """
    if not live:
        yield to_decide("run it on the live host: a recorded host cannot be measured")
        return
    taken = [f"CPU {one.cpu}: {'; '.join(one.threads)}" for one in beside]
    known = {one.cpu for one in beside}
    left = (probe or {}).get("not_measured") or ()
    taken += [f"CPU {one['cpu']}: {one['reason']}" for one in left if one["cpu"] not in known]
    if taken or problem.endswith(STOP):
        where = f" ({'; '.join(taken)})" if taken else ""
        yield to_decide(
            f"stop what runs on the isolated CPUs{where}, or decide to measure beside it, which takes time from it: "
            f"{_AGAIN} --intrude"
        )
    elif problem:
        yield to_decide(f"see to it that the probe can measure: {problem.removeprefix('probe: ')}")
    if probe:
        yield from _to_judge(probe.get("budget") or {})


def _to_judge(budget: Mapping[str, Any]) -> Iterator[Fix]:
    limits = budget.get("limits") or {}
    if not limits:
        yield to_decide("set limits under [budget] in the host file: none is set")
        return
    if budget.get("not_judged"):
        longest = max(needed_s(limits).values())
        if longest <= _A_DAY_S:
            yield to_type(f"{_AGAIN} --duration {math.ceil(longest)}")
        else:
            yield to_decide(
                "set limits under [budget] in the host file, max_ns among them, that a run of a day can show"
            )
    elif budget.get("verdict") == "not-judged" and "was not measured" not in budget["reason"]:
        yield to_type(_AGAIN, budget["reason"])
