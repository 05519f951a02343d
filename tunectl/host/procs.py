"""The processes and threads of the host, and where they run.

psutil lists the processes; it knows neither a thread's flags nor the CPU it last ran on, so those come from
/proc/PID/task/TID/{stat,schedstat,status}. Source: Documentation/filesystems/proc.rst, fs/proc/array.c.

A name is no identity: any user may give a thread any name. Whose a process is decides, what it executes, and its unit.
"""

import os
import socket
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pwd import getpwnam
from typing import NamedTuple

import psutil

from tunectl import kinds
from tunectl.cpulist import CpuSet, parse_shown
from tunectl.host.sysroot import Sysroot
from tunectl.model import Trading

PF_KTHREAD = 0x00200000  # include/linux/sched.h
PF_NO_SETAFFINITY = 0x04000000
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PROBE = "tunectl-probe"
_MONITOR = "tunectl-monitor.service"  # its user is no fixed one, and its sentinel is a probe
OF_NODES = ("kswapd", "kcompactd")  # kernel threads, one for each memory node
KTHREADD = 2
_HIDDEN = "not every thread of this host can be seen here (hidepid= of /proc, or a PID namespace)"
_SWITCHES = ("voluntary", "nonvoluntary")


class Thread(NamedTuple):
    """One thread at one moment. `cpu` is where it runs or last ran; `allowed` is None where it was not read."""

    pid: int
    tid: int
    comm: str
    state: str  # R, S, D, I, T, Z, X
    flags: int
    cpu: int
    cpu_s: float  # user and system time so far
    run_s: float  # the scheduler's own account of the same, finer; 0 without CONFIG_SCHED_INFO
    slices: int  # how often it was put on a CPU; 0 without CONFIG_SCHED_INFO
    allowed: CpuSet | None = None
    policy: int = 0  # SCHED_*, include/uapi/linux/sched.h
    rt_priority: int = 0  # 1 to 99 for SCHED_FIFO and SCHED_RR, else 0
    waited_s: float = 0.0  # runnable and not running, so far; 0 without CONFIG_SCHED_INFO
    preempted: int = 0  # how often it lost a CPU against its will; 0 where affinity was not read
    slept: int | None = None  # how often it gave its CPU up of its own accord; None where affinity was not read
    minor: int = 0  # page faults without a disk, so far
    major: int = 0  # page faults that read from one
    began: str = ""  # in clock ticks since boot: ids are used again
    parent: int = 0  # the process that started its process, or took it over

    @property
    def kernel(self) -> bool:
        """Is it a kernel thread?"""
        return bool(self.flags & PF_KTHREAD)

    @property
    def movable(self) -> bool:
        """Can it be told to run elsewhere? An unbound kworker can, through the workqueue mask.

        While a kworker of one CPU is made it has all CPUs, and no flag yet: create_worker() in kernel/workqueue.c.
        """
        if self.kernel and self.comm.startswith("kworker/"):
            return self.comm.startswith("kworker/u")
        return not self.flags & PF_NO_SETAFFINITY

    @property
    def follows(self) -> bool:
        """Does its mask follow another file's: the workqueues', or that of its interrupt?"""
        return self.kernel and self.comm.startswith(("kworker/u", "irq/"))

    @property
    def of_node(self) -> bool:
        """Is it one that gets the CPUs of its memory node from the kernel, isolated or not?

        mm/vmscan.c (kswapd), mm/compaction.c (kcompactd, and again whenever a CPU of the node comes online).
        """
        return self.kernel and is_of_node(self.comm)

    @property
    def interrupt(self) -> int | None:
        """The number of the interrupt that a thread `irq/33-mlx5` serves; None where it is no such thread."""
        number = self.comm.removeprefix("irq/").partition("-")[0]
        return int(number) if self.kernel and self.comm.startswith("irq/") and number.isdecimal() else None

    @property
    def alive(self) -> bool:
        """False for what has ended and only waits to be collected."""
        return self.state not in ("Z", "X", "x")


