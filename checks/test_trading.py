"""The operator's own threads, as [[threads]] in the host file declares them."""

from contextlib import suppress

from tunectl.checking import Match, Settled, Severity, costs, failing, needs_sight, unknown, unsupported, watches
from tunectl.checking.groups import opened
from tunectl.checking.kthreads import moved_away, outranked
from tunectl.checking.placing import at_next_start, changes, is_declared, misplaced, moved
from tunectl.checking.subject import Subject
from tunectl.checking.traders import (
    Trader,
    counts_waits,
    declared_scheduling,
    dropped,
    feeding_threads,
    kept_waiting,
    local_nodes,
    neighbours,
    same_thread,
    starved,
    strangers,
    to_tell_apart,
    whose,
)
from tunectl.checking.window import Window, some, spinners, trespassers
from tunectl.command import as_data
from tunectl.cpulist import format_cpulist, parse_cpumask
from tunectl.fix import NOTHING, in_turn, to_decide
from tunectl.host.cpus import read_numa_nodes
from tunectl.host.cpusets import CpuFacts
from tunectl.host.interrupts import read_irqs
from tunectl.host.nics import read_nics
from tunectl.host.processmemory import read_memory, read_pages
from tunectl.host.procs import service_of, users_of
from tunectl.host.refusals import AS_ROOT, ON_HOST
from tunectl.host.scheduling import BY_PRIORITY, REAL_TIME
from tunectl.host.sysroot import Sysroot
from tunectl.model import Scope
from tunectl.wording import seconds_of

# Stacks and arenas of a process's other threads may lie with those: a twentieth of its memory is not what it works on.
_ELSEWHERE = 0.05


@costs(Severity.STALL)
@watches(1.0)
def test_trading_thread(trading_thread: Trader, host: Sysroot, scope: Scope, subject: Subject) -> None:
    """A trading thread that is not pinned is moved; one of the wrong policy waits behind whatever else is runnable.

    The thread is there once, may run on its CPU and on no other, and has its scheduling policy and priority; while the
    host is watched, nothing of that changes: a program may move its own threads, and a tool those of others.
    Source: sched(7); sched_setaffinity(2).
    """
    declared, threads = trading_thread
    if not threads:
        unknown(f"{whose(declared)} does not run now", to_decide("start it, then check again"))
    if len(threads) > 1:
        tids = ", ".join(str(one.tid) for one in threads)
        units = {one.pid: service_of(host, one.pid) for one in threads}
        users = {one.pid: users_of(host, one.pid) for one in threads}
        failing(f"{whose(declared)} is {len(threads)} threads: {tids}", to_tell_apart(declared, threads, units, users))
    watched = isinstance(subject.window, Window) and same_thread(subject.window, trading_thread.thread)
    before, thread = watched or (trading_thread.thread, trading_thread.thread)
    found = misplaced(declared, thread)
    restless = changes(before, thread)
    if found or restless:
        reasons = [*(reason for reason, _ in found), *(f"while it was watched, {change}" for change in restless)]
        failing(
            f"{whose(declared)} (tid {thread.tid}): {'; '.join(reasons)}",
            in_turn(
                opened(host, thread, declared.cpu, scope),
                *(fix for _, fix in found),
                to_decide("find what changes it: its own code, or a tool that places threads") if restless else NOTHING,
                at_next_start(declared) if found else NOTHING,
            ),
        )


@costs(Severity.STALL)
@watches(1.0)
@needs_sight
def test_trading_alone(
    trading_thread: Trader, window: Window, scope: Scope, cpu_facts: CpuFacts, traders: list[Trader]
) -> None:
    """Whatever else runs on its CPU, or on the other hardware threads of that core, takes time from a trading thread.

    Found: other threads that ran there or are pinned there, and spinners or other trading threads on its siblings.
    Source: Documentation/admin-guide/cputopology.rst (thread_siblings_list).
    """
    cpu = trading_thread.declared.cpu
    _ = trading_thread.thread
    seen = strangers(trespassers(window, cpu, scope.isolated), traders, cpu)
    names = [f"{as_data(one.run.thread.comm)} (tid {one.run.thread.tid}) on its CPU" for one in seen]
    siblings = cpu_facts.siblings.get(cpu, frozenset()) - {cpu}
    names += [
        f"{as_data(run.thread.comm)} (tid {run.thread.tid}) on sibling {run.thread.cpu}"
        for run in spinners(window, siblings)
    ]
    names += [f"{one}, the same core" for one in neighbours(trading_thread, traders, siblings)]
    if names:
        housekeeping = scope.housekeeping & scope.online
        strays = [moved(one.run.thread, traders, housekeeping) for one in seen if is_declared(one.run.thread, traders)]
        others = f"move them to {format_cpulist(housekeeping)}, or trading threads to other cores"
        failing(
            f"{as_data(trading_thread.declared.name)} does not have CPU {cpu} and its core to itself: {some(names)}",
            in_turn(*strays, to_decide(others) if len(strays) < len(names) else NOTHING),
            observed=len(names),
            desired=0,
        )


