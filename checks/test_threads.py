"""Threads and the isolated CPUs."""

from collections.abc import Collection

from tunectl import kinds
from tunectl.checking import Severity, costs, failing, needs_sight, watches
from tunectl.checking.groups import Group, confinable, group_of, group_path, to_keep_off
from tunectl.checking.kthreads import knob_of, read_placement, strays
from tunectl.checking.outcomes import IRQ_HOLDS, ISOLATION, THREAD_HOLDS, WORK_HOLDS
from tunectl.checking.placing import calmed, is_declared, moved
from tunectl.checking.subject import Subject
from tunectl.checking.traders import Trader, strangers
from tunectl.checking.visits import unseen_visits, visitors
from tunectl.checking.window import Run, Trespass, Window, hogs, never_ran, some, trespassers
from tunectl.command import as_data
from tunectl.cpulist import CpuSet, format_cpulist
from tunectl.fix import APPLY, NOTHING, REBOOT, Fix, in_turn, to_decide, to_type
from tunectl.host.cpusets import CpuFacts
from tunectl.host.refusals import AS_ROOT
from tunectl.host.scheduling import scheduling_of
from tunectl.host.sysroot import Sysroot
from tunectl.model import Scope
from tunectl.wording import percent, plural, seconds_of

_UNIT_HOLDS = "it holds until the next boot; AllowedCPUs= in its unit does it at each"
_NOT_REAL_TIME = to_decide(
    "for its next start, take its real-time scheduling from it where that is asked for: CPUSchedulingPolicy= of its "
    "unit, chrt(1), sched_setscheduler(2)"
)


@costs(Severity.STALL)
@watches(1.0)
@needs_sight
def test_movable_threads(
    isolated_cpu: int, window: Window, scope: Scope, cpu_facts: CpuFacts, traders: list[Trader], subject: Subject
) -> None:
    """A second thread on a spinner's CPU takes turns with it, and brings the tick back for as long as it is runnable.

    Found: each thread that could run elsewhere and ran here, each thread of user space that is pinned here, and each
    kernel thread whose mask lets it run here and that need not, though they may sleep now. If it is the
    trading thread itself, [[threads]] says so. What was there between two looks only, the kernel has counted
    (/proc/schedstat), and a trace names it, while no thread is at work there. Kernel threads that belong to the CPU
    (PF_NO_SETAFFINITY) cannot move and are left alone. The thread of an interrupt belongs where its interrupt is
    delivered.
    Source: Documentation/admin-guide/kernel-per-CPU-kthreads.rst; Documentation/timers/no_hz.rst;
    Documentation/scheduler/sched-stats.rst.
    """
    found = strangers(trespassers(window, isolated_cpu, scope.isolated), traders, isolated_cpu)
    placement = read_placement(subject.root, scope, subject.settings, cpu_facts.nohz_full, window)
    ran = {one.run for one in found}
    found += [Trespass(run, False) for run in strays(window, isolated_cpu, placement) if run not in ran]
    unseen = unseen_visits(window, isolated_cpu)
    if not found and not unseen:
        return
    housekeeping = scope.housekeeping & scope.online
    causes: dict[Group | None, list[Trespass]] = {}  # one group, named once, with all that it lets in
    for one in found:
        causes.setdefault(group_of(subject.root, one, scope), []).append(one)
    alone = causes.pop(None, [])
    crowds = _crowds(subject.root, alone, window, scope, traders)
    alone = [one for one in alone if not any(one.run in crowd for crowd in crowds.values())]
    seen = [group.describe(threads) for group, threads in causes.items() if group]
    seen += [_crowd(group, runs) for group, runs in crowds.items()]
    fixes = [_of_group(subject.root, group, causes[group], traders, housekeeping) for group in causes if group]
    fixes += [_of_unit(subject.root, group, runs, traders, housekeeping) for group, runs in crowds.items()]
    delivered = [irq for irq, cpus in placement.irqs.items() if cpus & scope.isolated]
    for one in alone:
        # What a knob moves is moved again after the next boot, too.
        asked = knob_of(one.run.thread) in subject.settings
        fixes.append(APPLY if asked else _fix(subject.root, one, isolated_cpu, traders, housekeeping, delivered))
    brief = [_unseen(isolated_cpu, unseen, window, subject)] if unseen else []
    said = some([*seen, *(_seen(one, isolated_cpu) for one in alone), *brief])
    if isolated_cpu not in cpu_facts.kernel_isolated | cpu_facts.partitioned and not all(one.pinned for one in found):
        fixes += [APPLY, REBOOT]
        said += f"; the kernel does not isolate CPU {isolated_cpu}"
    failing(
        f"CPU {isolated_cpu} is not left alone: {said}",
        in_turn(*fixes, _to_find(subject, housekeeping) if unseen else NOTHING),
        observed=len(found) + len(brief),
        desired=0,
    )