def hidden_threads(root: Sysroot) -> str:
    """Why threads that are not found may run here all the same; "" where every thread of the host can be seen.

    Told by the kernel's own kthreadd, process 2 on every kernel: /proc mounted with hidepid= denies it to whoever is
    not root, and no PID namespace but the host's has it (fs/proc/base.c, has_pid_permissions; init/main.c, rest_init).
    Of a recorded host nobody knows who recorded it: what it holds is taken for all.
    """
    if not root.live:
        return ""
    first = parse_stat(root.get(f"proc/{KTHREADD}/stat"), KTHREADD)
    return "" if first and first.kernel else _HIDDEN


def read_pids(root: Sysroot) -> list[int]:
    """The processes of the host, ascending; none where there is no /proc, or a recorded one without processes."""
    before = psutil.PROCFS_PATH
    psutil.PROCFS_PATH = root.path("proc")  # a global: it is ours for the length of one call
    try:
        return sorted(psutil.pids())
    except (OSError, IndexError):  # psutil looks at the first entry to learn of its place
        return []
    finally:
        psutil.PROCFS_PATH = before


def read_tids(root: Sysroot, pid: int) -> list[int]:
    """The threads of a process, ascending; none where it has ended. Never raises."""
    return sorted(int(name) for name in root.listdir(f"proc/{pid}/task") if name.isdigit())


def read_comms(root: Sysroot) -> Iterator[tuple[int, str]]:
    """(pid, name) of each process. A recorded host may hold nothing else of a process than /proc/PID/comm.

    Who a process is does not follow from it: is_daemon() tells.
    """
    for pid in read_pids(root):
        yield pid, root.get(f"proc/{pid}/comm")


def read_threads(root: Sysroot, *, affinity: bool = False) -> dict[tuple[int, int], Thread]:
    """Every thread by (pid, tid), without this process and the probe. /proc/PID/task/TID/stat

    With `affinity`, `allowed` is filled in for those that can move. A thread that ends meanwhile is left out.
    """
    return read_threads_and_probes(root, affinity=affinity)[0]


Threads = dict[tuple[int, int], Thread]


def read_threads_and_probes(root: Sysroot, *, affinity: bool = False) -> tuple[Threads, Threads]:
    """The same, and the probe's. Whose a thread is, is asked at once: one that has ended is nobody's."""
    own = os.getpid() if root.live else -1
    threads, probes = Threads(), Threads()
    for pid in read_pids(root):
        if pid == own:
            continue
        for tid in read_tids(root, pid):
            thread = read_thread(root, pid, tid, affinity=affinity)
            if thread:
                of_its_kind = probes if thread.comm == _PROBE and _is_probe(root, thread) else threads
                of_its_kind[pid, thread.tid] = thread
    return threads, probes


def _is_probe(root: Sysroot, thread: Thread) -> bool:
    """Is a thread that has the probe's name the probe's, started by us, root, this user or the monitor's service?

    Anybody may take the name, and start the program. It may be another installation's, or one that was replaced since.
    A program that is not shown to this user is not compared.
    """
    if (root.live and thread.parent == os.getpid()) or service_of(root, thread.pid) == _MONITOR:
        return True
    users = users_of(root, thread.pid)
    if users not in ({0}, {os.geteuid()}):
        return not users and not root.live
    program = root.readlink(f"proc/{thread.pid}/exe").removesuffix(" (deleted)")
    return program.rpartition("/")[2] in ("", _PROBE)


def is_daemon(root: Sysroot, pid: int, units: Collection[str]) -> bool:
    """Is a process that has a daemon's name one that can do what the daemon does: in one of its units, or root's own?

    What a user started through a set-user-ID program is not root's own: he chose its name. A recording that holds no
    users is taken at its word.
    """
    if service_of(root, pid) in units:
        return True
    users, program = users_of(root, pid), root.program(pid)
    if users != {0}:
        return not users and not root.live
    return program is None or not program.st_mode & stat.S_ISUID


