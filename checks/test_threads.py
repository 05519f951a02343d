"""Threads and the isolated CPUs."""

from collections.abc import Collection

from tunectl import kinds
from tunectl.checking import Severity, costs, failing, needs_sight, watches
from tunectl.checking.groups import Group, group_of
from tunectl.checking.kthreads import knob_of, read_placement, strays
from tunectl.checking.subject import Subject
from tunectl.checking.traders import Trader, strangers
from tunectl.checking.window import Trespass, Window, hogs, some, trespassers
from tunectl.command import as_data
from tunectl.cpulist import format_cpulist
from tunectl.fix import APPLY, NOTHING, REBOOT, Fix, in_turn, to_type
from tunectl.host.cpusets import CpuFacts
from tunectl.host.scheduling import REAL_TIME, scheduling_of
from tunectl.model import Scope
from tunectl.wording import seconds_of


@costs(Severity.STALL)
@watches(1.0)
@needs_sight
def test_movable_threads(
    isolated_cpu: int, window: Window, scope: Scope, cpu_facts: CpuFacts, traders: list[Trader], subject: Subject
) -> None:
    """A second thread on a spinner's CPU takes turns with it, and brings the tick back for as long as it is runnable.

    Found: each thread that could run elsewhere and ran here, each thread of user space that is pinned here, and each
    kernel thread whose mask lets it run here and that need not, though they may sleep now. If it is the
    trading thread itself, [[threads]] says so. Kernel threads that belong to the CPU (PF_NO_SETAFFINITY) cannot move
    and are left alone. The thread of an interrupt belongs where its interrupt is delivered.
    Source: Documentation/admin-guide/kernel-per-CPU-kthreads.rst; Documentation/timers/no_hz.rst.
    """
    found = strangers(trespassers(window, isolated_cpu, scope.isolated), traders, isolated_cpu)
    placement = read_placement(subject.root, scope, subject.settings, cpu_facts.nohz_full, window)
    ran = {one.run for one in found}
    found += [Trespass(run, False) for run in strays(window, isolated_cpu, placement) if run not in ran]
    if not found:
        return
    housekeeping = format_cpulist(scope.housekeeping & scope.online)
    causes: dict[Group | None, list[Trespass]] = {}  # one group, named once, with all that it lets in
    for one in found:
        causes.setdefault(group_of(subject.root, one, scope), []).append(one)
    alone = causes.pop(None, [])
    seen = [group.describe(threads) for group, threads in causes.items() if group]
    fixes = [group.fix(housekeeping) for group in causes if group]
    delivered = [irq for irq, cpus in placement.irqs.items() if cpus & scope.isolated]
    for one in alone:
        # What a knob moves is moved again after the next boot, too.
        asked = knob_of(one.run.thread) in subject.settings
        fixes.append(APPLY if asked else _fix(one, isolated_cpu, housekeeping, delivered))
    said = some([*seen, *(_seen(one, isolated_cpu) for one in alone)])
    if isolated_cpu not in cpu_facts.kernel_isolated | cpu_facts.partitioned and not all(one.pinned for one in found):
        fixes += [APPLY, REBOOT]
        said += f"; the kernel does not isolate CPU {isolated_cpu}"
    failing(
        f"CPU {isolated_cpu} is not left alone: {said}",
        in_turn(*fixes),
        observed=len(found),
        desired=0,
    )


@costs(Severity.STALL)
@watches(1.0)
@needs_sight
def test_housekeeping_starved(window: Window, scope: Scope) -> None:
    """A real-time thread that spins keeps its CPU from all others, and isolated CPUs depend on what runs there.

    The kernel's own threads of a housekeeping CPU (rcuo* for the callbacks of isolated CPUs, kworkers, ksoftirqd) then
    never run, and who waits for them waits for ever: no limit holds where kernel.sched_rt_runtime_us is -1. Looked at:
    SCHED_FIFO, SCHED_RR and SCHED_DEADLINE threads that had a housekeeping CPU for nine tenths of the window.
    Source: sched(7); Documentation/scheduler/sched-rt-group.rst; Documentation/RCU/stallwarn.rst.
    """
    found = hogs(window, scope.housekeeping & scope.online)
    if not found:
        return
    runs = [run for of_cpu in found.values() for run in of_cpu]
    seen = [
        f"{as_data(run.thread.comm)} (pid {run.thread.pid}, tid {run.thread.tid}), {scheduling_of(run.thread)}, "
        f"had CPU {run.thread.cpu} for {run.busy:.0%}"
        for run in runs
    ]
    failing(
        f"in {seconds_of(window.seconds)} nothing else could run on housekeeping CPUs: {some(seen)}",
        in_turn(*(to_type(kinds.calm_thread(run.thread.tid)) for run in runs)),
        observed=format_cpulist(frozenset(found)),
        desired="",
    )


def _seen(one: Trespass, cpu: int) -> str:
    thread = one.run.thread
    kind = "kernel thread" if thread.kernel else "thread"
    name = f"{kind} {as_data(thread.comm)} (pid {thread.pid}" + (
        f", tid {thread.tid})" if thread.tid != thread.pid else ")"
    )
    share = f"{one.run.busy:.0%} of the time" if one.run.busy >= 0.01 else "briefly"
    did = "sleeps" if not one.run.ran else f"ran here, {share}" if thread.cpu == cpu else "ran elsewhere"
    if one.pinned:
        return f"{name} is pinned here and {did}"
    if thread.cpu == cpu and one.run.ran:
        return f"{name} {did}"
    return f"{name} may run on CPUs {format_cpulist(thread.allowed or ())} and {did}"


def _fix(one: Trespass, cpu: int, housekeeping: str, delivered: Collection[int]) -> Fix:
    thread = one.run.thread
    if one.pinned:
        # One that spins under real-time scheduling would take a housekeeping CPU from everybody instead.
        spins = one.run.ran and scheduling_of(thread).policy in REAL_TIME
        calm = to_type(kinds.calm_thread(thread.tid)) if spins else NOTHING
        note = f"if it is the trading thread itself, declare it: [[threads]] in the host file, with cpu = {cpu}"
        return in_turn(calm, to_type(kinds.move_thread(thread.tid, housekeeping), note))
    if thread.comm.startswith("kworker/u"):
        return to_type(kinds.move_workqueues(housekeeping))
    if thread.interrupt is not None and thread.interrupt in delivered:
        # The kernel moves the thread along; one that came alone goes alone.
        return to_type(kinds.move_interrupt(thread.interrupt, housekeeping))
    return to_type(kinds.move_thread(thread.tid, housekeeping))
