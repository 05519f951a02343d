"""Whether a case of `wake` says what it seems to say: did the receiver have its CPU, and nobody else? Pure."""

from __future__ import annotations

from tunectl.experiments.pair_receiver import OTHERS_MOST, cpu_share, why_no_spinner, why_throttled
from tunectl.experiments.tick_figures import Figures
from tunectl.experiments.wake_cases import TIMERS
from tunectl.experiments.wake_facts import RawCase, RawWake
from tunectl.experiments.wake_occupancy import Occupancy, occupancy

UNREADY_MOST = 0.01  # of the messages, that may come before a receiver with a working set waits again
_STEPS_OF_DOUBT = 2  # of a time that is counted in steps: one at each end
_SWITCH_NS = 10_000  # with each run of ours goes work of the kernel that it charges to nobody, or to the CPU alone


def why_void(case: RawCase, run: RawWake) -> str:
    """Why the delays of a measured case are no result; "" where they are one."""
    receiver = run.cpus[1]
    if throttled := why_throttled(case.throttled_us):
        return throttled
    if case.waiting == "spinning":
        return why_no_spinner(share_of(case, run.clock.hz), receiver) or _why_unready(case, run)
    met = met_others(case, run)
    if met is None or met <= OTHERS_MOST:
        return _why_unready(case, run)
    shown = f"{100 * met:.2g} %" if met < 0.995 else "nearly all"
    return (
        f"void: in {shown} of the messages another task ran on CPU {receiver} (it may in {100 * OTHERS_MOST:.0f} %): "
        "the delays are not those of a sleeper that has its CPU to itself"
    )


def _why_unready(case: RawCase, run: RawWake) -> str:
    if case.unready <= UNREADY_MOST * case.sent:
        return ""
    return (
        f"void: {case.unready} of {case.sent} messages came while the receiver still wrote to its working set of "
        f"{run.dirty_kib:,} KiB: ask for a longer --idle-ms, or a smaller --dirty-kib"
    )


def share_of(case: RawCase, hz: float) -> float:
    """How much of its CPU the receiver had."""
    return cpu_share(case.receiver_ns, case.receiver_ticks, hz)


def met_others(case: RawCase, run: RawWake) -> float | None:
    """The share of the messages that were under way while another task had a sleeper's CPU; None where unknown.

    At least as many as it was preempted by one; on a CPU for both the sender preempts it, too, and that is no other.
    A run of length L meets a message that is under way for F with the chance (L + F) / T, so all of them meet the share
    (sum of L + runs * F) / T. No more messages than there were runs, where the kernel counts them.
    """
    is_alone = run.cpus[0] != run.cpus[1] or case.mechanism in TIMERS
    preempted = min(case.preemptions / case.sent, 1.0) if case.sent and is_alone else 0.0
    account = occupancy(case, run)
    if account is None:
        return preempted or None
    runs = _runs_of_others(account)
    if runs is not None and runs <= OTHERS_MOST * case.sent:
        return preempted
    doubt_ns = _STEPS_OF_DOUBT * account.step_ns + _SWITCH_NS * account.own_slices
    others_ns = max(account.cpu_ns - account.own_ns - doubt_ns, 0)
    delays = Figures(case.delay, run.clock.hz)
    flight_ns = delays.ns(delays.at("50")) if delays.n else 0
    met = (others_ns + (runs or 0) * flight_ns) / account.elapsed_ns
    return min(max(met, preempted), 1.0)


def _runs_of_others(account: Occupancy) -> int | None:
    """How often another task was put on the CPU."""
    return None if account.cpu_slices is None else max(account.cpu_slices - account.own_slices, 0)


def step_of_doubt_ns(case: RawCase, run: RawWake) -> float | None:
    """Of a sleeper's case too short for the steps in which the kernel counts who had the CPU: such a step; 0 where it
    counts nothing. None for all other cases.
    """
    if case.waiting == "spinning" or not case.delay:
        return None
    account = occupancy(case, run)
    if account is None:
        return 0.0
    return account.step_ns if _STEPS_OF_DOUBT * account.step_ns > OTHERS_MOST * account.elapsed_ns else None