def users_of(root: Sysroot, pid: int) -> frozenset[int]:
    """The users that a process runs as: real, effective, saved. Empty where that shows nowhere. /proc/PID/status"""
    line = f"\n{root.get_text(f'proc/{pid}/status')}".partition("\nUid:")[2].partition("\n")[0]
    return frozenset(int(word) for word in line.split() if word.isdecimal())


def is_of_node(name: str) -> bool:
    """Is it the name of a kernel thread that each memory node has?"""
    return name.rstrip("0123456789") in OF_NODES


def read_kernel_threads(root: Sysroot, pids: Iterable[int] | None = None) -> Iterator[Thread]:
    """Every kernel thread that is alive (of these), without its affinity. /proc/PID/stat"""
    for pid in read_pids(root) if pids is None else pids:
        thread = parse_stat(root.get(f"proc/{pid}/stat"), pid)
        if thread and thread.kernel and thread.alive:
            yield thread


def read_thread(root: Sysroot, pid: int, tid: int, *, affinity: bool = False) -> Thread | None:
    """One thread, or None where it has ended. /proc/PID/task/TID/{stat,schedstat,status}"""
    place = f"proc/{pid}/task/{tid}"
    thread = parse_stat(root.get(f"{place}/stat"), pid)
    if thread is None:
        return None
    run_s, waited_s, slices = parse_schedstat(root.get(f"{place}/schedstat"))
    thread = thread._replace(run_s=run_s, waited_s=waited_s, slices=slices)
    # Kernel threads that belong to one CPU have no choice, and on a large host there are thousands of them.
    if affinity and thread.movable:
        status = root.get_text(f"{place}/status")  # no short attribute: every group is in it
        # A thread that sleeps or is stopped gives its CPU up of its own accord; sched_yield(2) does not count as that
        # (kernel/sched/core.c, __schedule).
        counts = (status.partition(f"\n{name}_ctxt_switches:")[2].partition("\n")[0].strip() for name in _SWITCHES)
        slept, preempted = (int(count) if count.isdecimal() else None for count in counts)
        thread = thread._replace(allowed=parse_allowed(status), slept=slept, preempted=preempted or 0)
    return thread


def read_session(root: Sysroot, leader: int) -> list[Thread]:
    """The threads of the session that this process leads, with their affinity. /proc/PID/stat (field 6)"""
    threads = []
    for pid in read_pids(root):
        fields = root.get(f"proc/{pid}/stat").rpartition(")")[2].split()
        if len(fields) > 3 and fields[3] == str(leader):
            threads += [
                thread for tid in read_tids(root, pid) if (thread := read_thread(root, pid, tid, affinity=True))
            ]
    return threads


def parse_stat(text: str, pid: int) -> Thread | None:
    """/proc/PID/task/TID/stat; None for an empty or foreign text. A comm may hold spaces and parentheses."""
    head, _, tail = text.rpartition(")")
    tid, _, comm = head.partition(" (")
    fields = tail.split()
    try:
        return Thread(
            pid=pid,
            tid=int(tid),
            comm=comm,
            state=fields[0],
            flags=int(fields[6]),  # field 9 of proc(5)
            cpu=int(fields[36]),  # field 39
            cpu_s=(int(fields[11]) + int(fields[12])) / _TICKS_PER_S,  # fields 14 and 15
            run_s=0.0,
            slices=0,
            rt_priority=int(fields[37]),  # field 40
            policy=int(fields[38]),  # field 41
            minor=int(fields[7]),  # field 10
            major=int(fields[9]),  # field 12
            began=fields[19],  # field 22
            parent=int(fields[1]),  # field 4
        )
    except (IndexError, ValueError):
        return None


def parse_schedstat(text: str) -> tuple[float, float, int]:
    """/proc/PID/task/TID/schedstat: seconds on a CPU and waiting for one, how often put on one; zeros where absent."""
    fields = text.split()
    if len(fields) < 3 or not all(field.isdigit() for field in fields):
        return 0.0, 0.0, 0
    return int(fields[0]) / 1e9, int(fields[1]) / 1e9, int(fields[2])


