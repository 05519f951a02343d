"""Interrupts that other CPUs send to the isolated ones."""

import os

from tunectl.checking import Match, Severity, costs, failing, watches
from tunectl.checking.ipis import (
    AS_ROOT,
    PER_S,
    SHORTEST_S,
    Kind,
    Sender,
    Sent,
    allowed,
    busy_senders,
    sharing,
    too_many,
)
from tunectl.checking.outcomes import ISOLATION
from tunectl.checking.residue import page_movers
from tunectl.checking.subject import Subject
from tunectl.checking.window import Window, some
from tunectl.command import as_data
from tunectl.fix import Fix, in_turn, to_decide
from tunectl.host.openfiles import find_holders, perf_users, stop_of
from tunectl.host.procs import read_thread
from tunectl.host.sysroot import Sysroot
from tunectl.host.timers import has_cpu_timer
from tunectl.wording import plural, seconds_of

_WORDS = {
    Kind.CALL: "function calls",
    Kind.TLB: "TLB shootdowns",
    Kind.WAKE: "reschedules beyond the wakeups of its own threads",
}
_FORGOTTEN = "<...>"  # a trace knows the names of so many threads only


@costs(Severity.INTERRUPT)
@watches(SHORTEST_S)
def test_ipis(isolated_cpu: int, window: Window, subject: Subject) -> None:
    """Other CPUs interrupt this one to have it run a function, forget an address or look for work: its thread waits.

    Rows CAL, TLB, RES and IWI of /proc/interrupts (IPI0 to IPI6 on arm64), without those that woke a thread here. Who
    holds the CPU's msr or cpuid device open makes it answer at each read; a process with threads on several CPUs makes
    each of them forget what one unmaps. For IRQ work (IWI) a CPU interrupts itself.
    Source: arch/x86/kernel/irq.c; arch/x86/kernel/msr.c; arch/x86/mm/tlb.c (flush_tlb_mm_range);
    arch/x86/kernel/irq_work.c.
    """
    loud = too_many(window, isolated_cpu)
    if not loud:
        return
    reasons: list[str] = []
    fixes: list[Fix] = []
    sent = [one for one in loud if one.kind is not Kind.WORK]
    if sent:
        seen = [f"{one.times} {_WORDS[one.kind]} ({one.per_s:.0f} a second)" for one in sent]
        senders, fixes = _named(isolated_cpu, sent, window, subject)
        reasons.append(f"other CPUs sent CPU {isolated_cpu} {some(seen)}: {some(senders)}")
    for one in loud:
        if one.kind is Kind.WORK:
            times = f"{plural(one.times, 'time')} for IRQ work ({one.per_s:.0f} a second)"
            whose = some(_work_of(isolated_cpu, window, subject.root))
            reasons.append(f"CPU {isolated_cpu} interrupted itself {times}: {whose}")
            leave = f"leave no POSIX CPU timer (setitimer, timer_create) and no perf event on CPU {isolated_cpu}"
            fixes.append(to_decide(leave))
    failing(
        f"in {seconds_of(window.seconds)} {'; '.join(reasons)}",
        in_turn(*fixes),
        observed=round(loud[0].per_s, 1),
        desired=PER_S,
        match=Match.AT_MOST,
    )


def _work_of(cpu: int, window: Window, root: Sysroot) -> list[str]:
    """What has a CPU interrupt itself, as far as that shows."""
    ran = [run.thread for run in window.runs if run.ran and run.thread.cpu == cpu and not run.thread.kernel]
    found = [
        f"{as_data(one.comm)} (pid {one.pid}) has a POSIX CPU timer" for one in ran if has_cpu_timer(root, one.pid)
    ]
    if users := perf_users(root):
        found.append(f"perf events are held by {some(users)}")
    return found or ["what queues it shows nowhere; a POSIX CPU timer, a perf event and a tracer do"]


def _named(cpu: int, loud: list[Sent], window: Window, subject: Subject) -> tuple[list[str], list[Fix]]:
    """Who sends them, as well as can be told, and what to do about it."""
    traced = busy_senders(subject.ipi_trace.text, cpu, os.getpid())
    if traced:
        return [_sender(subject.root, one) for one in traced], [_stop(subject.root, one, cpu) for one in traced]
    times = {one.kind: one.times for one in loud}
    senders: list[str] = []
    fixes: list[Fix] = []
    holders = find_holders(subject.root, rf"/dev/cpu/{cpu}/(msr|cpuid)")
    # Each shootdown is a function call, too (since 4.8): what is left of those has another sender.
    calls = times.get(Kind.CALL, 0) - times.get(Kind.TLB, 0) > allowed(window.seconds)
    if calls:
        for one in holders.found:
            senders.append(f"{one.name} has {' and '.join(one.files)} open: each read is answered by CPU {cpu}")
            fixes.append(to_decide(f"have it leave CPU {cpu} out, or end it: {one.stop}"))
    if Kind.TLB in times:
        for here, other in sharing(window, cpu):
            name = f"{as_data(here.thread.comm)} (pid {here.thread.pid})"
            senders.append(
                f"{name} has a thread here and shares its memory with {as_data(other.thread.comm)} "
                f"(tid {other.thread.tid}) on CPU {other.thread.cpu}"
            )
            keep = (
                f"keep the other threads of {name} from unmapping, freeing or protecting memory while it trades: "
                "allocate beforehand, mlockall, and mallopt(M_TRIM_THRESHOLD, M_MMAP_MAX); or put them into a process "
                "of their own"
            )
            fixes.append(to_decide(keep, settled_by=ISOLATION))
        for mover, fix in page_movers(subject.root):
            senders.append(mover)
            fixes.append(fix)
    hidden = f"the files of {holders.unseen} processes are root's to see" if holders.unseen else ""
    if senders:
        return [*senders, *([f"who else does, may not show here: {hidden}"] if calls and hidden else [])], fixes
    if hidden:
        return [f"who sends them shows nowhere, and {hidden}"], [AS_ROOT]
    lack = subject.ipi_trace.lack
    return [f"who sends them shows nowhere{lack and ', and '}{lack}"], [subject.ipi_trace.fix or AS_ROOT]


def _sender(host: Sysroot, one: Sender) -> str:
    name = host.get(f"proc/{one.pid}/comm", "a process that has ended") if one.comm == _FORGOTTEN else one.comm
    ran = f" to run {one.callback}" if one.callback else ""
    return f"{name} (pid {one.pid}) sent {one.times}{ran}" + (f", from {one.callsite}" if one.callsite else "")


def _stop(host: Sysroot, one: Sender, cpu: int) -> Fix:
    thread = read_thread(host, one.pid, one.pid)
    if one.pid == 0 or (thread and thread.kernel):
        comm, code = as_data(one.comm), as_data(one.callback or one.callsite)
        return to_decide(f"find out who has the kernel's {comm} run {code} on CPU {cpu}", settled_by=ISOLATION)
    if thread is None:
        name = "it" if one.comm == _FORGOTTEN else as_data(one.comm)
        return to_decide(f"see who starts {name}: process {one.pid} has ended", settled_by=ISOLATION)
    stop = stop_of(host, one.pid)
    leave = f"have {as_data(thread.comm)} (pid {one.pid}) leave CPU {cpu} out, or end it: {stop}"
    return to_decide(leave, settled_by=ISOLATION)
