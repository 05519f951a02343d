"""Where a thread goes that is not where it belongs: one answer for all checks, so that no two advise the contrary.

A declared thread goes to the CPU of its declaration, with the scheduling that stands there; any other to housekeeping.
"""

from collections.abc import Sequence

from tunectl import kinds
from tunectl.checking.outcomes import THREAD_HOLDS
from tunectl.checking.traders import Trader, declared_scheduling
from tunectl.command import argv, as_data
from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.fix import NOTHING, Fix, to_decide, to_type
from tunectl.host.procs import Thread
from tunectl.host.scheduling import REAL_TIME, scheduling_of
from tunectl.model import Trading

_CHRT = {"other": "-o", "fifo": "-f", "rr": "-r", "batch": "-b", "idle": "-i"}


def home_of(thread: Thread, traders: Sequence[Trader]) -> int | None:
    """The CPU that a thread is declared for; None where nobody declared it, or its declaration fits others as well."""
    key = (thread.pid, thread.tid)
    homes = (trader.declared.cpu for trader in traders if [(one.pid, one.tid) for one in trader.threads] == [key])
    return next(homes, None)


def is_declared(thread: Thread, traders: Sequence[Trader]) -> bool:
    """Does a declaration say where this thread belongs?"""
    return home_of(thread, traders) is not None


def moved(thread: Thread, traders: Sequence[Trader], housekeeping: CpuSet) -> Fix:
    """What moves a thread to where it belongs."""
    home = home_of(thread, traders)
    cpus = format_cpulist(housekeeping if home is None else {home})
    return to_type(kinds.move_thread(thread.tid, cpus), THREAD_HOLDS)


def calmed(thread: Thread, traders: Sequence[Trader], housekeeping: CpuSet) -> Fix:
    """What has a real-time thread leave others their turn on a housekeeping CPU."""
    if is_declared(thread, traders):
        return moved(thread, traders, housekeeping)
    return to_type(kinds.calm_thread(thread.tid)) if scheduling_of(thread).policy in REAL_TIME else NOTHING


def misplaced(declared: Trading, thread: Thread) -> list[tuple[str, Fix]]:
    """What is not as declared of where and how a thread runs: (what, what to do about it)."""
    found = []
    tid, cpu = thread.tid, declared.cpu
    if thread.allowed != frozenset({cpu}):
        where = "may run on CPUs " + ",".join(map(str, sorted(thread.allowed))) if thread.allowed else "is not pinned"
        found.append((f"it {where}, not on CPU {cpu} alone", to_type(kinds.move_thread(tid, str(cpu)))))
    seen, wanted = scheduling_of(thread), declared_scheduling(declared)
    if seen != wanted:
        found.append((f"it is scheduled as {seen}, not {wanted}", _reschedule(declared, tid)))
    return found


def changes(before: Thread, after: Thread) -> list[str]:
    """What changed meanwhile of where and how a thread may run, in words."""
    found = []
    if None not in (before.allowed, after.allowed) and before.allowed != after.allowed:
        found.append(f"CPUs {format_cpulist(before.allowed or ())} became {format_cpulist(after.allowed or ())}")
    if scheduling_of(before) != scheduling_of(after):
        found.append(f"{scheduling_of(before)} became {scheduling_of(after)}")
    return found


def at_next_start(declared: Trading) -> Fix:
    """What a command that is typed now does not do: a thread that is started anew has what its program asks for."""
    if declared.unit.endswith(".service"):
        return to_decide(f"for its next start, see `tunectl threads unit {as_data(declared.name)}`")
    return to_decide(
        "for its next start, have it, or what starts it, ask for its CPU and scheduling (sched_setaffinity(2), "
        "sched_setscheduler(2))"
    )


def _reschedule(declared: Trading, tid: int) -> Fix:
    if declared.policy == "deadline":  # needs a runtime and a deadline, which the host file does not have
        return to_decide(f"have the program ask for it, with its runtime and deadline: sched_setattr(2) of tid {tid}")
    return to_type(argv("sudo", "chrt", _CHRT[declared.policy], "-p", str(declared.priority), str(tid)))