def read_slices(root: Sysroot) -> dict[int, int]:
    """How often anything but idling was put on each CPU, so far; none without CONFIG_SCHEDSTATS. /proc/schedstat

    The last of nine numbers in each line `cpuN` of versions 15 to 17. Source: Documentation/scheduler/sched-stats.rst;
    kernel/sched/stats.h (sched_info_arrive).
    """
    lines = (line.split() for line in root.get_text("proc/schedstat").split("\n") if line.startswith("cpu"))
    return {int(words[0][3:]): int(words[9]) for words in lines if len(words) == 10 and words[0][3:].isdecimal()}


def parse_allowed(status: str) -> CpuSet | None:
    """The CPUs a thread may use, from /proc/PID/task/TID/status; None where the line is absent."""
    for line in status.split("\n"):
        if line.startswith("Cpus_allowed_list:"):
            return parse_shown(line.partition(":")[2])
    return None


def find_threads(root: Sysroot, declared: Trading) -> list[Thread]:
    """The threads a declaration fits, with their affinity; those of one process where there is but one such."""
    found = []
    for pid in read_pids(root):
        if not _fits(root, pid, declared):
            continue
        for tid in read_tids(root, pid) if declared.thread else [pid]:
            thread = read_thread(root, pid, tid, affinity=True)
            if thread and thread.alive and declared.thread in ("", thread.comm):
                found.append(thread)
    return found


def _fits(root: Sysroot, pid: int, declared: Trading) -> bool:
    if declared.unit:
        return declared.unit in _units_along(parse_cgroup(root.get_text(f"proc/{pid}/cgroup")))
    first = read_thread(root, pid, pid)
    if first is None or first.kernel or not _is_users(root, pid, declared.user):
        return False
    # A program may rename its first thread: then the word it was started with tells.
    program = root.get_text(f"proc/{pid}/cmdline").partition("\0")[0].rpartition("/")[2]
    return declared.command in (first.comm, program[:15])


def _is_users(root: Sysroot, pid: int, user: str) -> bool:
    """Is it this user's process? A recording knows no names of users, and may hold no numbers."""
    users = users_of(root, pid)
    if not user or not (root.live or (users and user.isdecimal())):
        return True
    with suppress(KeyError):
        return users == {int(user) if user.isdecimal() else getpwnam(user).pw_uid}
    return False


def parse_cgroup(text: str) -> str:
    """The control group of /proc/PID/cgroup: version 2's, else systemd's own of version 1; "" where neither is."""
    groups = {}
    for line in text.split("\n"):  # not splitlines(): a user may put \x0c into the name of a group of his
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        groups["0" if number == "0" else controllers] = path
    return groups.get("name=systemd") or groups.get("0", "")


def service_of(root: Sysroot, pid: int) -> str:
    """The system's service that a process belongs to, as its unit's name; "" where it is in none. Never raises.

    A login's scope, and a user's own manager, hold more than the process.
    """
    path = parse_cgroup(root.get_text(f"proc/{pid}/cgroup")).strip("/")
    unit = path.rpartition("/")[2]
    return unit if unit.endswith(".service") and is_unit(path) and not unit.startswith("user@") else ""


def is_unit(path: str) -> bool:
    """Is a control group one of the system's own units? Below a service or scope, names are not systemd's to give."""
    return kinds.is_unit(path.rpartition("/")[2]) and len(_units_along(path)) == path.strip("/").count("/") + 1


def _units_along(path: str) -> list[str]:
    """The system's units that a control group lies in: slices, and the first that is none."""
    units = path.strip("/").split("/")
    first = next((at for at, unit in enumerate(units) if not unit.endswith(".slice")), len(units))
    return units[: first + 1]


def read_addresses() -> dict[str, list[str]]:
    """The IP addresses of this machine, by interface, in order."""
    of_ip = (socket.AF_INET, socket.AF_INET6)
    return {
        name: sorted(address.address for address in addresses if address.family in of_ip)
        for name, addresses in psutil.net_if_addrs().items()
    }
