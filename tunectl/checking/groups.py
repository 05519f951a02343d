"""Which control group puts a thread onto an isolated CPU: its unit, what says so, and what ends it for all its threads.

In a cpuset sched_setaffinity(2) can only narrow what the group allows: taskset moves nothing out of one.
Source: Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus; systemd.resource-control(5), AllowedCPUs=.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from tunectl import kinds
from tunectl.checking.traders import Trader
from tunectl.checking.window import Trespass, some
from tunectl.command import as_data, write
from tunectl.cpulist import CpuSet, format_cpulist, parse_spaced
from tunectl.errors import UsageError
from tunectl.fix import NOTHING, Fix, in_turn, to_decide, to_type
from tunectl.host.cpusets import read_cpu_list
from tunectl.host.procs import Thread, is_unit, parse_cgroup, service_of
from tunectl.host.sysroot import Sysroot
from tunectl.host.systemdunit import Said, in_force, read_unit
from tunectl.knobs.drivers.cpuset import SLICE
from tunectl.model import Scope

_HIERARCHY = "sys/fs/cgroup"
_CONTROL = "etc/systemd/system.control/"
_UNTIL_REBOOT = "run/"  # units of systemd-run, and what `set-property --runtime` said


class Group(NamedTuple):
    """A unit whose control group allows isolated CPUs; `said` is the last line that has it so, None where none is.

    A group that somebody made by hand is no unit: then `unit` is its path below /sys/fs/cgroup, with a leading slash.
    """

    unit: str
    cpus: CpuSet
    said: Said | None
    path: str  # below /sys/fs/cgroup, without slashes around it

    def describe(self, threads: list[Trespass]) -> str:
        """The cause, and then what it does: `threads` may run here because of it."""
        names = some(
            dict.fromkeys(f"{as_data(thread.run.thread.comm)} (pid {thread.run.thread.pid})" for thread in threads)
        )
        where = f" ({as_data(self.said)})" if self.said else ""
        many = f"{len(threads)} threads" if len(threads) > 1 else "the thread"
        key = "cpuset.cpus" if self.unit.startswith("/") else "AllowedCPUs"
        return f"{as_data(self.unit)} has {key}={format_cpulist(self.cpus)}{where}, which lets {many} run here: {names}"

    def declared(self, root: Sysroot, traders: Iterable[Trader]) -> CpuSet:
        """The CPUs of the declared threads that live in it, or below."""
        inside = {
            trader.declared.cpu
            for trader in traders
            for thread in trader.threads
            if f"{group_path(root, thread)}/".startswith(f"{self.path}/")
        }
        return frozenset(inside)

    def fix(self, housekeeping: str) -> Fix:
        """What moves all of its threads, and keeps them away."""
        if self.unit.startswith("/"):
            return to_type(write(housekeeping, f"/{_HIERARCHY}{self.unit}/cpuset.cpus"))
        if self.unit == SLICE:
            return to_decide(f"decide which unit belongs in {SLICE}: take Slice={SLICE} out of the others")
        kept = bool(self.said and self.said.file.startswith(_CONTROL))  # --runtime would give way to that file
        lasts = self.said and not kept and not self.said.file.startswith(_UNTIL_REBOOT)
        note = f"for the next boot, say AllowedCPUs={housekeeping} at {as_data(self.said)}"
        return to_type(kinds.confine_unit(self.unit, housekeeping, kept), note if lasts else "")


def group_of(root: Sysroot, one: Trespass, scope: Scope) -> Group | None:
    """The lowest group with a cpuset of its own that gives this thread its CPUs; None where the thread chose them."""
    thread = one.run.thread
    if thread.kernel or not thread.allowed:
        return None
    for path in _upwards(group_path(root, thread)):
        own = read_cpu_list(root, f"{_HIERARCHY}/{path}/cpuset.cpus") & scope.present
        if own:
            # A thread that narrowed it further chose its CPUs; one that could not leave them did not.
            confined = not own & scope.housekeeping
            unit = path.rpartition("/")[2]
            given = own & scope.isolated and (confined or thread.allowed & scope.present == own)
            if not given:
                return None
            return Group(unit, own, _said(root, unit), path) if is_unit(path) else Group(f"/{path}", own, None, path)
    return None


def confinable(root: Sysroot, thread: Thread) -> Group | None:
    """The service of a thread, where it can be given CPUs and nobody did so yet; None for any other thread.

    At the first cpuset of a level a kernel before 6.2 forgets the CPUs that the threads beside it had asked for (commit
    8f9ea86fdf99). One that shows cpuset.cpus.isolated, which 6.1 does not, keeps them.
    """
    unit, path = service_of(root, thread.pid), group_path(root, thread)
    can = any(root.exists(f"{_HIERARCHY}/{name}") for name in (f"{path}/cpuset.cpus", "cpuset.cpus.isolated"))
    return Group(unit, frozenset(), None, path) if unit and can and not _said(root, unit) else None


def _upwards(path: str) -> Iterator[str]:
    """A group and those above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def group_path(root: Sysroot, thread: Thread) -> str:
    """The control group of a thread's process, without slashes around it."""
    return parse_cgroup(root.get_text(f"proc/{thread.pid}/cgroup")).strip("/")


def opened(root: Sysroot, thread: Thread, cpu: int, scope: Scope) -> Fix:
    """What gives a thread's control group a CPU that it lacks, from the top down; NOTHING where it has it.

    No taskset(1) gives a thread what its group does not allow. A CPU that no group names is a partition's.
    """
    dirs = list(_upwards(group_path(root, thread)))
    shown = (read_cpu_list(root, f"{_HIERARCHY}/{path}/cpuset.cpus.effective") for path in dirs)
    has = next(filter(None, shown), frozenset({cpu}))
    if cpu in has or cpu not in scope.online:
        return NOTHING
    fixes = []
    for each in reversed(dirs):
        own = read_cpu_list(root, f"{_HIERARCHY}/{each}/cpuset.cpus") & scope.present
        if own and cpu not in own:
            unit = each.rpartition("/")[2] if is_unit(each) else f"/{each}"
            fixes.append(Group(unit, own, _said(root, unit), each).fix(format_cpulist(own | {cpu})))
    into = to_decide(f"have its unit live where that CPU is: Slice={SLICE} (`tunectl threads unit`)")
    return in_turn(*fixes) if fixes else into


def to_keep_off(root: Sysroot, thread: Thread, cpu: int) -> Fix:
    """What keeps a thread off a CPU at its next start, where its unit's CPUAffinity= puts it there; else nothing.

    A transient unit's file goes when the unit stops. Source: systemd.exec(5), CPUAffinity=.
    """
    for said in reversed(in_force(read_unit(root, service_of(root, thread.pid)), "Service", "CPUAffinity")):
        with suppress(UsageError):
            if cpu in parse_spaced(said.value) and not said.file.startswith(_UNTIL_REBOOT):
                return to_decide(f"for its next start, give CPUAffinity= at {as_data(said)} other CPUs")
    return NOTHING


def _said(root: Sysroot, unit: str) -> Said | None:
    kind = unit.rpartition(".")[2].capitalize()
    return next(reversed(in_force(read_unit(root, unit), kind, "AllowedCPUs")), None)