@costs(Severity.STALL)
@watches(1.0)
@needs_sight
def test_housekeeping_starved(window: Window, scope: Scope, traders: list[Trader]) -> None:
    """A real-time thread that spins keeps its CPU from all others, and isolated CPUs depend on what runs there.

    The kernel's own threads of a housekeeping CPU (rcuo* for the callbacks of isolated CPUs, kworkers, ksoftirqd) then
    never run, and who waits for them waits for ever: no limit holds where kernel.sched_rt_runtime_us is -1. Looked at:
    SCHED_FIFO, SCHED_RR and SCHED_DEADLINE threads that had a housekeeping CPU for nine tenths of the window; and, by
    effect, threads of the kernel that were ready all along and never ran, whoever kept them from it.
    Source: sched(7); Documentation/scheduler/sched-rt-group.rst; Documentation/RCU/stallwarn.rst.
    """
    found = hogs(window, scope.housekeeping & scope.online)
    waiting = never_ran(window, scope.housekeeping & scope.online)
    if waiting and not found:
        failing(
            f"in {seconds_of(window.seconds)} threads of the kernel were ready and never ran: "
            f"{some(f'{as_data(run.thread.comm)} (pid {run.thread.pid}) on CPU {run.thread.cpu}' for run in waiting)}",
            to_decide("find what keeps that CPU from them: an interrupt's thread, a real-time thread of the kernel"),
            observed=format_cpulist(frozenset(run.thread.cpu for run in waiting)),
            desired="",
        )
    if not found:
        return
    runs = [run for of_cpu in found.values() for run in of_cpu]
    seen = [
        f"{as_data(run.thread.comm)} (pid {run.thread.pid}, tid {run.thread.tid}), {scheduling_of(run.thread)}, "
        f"had CPU {run.thread.cpu} for {percent(run.busy * 100)}"
        for run in runs
    ]
    failing(
        f"in {seconds_of(window.seconds)} nothing else could run on housekeeping CPUs: {some(seen)}",
        in_turn(
            *(calmed(run.thread, traders, scope.housekeeping & scope.online) for run in runs),
            NOTHING if all(is_declared(run.thread, traders) for run in runs) else _NOT_REAL_TIME,
        ),
        observed=format_cpulist(frozenset(found)),
        desired="",
    )


def _seen(one: Trespass, cpu: int) -> str:
    thread = one.run.thread
    kind = "kernel thread" if thread.kernel else "thread"
    name = f"{kind} {as_data(thread.comm)} (pid {thread.pid}" + (
        f", tid {thread.tid})" if thread.tid != thread.pid else ")"
    )
    share = f"{percent(one.run.busy * 100)} of the time" if one.run.busy >= 0.01 else "briefly"
    did = "sleeps" if not one.run.ran else f"ran here, {share}" if thread.cpu == cpu else "ran elsewhere"
    if one.pinned:
        return f"{name} is pinned here and {did}"
    if thread.cpu == cpu and one.run.ran:
        return f"{name} {did}"
    return f"{name} may run on CPUs {format_cpulist(thread.allowed or ())} and {did}"


def _unseen(cpu: int, times: int, window: Window, subject: Subject) -> str:
    """What ran there and was gone, or elsewhere, when it was looked for: how often, and its name where that shows."""
    counted = f"{plural(times, 'time')} something ran here that was gone, or elsewhere, at both looks"
    own = {thread.pid for thread in window.after.threads.values() if thread.kernel and not thread.movable}
    traced = [
        f"{as_data(comm)} (pid {pid}) {plural(often, 'time')}"
        for comm, pid, often in visitors(subject.visit_trace, cpu)
        if pid not in own
    ]
    return f"{counted}; traced afterwards: {some(traced)}" if traced else counted


