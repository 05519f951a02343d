"""What surrounds the operator's own threads: the limits that they run under, and who holds them."""

from tunectl.checking import Severity, costs, unknown
from tunectl.checking.bounds import bounds_of, holds_of
from tunectl.checking.outcomes import Fault, failing_of
from tunectl.checking.traders import Trader, whose
from tunectl.host.confinement import group_dirs, read_soft_limits
from tunectl.host.refusals import AS_ROOT
from tunectl.host.sysroot import Sysroot
from tunectl.model import Scope


@costs(Severity.STALL)
def test_trading_bounded(trading_thread: Trader, host: Sysroot, scope: Scope) -> None:
    """A limit takes the CPU from a trading thread when it is used up, or ends its process, in the middle of a session.

    Looked at: CPU time that a control group or one above it gives to its threads (cpu.max, cpu.rt_runtime_us), memory
    that it has reached (memory.high, memory.max), the clock (cpu.uclamp.max, where schedutil sets it), RLIMIT_CPU and,
    of SCHED_FIFO and SCHED_RR, RLIMIT_RTTIME. A quota of cpu.max does not count real-time threads.
    Source: Documentation/admin-guide/cgroup-v2.rst; Documentation/scheduler/sched-bwc.rst; getrlimit(2).
    """
    dirs = group_dirs(host, trading_thread.thread.pid, trading_thread.thread.tid)
    _settle(trading_thread, bounds_of(host, trading_thread, dirs, scope.online))
    if not read_soft_limits(host, trading_thread.thread.pid):
        unknown(f"/proc/{trading_thread.thread.pid}/limits cannot be read", AS_ROOT)
    _must_be_seen(host, dirs)


@costs(Severity.STALL)
def test_trading_held(trading_thread: Trader, host: Sysroot) -> None:
    """A trading thread that somebody stopped, traces or froze does nothing, or waits for him at each system call.

    Looked at: its tracer, whether a signal stopped it, and whether its control group or one above it is frozen.
    Source: proc(5), TracerPid; signal(7); Documentation/admin-guide/cgroup-v2.rst (cgroup.freeze).
    """
    dirs = group_dirs(host, trading_thread.thread.pid, trading_thread.thread.tid)
    _settle(trading_thread, holds_of(host, trading_thread, dirs))
    _must_be_seen(host, dirs)


def _settle(trader: Trader, found: list[Fault]) -> None:
    if found:
        failing_of(f"{whose(trader.declared)} (tid {trader.thread.tid})", found)


def _must_be_seen(host: Sysroot, dirs: list[str]) -> None:
    """A recording, and a container, may lack the groups: that nothing bounds a thread is not known then."""
    if not any(host.exists(directory) for directory in dirs):
        unknown("the control groups of its process cannot be seen here")
