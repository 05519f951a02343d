"""What a declared thread did in a window: the same thread at both ends, or no answer. Pure."""

from __future__ import annotations

from typing import NamedTuple

from tunectl.checking.outcomes import unknown
from tunectl.checking.traders import Trader, whose
from tunectl.checking.window import Window
from tunectl.command import as_data
from tunectl.cpulist import CpuSet
from tunectl.fix import to_decide
from tunectl.host.procs import Thread
from tunectl.host.scheduling import scheduling_of

STARVED = 0.01  # of the window: what waits less than this for its CPU is fed from elsewhere soon enough
_STOPPED = ("T", "t")  # by a signal, by a debugger (fs/proc/array.c)


class Span(NamedTuple):
    """One thread before and after."""

    before: Thread
    after: Thread


def span_of(window: Window, trader: Trader) -> Span:
    """The declared thread. Settled as unknown where it is several, or was not the same one all the time."""
    thread = trader.thread
    if len(trader.threads) > 1:
        unknown(f"{whose(trader.declared)} is {len(trader.threads)} threads: see check.trading_thread")
    found = _same(window, (thread.pid, thread.tid))
    if not found:
        again = to_decide("check again while it runs")
        unknown(f"{as_data(trader.declared.name)} (tid {thread.tid}) began or ended while it was watched", again)
    return found


def _same(window: Window, key: tuple[int, int]) -> Span | None:
    before, after = window.before.threads.get(key), window.after.threads.get(key)
    same = before and after and after.alive and before.began == after.began
    return Span(before, after) if same and before and after else None


def sleeps(span: Span) -> int | None:
    """How often it gave its CPU up of its own accord, 1 at least where it slept all along; None where nothing says."""
    before, after = span
    if before.slept is None or after.slept is None:
        return None
    times = max(after.slept - before.slept, 0)
    return max(times, 1) if {before.state, after.state} <= {"S", "D"} else times


def is_stopped(span: Span) -> bool:
    """Was it stopped at an end of the window? A stop counts as giving the CPU up."""
    return bool({span.before.state, span.after.state} & {*_STOPPED})


class Waiting(NamedTuple):
    """A thread that feeds another, and how long it was ready to run on that one's CPU and did not, seconds."""

    thread: Thread
    seconds: float


def counts_waits(window: Window) -> bool:
    """Does this kernel count how often threads run, and how long they wait? Not without CONFIG_SCHED_INFO."""
    return any(one.slices for one in window.after.threads.values())


def kept_waiting(window: Window, trader: Trader, feeders: list[Thread]) -> list[Waiting]:
    """Which of these wait for the trader's CPU for more than STARVED of the window."""
    spans = [span for one in feeders if (span := _same(window, (one.pid, one.tid)))]
    here = [span for span in spans if trader.declared.cpu in (span.before.cpu, span.after.cpu)]
    waits = [Waiting(span.after, _waited(span, trader, window.seconds)) for span in here]
    return [one for one in waits if one.seconds > STARVED * window.seconds]


def _waited(span: Span, trader: Trader, seconds: float) -> float:
    before, after = span
    still = (before.slices, before.run_s, before.cpu_s) == (after.slices, after.run_s, after.cpu_s)
    # The kernel counts a wait when it ends: who is ready at both ends and never ran has waited all along. A spinner
    # that nobody interrupts has no new slice either, but it is not behind a real-time thread on the same CPU.
    if still and before.state == after.state == "R" and scheduling_of(after).rank <= scheduling_of(trader.thread).rank:
        return seconds
    return max(after.waited_s - before.waited_s, 0.0)


def feeding_threads(window: Window, trader: Trader, traders: list[Trader], irqs: frozenset[int]) -> list[Thread]:
    """The threads it is declared to be fed by, and the threaded interrupts and NAPI threads of its interfaces."""
    named = {one for other in traders if other.declared.name in trader.declared.fed_by for one in other.threads}
    keys = {(one.pid, one.tid) for one in named}
    begins = (*(f"irq/{irq}-" for irq in sorted(irqs)), *(f"napi/{nic}-"[:15] for nic in trader.declared.fed_by))
    return [
        one for key, one in window.after.threads.items() if key in keys or (one.kernel and one.comm.startswith(begins))
    ]


def dropped(window: Window, trader: Trader, traders: list[Trader]) -> list[str]:
    """What came for it in the window and was thrown away: at its CPU's backlog, and at sockets of its feeders."""
    cpu, (before, after) = trader.declared.cpu, (window.before, window.after)
    backlog = after.backlog_drops.get(cpu, 0) - before.backlog_drops.get(cpu, 0)
    found = (
        [f"the backlog of CPU {cpu} dropped {backlog} packets"] if cpu in before.backlog_drops and backlog > 0 else []
    )
    fed = {trader.declared.name, *trader.declared.fed_by}
    pids = {one.pid: one.comm for other in traders if other.declared.name in fed for one in other.threads}
    for (pid, _), socket in after.sockets.items():
        earlier = before.sockets.get((pid, socket.inode))
        lost = socket.drops - earlier.drops if earlier else 0
        if pid in pids and lost > 0:
            found.append(f"UDP port {socket.port} of {pids[pid]} (pid {pid}) dropped {lost} datagrams")
    return found


def loose(threads: list[Thread], traders: list[Trader], isolated: CpuSet) -> list[Thread]:
    """Those that may run on isolated CPUs and are not declared."""
    own = {(one.pid, one.tid) for trader in traders for one in trader.threads}
    return [one for one in threads if (one.pid, one.tid) not in own and one.allowed and one.allowed & isolated]
