"""What `tunectl-probe wake` writes, made of messages of one length; a tick is a nanosecond."""

from typing import Any

from tests.experiments.feeds import MS, around

CALM = {"ticks": 1000 * MS, "cpu_ns": 2 * MS, "own_ns": 2 * MS, "own_slices": 100, "cpu_slices": 100}


_NONE = (
    *("duplicates", "reordered", "negative", "unready", "late_expirations", "page_faults", "preemptions"),
    *("throttled_us", "napi_id", "errno"),
)


def accounts(occupancy: dict[str, Any] | None) -> dict[str, Any]:
    """What the kernel said before and after; where it counts no runs, only the idle time of CPU 3, in steps."""
    if occupancy is None:
        return {at: {"ticks": 11, "tids": [71, 72, 70], "files": {}} for at in ("before", "after")}
    ticks, cpu_ns, slices = occupancy["ticks"], occupancy["cpu_ns"], occupancy["cpu_slices"]
    own = f"{7 + occupancy['own_ns']} 5 {9 + occupancy['own_slices']}"
    threads = {"before": ["7 5 9", "7 5 9", "7 5 9"], "after": [own, "900000000 5 900", "900000000 5 900"]}
    path = "/proc/schedstat"
    lines = ("cpu3 0 0 0 0 0 0 50 60 70", f"cpu3 0 0 0 0 0 0 {50 + cpu_ns} 60 {70 + (slices or 0)}")
    if slices is None:
        path = "/proc/stat"
        lines = ("cpu3 1 2 3 100 5 6 7 8 0 0", f"cpu3 9 9 9 {100 + (ticks - cpu_ns) // (10 * MS)} 5 6 7 8 0 0")

    def account(at: int, name: str, line: str) -> dict[str, Any]:
        own = {f"/proc/self/task/{tid}/schedstat": of for tid, of in zip((71, 72, 70), threads[name], strict=True)}
        text = f"version 17\ncpu2 0 0 0 0 0 0 9 9 9\n{line}\ncpu31 0 0 0 0 0 0 9 9 9\ndomain0 3 1 2\n"
        return {"ticks": at, "tids": [71, 72, 70], "files": {path: text, **own}}

    return {"before": account(11, "before", lines[0]), "after": account(11 + ticks, "after", lines[1])}


def case(
    way: str, waiting: str, length: int = 5000, occupancy: dict[str, Any] | None = CALM, **changes: Any
) -> dict[str, Any]:
    """100 messages of one length, in a second; a spinner had its CPU for all of it."""
    return {
        "mechanism": "tcp",
        "waiting": waiting,
        "way": way,
        "idle_ms": 10.0,
        **dict.fromkeys(_NONE, 0),
        "reason": "",
        "failed": "",
        "has_no_napi": False,
        "sent": 100,
        "arrived": 100,
        "period_ticks": 10 * MS,
        "receiver_ns": (1000 if waiting == "spinning" else 2) * MS,
        "receiver_ticks": 1000 * MS,
        **accounts(occupancy),
        "delay": [length, 100],
        "after_send": [-10, 100],
        "send_call": [900, 100],
        "late": [100, 100],
        **changes,
    }


def block(**changes: Any) -> dict[str, Any]:
    return case("block", "sleeping", 100_000, **changes)


def minimal(**changes: Any) -> dict[str, Any]:
    return case("minimal", "spinning", 5_000, **changes)


def raw_document(*cases: dict[str, Any], **changes: Any) -> dict[str, Any]:
    asked = {"messages": 100, "bytes": 32, "fds": 1, "dirty_kib": 0, "busy_poll_us": 50, "has_warm_sender": True}
    return around("wake", cases, 2, **asked | changes)


def timer(**changes: Any) -> dict[str, Any]:
    nothing: dict[str, list[int]] = {name: [] for name in ("after_send", "send_call", "late")}
    return block(**{"mechanism": "timerfd"} | nothing | changes)
