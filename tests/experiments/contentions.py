"""What `tunectl-probe contention` writes, made of steps of known length; a tick is a nanosecond."""

from collections.abc import Iterable
from typing import Any

from tests.experiments.feeds import around, pairs
from tunectl.experiments.contention_cells import explained_contention

OWN = {"cpu_ns": 1_000_000_000, "ticks": 1_000_000_000, "preemptions": 0, "sleeps": 0, "page_faults": 0}
ASKED: dict[str, Any] = {"buffers": "malloc", "hand_over": "ring", "threads": 2, "bytes": 16_384, "rate": 20_000}


def case(taking: Iterable[int] = (), **changes: Any) -> dict[str, Any]:
    """A raw cell: buffers that were there after so long, each handed over in 300 ns and given back in 200."""
    taken = [*taking]
    return {
        **ASKED,
        "reason": "",
        "sent": len(taken),
        "allocations": len(taken) if changes.get("buffers", "malloc") == "malloc" else 0,
        "throttled_us": 0,
        "taking": pairs(taken),
        "handing": pairs([300] * len(taken)),
        "giving": pairs([200] * len(taken)),
        "whole": pairs(ns + 340 for ns in taken),
        "ends": [OWN, OWN],
        **changes,
    }


def unmeasured(reason: str, **changes: Any) -> dict[str, Any]:
    """A cell in which nothing was counted."""
    return {**ASKED, **changes, "reason": reason}


def end(which: int, **changes: Any) -> dict[str, Any]:
    """One of the two threads used something else."""
    return {"ends": [OWN | (changes if at == which else {}) for at in range(2)]}


def raw_document(*cases: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return around("contention", cases, 2, **changes)


def contention_document(*cases: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """As `tunectl probe contention` makes it of these raw cases."""
    return explained_contention(raw_document(*cases, **changes))