@costs(Severity.STALL)
def test_trading_locked(trading_thread: Trader, host: Sysroot) -> None:
    """The first touch of a page that is not locked, or was reclaimed, is a fault in the kernel, and may be a disk read.

    Compared: locked with resident memory, without what cannot be locked (rings of devices and sockets, huge pages).
    `locked_memory = false` in its declaration says that none is meant to be.
    Source: mlockall(2); Documentation/filesystems/proc.rst (VmFlags of smaps; else VmLck, VmRSS).
    """
    if not trading_thread.declared.locked:
        unsupported("locked_memory = false in the host file")
    memory = read_memory(host, trading_thread.thread.pid)
    if memory is None:
        unknown(f"/proc/{trading_thread.thread.pid}/status says nothing of its memory")
    if memory.locked < memory.resident:
        failing(
            f"{memory.locked} of {memory.resident} KiB of process {trading_thread.thread.pid} are locked",
            to_decide("mlockall(MCL_CURRENT | MCL_FUTURE) before the session, with LimitMEMLOCK=infinity in its unit"),
            observed=memory.locked,
            desired=memory.resident,
            match=Match.AT_LEAST,
        )


@costs(Severity.SLOWER)
def test_trading_memory_local(trading_thread: Trader, host: Sysroot, traders: list[Trader]) -> None:
    """A load from another NUMA node's memory crosses the link between the sockets, on every cache miss.

    Looked at: the memory the process writes, not its program text. Where threads of one process are declared on
    several nodes, the memory of each counts as local.
    Source: proc(5), numa_maps; numa(7).
    """
    pid = trading_thread.thread.pid
    nodes = read_numa_nodes(host)
    if sum(bool(node.memory_bytes) for node in nodes) < 2:
        unsupported("this host has its memory in one place")
    own = local_nodes(nodes, frozenset(one.declared.cpu for one in traders if pid in {t.pid for t in one.threads}))
    try:
        pages = read_pages(host, pid)
    except OSError as error:
        unknown(f"/proc/{pid}/numa_maps: {error.strerror}", AS_ROOT)
    total, elsewhere = sum(pages.values()), sum(kib for node, kib in pages.items() if node not in own)
    if elsewhere > total * _ELSEWHERE:
        where = ", ".join(f"{kib} KiB on node {node}" for node, kib in sorted(pages.items()))
        wanted = format_cpulist(own)
        failing(
            f"memory of process {pid} lies on another node than CPU {trading_thread.declared.cpu}: {where}",
            to_decide(f"NUMAPolicy=bind and NUMAMask={wanted} in its unit, or numactl --membind={wanted}"),
            observed=where,
            desired=f"node {wanted}",
        )


