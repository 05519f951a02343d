"""What `tunectl-probe feed` writes, made of messages whose stages are known; a tick is a nanosecond."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tunectl.shapes import FEED_STAGES

HZ = 1e9
MS = 1_000_000
GOOD = {"is_isolated": True, "governor": "performance", "core_cpus": ""}
# send, wire, kernel, read, batch, frame, parse, book of an ordinary message: 10 us
USUAL = (100, 3_000, 400, 4_000, 0, 500, 1_900, 100)


def message(**stages: int) -> tuple[int, ...]:
    """An ordinary message, but for these stages."""
    return tuple(stages.get(name, usual) for name, usual in zip(FEED_STAGES, USUAL, strict=True))


def pairs(values: Iterable[int]) -> list[int]:
    """Each value and how often it came, ascending."""
    return [number for value, count in sorted(Counter(values).items()) for number in (value, count)]


_NONE = (
    *("alloc", "doubled", "reordered", "strangers", "rcvbuf_bytes", "grown", "unsent", "stamp_shared", "allocations"),
    *("minor_faults", "major_faults", "involuntary_switches", "voluntary_switches", "sender_involuntary_switches"),
    *("sender_voluntary_switches", "throttled_us", "close_code", "napi_id", "errno"),
)


def case(messages: Sequence[tuple[int, ...]] | None = None, stamped: bool = True, **changes: Any) -> dict[str, Any]:
    """A cell of these messages, 1,000 usual ones if none are given; each was due, sent, and has arrived.

    Without stamps wire is in kernel.
    """
    found = [message()] * 1000 if messages is None else list(messages)
    if not stamped:
        found = [(send, 0, wire + kernel, *rest) for send, wire, kernel, *rest in found]
    stages = {name: pairs(values) for name, values in zip(FEED_STAGES, zip(*found, strict=True), strict=False)}
    n = len(found)
    return {
        "transport": "tcp",
        "format": "ws-json",
        "symbols": 1,
        "rate": 1000,
        "burst": 1,
        "waiting": "poll0",
        "tls": "off",
        **dict.fromkeys(_NONE, 0),
        "reason": "",
        "warm_ups": 100,
        "due": n + changes.get("unsent", 0),
        "sent": n,
        "arrived": n,
        "is_replayed": False,
        "unsent_ticks": [],
        "reads": n,
        "batch_sizes": [1, n],
        "stamped": stamped,
        "stamps": {
            "asked": "sw",
            "kind": "sw" if stamped else "off",
            "reason": "",
            "were_on": False,
            "uncertainty_ticks": 50 if stamped else None,
            "stepped": False,
        },
        "negative": dict.fromkeys(FEED_STAGES, 0),
        "drops": {"socket": 0, "softnet": 0, "nic": None},
        "receiver_ns": 1000 * MS,
        "receiver_ticks": 1000 * MS,
        "failed": "",
        "total": pairs(map(sum, found)),
        "late": pairs(one[0] for one in found),
        "stages": {name: stages.get(name, []) if stamped or name != "wire" else [] for name in FEED_STAGES},
        "profile": profile(found),
        "series": series(found),
        **changes,
    }


def lossy(arrived: Sequence[tuple[int, ...]], lost: int, **changes: Any) -> dict[str, Any]:
    """A cell of these messages, and more that were sent and never came."""
    sent = len(arrived) + lost
    return case(arrived, due=sent, sent=sent, **changes)


def unsent(arrived: Sequence[tuple[int, ...]], waited: Sequence[int], **changes: Any) -> dict[str, Any]:
    """A cell of these messages, and more that were never sent, with what each had waited at the end."""
    return case(arrived, unsent=len(waited), unsent_ticks=pairs(waited), **changes)


def profile(messages: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """A bucket for each total."""
    alike: dict[int, list[tuple[int, ...]]] = {}
    for one in messages:
        alike.setdefault(sum(one), []).append(one)
    return [
        [total, total + 1, len(same), *(sum(values) for values in zip(*same, strict=True))]
        for total, same in sorted(alike.items())
    ]


def series(messages: Sequence[tuple[int, ...]], intervals: int = 4) -> dict[str, Any]:
    """The messages in the order of their times to be sent, in equal intervals of 250 ms."""
    per = -(-len(messages) // intervals) or 1
    totals = [sum(one) for one in messages]
    parts = [totals[at : at + per] for at in range(0, len(totals), per)]
    rows = [[len(part), sum(part), max(part)] for part in parts]
    return {"start": 1_000, "interval_ticks": 250 * MS, "intervals": rows}


def unmeasured(reason: str, **changes: Any) -> dict[str, Any]:
    """A cell in which nothing was counted."""
    made = case([], **changes)
    asked = ("transport", "format", "symbols", "rate", "burst", "waiting", "tls", "alloc")
    return {**{name: made[name] for name in asked}, "reason": reason}


def tail(n: int, scale: int = 1) -> list[tuple[int, ...]]:
    """Messages of 10 us and a little more, each hundredth of 50 us, each thousandth of 300 us."""
    return [
        message(
            read=(4_000 + at % 97 * 10) * scale,
            kernel=(40_400 if at % 100 == 50 else 400) * scale,
            send=(290_100 if at % 1000 == 500 else 100) * scale,
        )
        for at in range(n)
    ]


def around(experiment: str, cells: Iterable[dict[str, Any]], threads: int, **of_run: Any) -> dict[str, Any]:
    """The document around these cells, of a quiet host; each thread has an isolated CPU, from CPU 2 on."""
    facts = {"shares_main": False, "is_locked": True, "user_hz": 100, "timer_slack_ns": 1, "cpus": [GOOD] * threads}
    return {
        "schema": f"tunectl.probe.{experiment}.raw/1",
        "tunectl_version": "0.1.0",
        "host": {"hostname": "h", "kernel": "6.12", "boot_id": "b", "machine": "x86_64"},
        "at": "2026-11-21T09:00:00Z",
        "host_files": {},
        "holds": "what was counted",
        "duration_s": 1.0,
        "interrupted": False,
        "fifo_priority": 0,
        "cpus": [*range(2, 2 + threads)],
        "clock": {"source": "tsc", "hz": HZ, "granule_ns": 1.0, "drift_ppm": 0.0},
        "cells": list(cells),
        **of_run,
        "facts": facts | of_run.get("facts", {}),
    }


def raw_document(*cases: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return around("feed", cases, 2, **{"busy_poll_us": 50} | changes)
