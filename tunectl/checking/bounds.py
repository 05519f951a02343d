"""What bounds or holds a declared thread, in words, and what lifts that for good where a unit says it."""

from tunectl.checking.outcomes import Fault
from tunectl.checking.traders import Trader
from tunectl.command import argv, as_data, write
from tunectl.cpulist import CpuSet
from tunectl.fix import Fix, in_turn, to_decide, to_type
from tunectl.host.confinement import (
    MOUNT,
    read_ceilings,
    read_clamps,
    read_freezers,
    read_quotas,
    read_soft_limits,
)
from tunectl.host.openfiles import stop_of
from tunectl.host.procs import is_unit
from tunectl.host.scheduling import BY_PRIORITY, scheduling_of
from tunectl.host.sysroot import Sysroot
from tunectl.wording import plural

_FAIR = ("other", "batch", "idle")
_NO_LIMIT = "unlimited"
_LIFTED = {"memory.limit_in_bytes": "-1", "cpu.cfs_quota_us": "-1", "cpu.rt_runtime_us": "-1"}  # else `max`
# The key of a unit that says the same. systemd.resource-control(5), systemd.exec(5)
_KEYS = {
    "cpu.max": "CPUQuota=",
    "cpu.cfs_quota_us": "CPUQuota=",
    "memory.high": "MemoryHigh=infinity",
    "memory.max": "MemoryMax=infinity",
    "memory.limit_in_bytes": "MemoryMax=infinity",
}


def bounds_of(root: Sysroot, trader: Trader, dirs: list[str], online: CpuSet) -> list[Fault]:
    """What can take the CPU or its clock from a declared thread, or have the kernel end it: its groups' and its own.

    A quota that all threads of the group together cannot use up, and memory that was never reached, bound nothing. Only
    schedutil goes by a clamp (Documentation/scheduler/sched-util-clamp.rst).
    """
    policy = scheduling_of(trader.thread).policy
    found = []
    if policy in (*_FAIR, *BY_PRIORITY):
        for quota in read_quotas(root, dirs, real_time=policy in BY_PRIORITY):
            if quota.cpus < min(max(quota.threads, 1), len(online)):
                share = f"{plural(quota.threads, 'thread')} together the time of {quota.cpus:g} CPUs"
                found.append(Fault(f"{as_data('/' + quota.path)} gives its {share}", _lifted(quota.path)))
    for ceiling in read_ceilings(root, dirs):
        if ceiling.peak >= ceiling.limit:
            reached = f"{as_data('/' + ceiling.path)} is {ceiling.limit}, and the group has had {ceiling.peak}"
            found.append(Fault(f"{reached}: there its threads wait while memory is taken back", _lifted(ceiling.path)))
    governor = root.get(f"sys/devices/system/cpu/cpu{trader.declared.cpu}/cpufreq/scaling_governor")
    clamps = read_clamps(root, dirs) if governor == "schedutil" else {}
    found += [
        Fault(f"{as_data('/' + path)} keeps the clock at {percent} % of the CPU's", _lifted(path))
        for path, percent in clamps.items()
    ]
    return found + _limits(root, trader, policy)


def _limits(root: Sysroot, trader: Trader, policy: str) -> list[Fault]:
    """RLIMIT_CPU ends a process when it is used up, RLIMIT_RTTIME one whose real-time thread never sleeps."""
    limits = read_soft_limits(root, trader.thread.pid)
    found = []
    if (used := limits.get("Max cpu time", _NO_LIMIT)) != _NO_LIMIT:
        what = f"process {trader.thread.pid} is ended by a signal when it has used {used} s of CPU time (RLIMIT_CPU)"
        found.append(Fault(what, _unlimited(trader, "cpu")))
    if policy in BY_PRIORITY and (at_once := limits.get("Max realtime timeout", _NO_LIMIT)) != _NO_LIMIT:
        what = f"it is ended by a signal when it runs for {at_once} us without sleeping (RLIMIT_RTTIME)"
        found.append(Fault(what, _unlimited(trader, "rttime")))
    return found


def _unlimited(trader: Trader, name: str) -> Fix:
    now = to_type(argv("sudo", "prlimit", "--pid", str(trader.thread.pid), f"--{name}={_NO_LIMIT}:{_NO_LIMIT}"))
    where = f"Limit{name.upper()}=infinity in {as_data(trader.declared.unit)}" if trader.declared.unit else "ulimit"
    return in_turn(now, to_decide(f"for its next start, lift that limit where it is set ({where})"))


def _lifted(path: str) -> Fix:
    """A unit's own setting, which lasts, where systemd has one; else the file."""
    name, unit = path.rpartition("/")[2], _unit_of(path)
    if unit and name in _KEYS:
        return to_type(argv("sudo", "systemctl", "set-property", of=(unit, _KEYS[name])))
    return to_type(write(_LIFTED.get(name, "max"), f"/{path}"))


def _unit_of(path: str) -> str:
    """The unit that a group's file belongs to; "" where the group is nobody's unit."""
    group = path.rpartition("/")[0].removeprefix(f"{MOUNT}/").removeprefix("unified/")
    unit = next((unit for unit in (group, group.partition("/")[2]) if is_unit(unit)), "")
    return unit.rpartition("/")[2]


def _thawed(path: str) -> Fix:
    """What lets a group go on: systemd remembers that it froze a unit, and thaws one that another froze, too (252)."""
    if path.endswith("/freezer.state"):
        return to_type(write("THAWED", f"/{path}"))
    if unit := _unit_of(path):
        return to_type(argv("sudo", "systemctl", "thaw", of=(unit,)))
    return to_type(write("0", f"/{path}"))


def holds_of(root: Sysroot, trader: Trader, dirs: list[str]) -> list[Fault]:
    """Who keeps a declared thread from running, or can at any moment: a debugger, a signal, a frozen group."""
    thread = trader.thread
    found = []
    status = root.get_text(f"proc/{thread.pid}/task/{thread.tid}/status")
    tracer = status.partition("\nTracerPid:")[2].partition("\n")[0].strip()
    if tracer.isdecimal() and int(tracer):
        name = as_data(root.get(f"proc/{tracer}/comm", "a process that is not seen here"))
        what = f"{name} (pid {tracer}) traces it, and can stop it at each signal and system call"
        found.append(Fault(what, to_decide(f"end it: {stop_of(root, int(tracer))}")))
    elif thread.state == "T":
        found.append(Fault("a signal stopped it", to_type(argv("sudo", "kill", "-CONT", str(thread.pid)))))
    for path in read_freezers(root, dirs):
        found.append(Fault(f"{as_data('/' + path)} holds it still", _thawed(path)))
    return found