@costs(Severity.STALL)
@watches(1.0)
@needs_sight
def test_trading_fed(trading_thread: Trader, host: Sysroot, traders: list[Trader], subject: Subject) -> None:
    """A real-time thread that spins never lets its CPU go: what feeds it, if it must run there, waits for ever.

    Looked at: the interrupts and RPS queues of its interfaces (`fed_by`, else all of [network]), and the threads it
    names: softirqs, threaded interrupts and ordinary threads run only when a SCHED_FIFO spinner sleeps. Then the
    effect: how long those threads, threaded interrupts and NAPI threads waited for its CPU, and what was dropped.
    Source: sched(7); Documentation/networking/scaling.rst; Documentation/scheduler/sched-stats.rst.
    """
    declared = trading_thread.declared
    _ = trading_thread.thread
    if declared.policy not in REAL_TIME:
        return
    irqs = read_irqs(host)
    nics = [nic for nic in read_nics(host, irqs) if nic.name in declared.fed_by]
    found = starved(trading_thread, traders, nics, {irq.irq: irq for irq in irqs}, subject.servers)
    found += [one for nic in nics for one in _steered(host, nic.name, declared.cpu)]
    window = subject.window
    lost: list[str] = []
    if isinstance(window, Window):
        feeders = feeding_threads(window, trading_thread, traders, frozenset(irq for nic in nics for irq in nic.irqs))
        waits = kept_waiting(window, trading_thread, feeders)
        found += [
            f"{as_data(one.thread.comm)} (tid {one.thread.tid}) waited {seconds_of(one.seconds)}" for one in waits
        ]
        lost = dropped(window, trading_thread, traders)
    if found:
        found += lost
        failing(
            f"{as_data(declared.name)} spins as SCHED_{declared.policy.upper()} on CPU {declared.cpu}, where "
            f"what feeds it would have to run: {some(found)}",
            to_decide("move the interrupts (knob irq.affinity) and the threads that feed it to other CPUs"),
            observed=len(found),
            desired=0,
        )
    if isinstance(window, Settled):
        raise Settled(window.outcome, window.reason, window.fix)
    if lost:
        failing(
            f"what was meant for {as_data(declared.name)} was dropped: {some(lost)}",
            to_decide(
                "have the reader of that queue run in time, or make the queue longer (SO_RCVBUF, net.core.rmem_max, "
                "net.core.netdev_max_backlog)"
            ),
            observed=len(lost),
            desired=0,
        )
    fed = {declared.name, *declared.fed_by}
    pids = {one.thread.pid for one in traders if one.declared.name in fed and one.threads}
    _must_see_drops(host, window, declared.cpu, pids)
    if feeders and not counts_waits(window):
        unknown("this kernel does not count how long threads wait (CONFIG_SCHED_INFO)")


@costs(Severity.STALL)
def test_trading_outranks(trading_thread: Trader, host: Sysroot, scope: Scope, subject: Subject) -> None:
    """A SCHED_FIFO thread keeps its CPU from every thread whose priority is not higher: its own card's, too.

    Looked at: priorities and CPUs, as declared and as the kernel shows them; nothing has to run. With PREEMPT_RT or
    threadirqs the interrupts of a card run in threads (irq/N-...), SCHED_FIFO 50 if nobody changed that. What these
    leave is done by the CPU's ksoftirqd, and on PREEMPT_RT by its ktimers and rcuc, at priority 1 or none. One that
    has a higher priority preempts the trading thread instead: neither should run where it does.
    Source: sched(7); kernel/irq/manage.c; kernel/softirq.c.
    """
    declared = trading_thread.declared
    if declared.policy not in BY_PRIORITY:
        return
    irqs = read_irqs(host)
    numbers = {irq for nic in read_nics(host, irqs) if nic.name in declared.fed_by for irq in nic.irqs}
    own = [irq for irq in irqs if irq.irq in numbers]
    if not subject.servers.seen and subject.hidden:
        unknown(subject.hidden, ON_HOST)
    if not subject.servers.seen:
        unsupported("no kernel threads can be seen here (a container?)")
    here = subject.servers.on(declared.cpu, own)
    below = outranked(here, declared_scheduling(declared))
    if below:
        failing(
            f"{as_data(declared.name)} runs as SCHED_{declared.policy.upper()} {declared.priority} on CPU "
            f"{declared.cpu}, and what serves its card there has no higher priority: "
            f"{some(map(str, below))} never run while it spins",
            moved_away(here, own, declared.cpu, format_cpulist(scope.housekeeping & scope.online)),
            observed=len(below),
            desired=0,
        )
    if hidden := subject.servers.hidden(own):
        unknown(f"where {some(map(str, hidden))} may run cannot be read")


def _steered(host: Sysroot, nic: str, cpu: int) -> list[str]:
    """The receive queues whose packets RPS hands to a CPU."""
    place = f"sys/class/net/{nic}/queues"
    masks = ((queue, host.get(f"{place}/{queue}/rps_cpus")) for queue in sorted(host.listdir(place)))
    return [f"RPS of {nic} {queue}" for queue, mask in masks if mask and cpu in parse_cpumask(mask)]


def _must_see_drops(host: Sysroot, window: Window, cpu: int, pids: set[int]) -> None:
    """Where the kernel or another user's files hide what was dropped, that nothing was dropped is not known."""
    if host.exists("proc/net/softnet_stat") and cpu not in window.after.backlog_drops:
        unknown(f"what the backlog of CPU {cpu} dropped is not known: /proc/net/softnet_stat does not name it")
    for pid in sorted(pids):
        with suppress(FileNotFoundError, ProcessLookupError):
            try:
                host.names(f"proc/{pid}/fd")
            except PermissionError:
                unknown(f"what the sockets of process {pid} dropped cannot be seen", AS_ROOT)
