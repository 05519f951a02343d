"""Whether the threads of a case had their CPUs while it was measured. Pure."""

from __future__ import annotations

from tunectl.probe.jitter_warnings import throttling

SPINNER_LEAST = 0.90  # of the time, that a spinner must have had its CPU
OTHERS_MOST = 0.01  # of the messages, that may meet another task on a sleeper's CPU


def cpu_share(receiver_ns: int, receiver_ticks: int, hz: float) -> float:
    """The receiver's CPU time as a share of the time. The kernel's clock and the counter differ a little: at most 1."""
    elapsed_ns = receiver_ticks * 1e9 / hz
    return min(receiver_ns / elapsed_ns, 1.0) if elapsed_ns else 0.0


def why_throttled(throttled_us: int) -> str:
    """Why the times of threads that a cgroup's cpu.max stopped for so long are no result; "" where it never did."""
    throttled = throttling(throttled_us)
    return f"void: {throttled}: the delays hold that" if throttled else ""


def why_no_spinner(share: float, receiver: int) -> str:
    """Why the times of a spinner that had its CPU for this share are no result; "" where they are one."""
    if share >= SPINNER_LEAST:
        return ""
    needed = f"it needs {100 * SPINNER_LEAST:.0f} %"
    return (
        f"void: the spinner had CPU {receiver} for {100 * share:.3g} % of the time ({needed}): "
        "the delays are those of waiting for a CPU"
    )