def _to_find(subject: Subject, housekeeping: CpuSet) -> Fix:
    if subject.untraced:
        return subject.untraced.fix or AS_ROOT
    cpus = format_cpulist(housekeeping)
    start = f"have whoever starts it start it on CPUs {cpus}, or end that (a script, a service, a timer)"
    return to_decide(start, settled_by=ISOLATION)


def _of_group(root: Sysroot, group: Group, threads: list[Trespass], traders: list[Trader], housekeeping: CpuSet) -> Fix:
    """A group that declared threads live in keeps their CPUs: there its other threads are moved one by one."""
    kept = group.declared(root, traders)
    confined = NOTHING if group.cpus == housekeeping | kept else group.fix(format_cpulist(housekeeping | kept))
    return in_turn(confined, *(moved(one.run.thread, traders, housekeeping) for one in threads if kept))


def _crowds(
    root: Sysroot, alone: list[Trespass], window: Window, scope: Scope, traders: list[Trader]
) -> dict[Group, list[Run]]:
    """The services of these threads of which several processes are pinned to isolated CPUs, with all that are.

    One in which a declared thread lives keeps its CPUs: there threads are moved one by one.
    """
    here = {group for one in alone if one.pinned and (group := confinable(root, one.run.thread))}
    crowds: dict[str, list[Run]] = {group.path: [] for group in here if not group.declared(root, traders)}
    for run in window.runs if crowds else ():
        pinned = run.thread.allowed and run.thread.allowed <= scope.isolated and not run.thread.kernel
        if pinned and (path := group_path(root, run.thread)) in crowds:
            crowds[path].append(run)
    several = {path: runs for path, runs in crowds.items() if len({run.thread.pid for run in runs}) > 1}
    return {group: several[group.path] for group in here if group.path in several}


def _crowd(group: Group, runs: list[Run]) -> str:
    pids = {run.thread.pid: as_data(run.thread.comm) for run in runs}
    names = some(f"{comm} (pid {pid})" for pid, comm in sorted(pids.items()))
    return f"{group.unit}: {len(pids)} processes are pinned to isolated CPUs: {names}"


def _of_unit(root: Sysroot, group: Group, runs: list[Run], traders: list[Trader], housekeeping: CpuSet) -> Fix:
    """One step for all processes of a service, on whichever CPU they are found."""
    declare = "if these are the trading threads themselves, declare them: [[threads]] in the host file"
    confined = to_type(kinds.confine_unit(group.unit, format_cpulist(housekeeping)), f"{_UNIT_HOLDS}; {declare}")
    cpus = sorted({cpu for run in runs for cpu in run.thread.allowed or ()})
    return in_turn(
        *(calmed(run.thread, traders, housekeeping) for run in runs if run.ran),
        confined,
        *(to_keep_off(root, runs[0].thread, cpu) for cpu in cpus),
    )


def _fix(
    root: Sysroot,
    one: Trespass,
    cpu: int,
    traders: list[Trader],
    housekeeping: CpuSet,
    delivered: Collection[int],
) -> Fix:
    thread = one.run.thread
    if one.pinned and not is_declared(thread, traders):
        # One that spins under real-time scheduling would take a housekeeping CPU from everybody instead.
        calm = calmed(thread, traders, housekeeping) if one.run.ran else NOTHING
        declare = f"if it is the trading thread itself, declare it: [[threads]] in the host file, with cpu = {cpu}"
        note = f"{THREAD_HOLDS}; {declare}"
        away = to_type(kinds.move_thread(thread.tid, format_cpulist(housekeeping)), note)
        return in_turn(calm, away, to_keep_off(root, thread, cpu))
    if thread.comm.startswith("kworker/u"):
        return to_type(kinds.move_workqueues(format_cpulist(housekeeping)), WORK_HOLDS)
    if thread.interrupt is not None and thread.interrupt in delivered:
        # The kernel moves the thread along; one that came alone goes alone.
        return to_type(kinds.move_interrupt(thread.interrupt, format_cpulist(housekeeping)), IRQ_HOLDS)
    return moved(thread, traders, housekeeping)
