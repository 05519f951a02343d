"""Threads and the isolated CPUs."""

from tunectl.checking import failing
from tunectl.checking.judges import Trespass, some, trespassers
from tunectl.checking.traders import Trader, strangers
from tunectl.checking.window import Window
from tunectl.cpulist import format_cpulist
from tunectl.host.cpusets import CpuFacts
from tunectl.model import Scope


def test_movable_threads(
    isolated_cpu: int, window: Window, scope: Scope, cpu_facts: CpuFacts, traders: list[Trader]
) -> None:
    """A second thread on a spinner's CPU takes turns with it, and brings the tick back for as long as it is runnable.

    Found: each thread that could run elsewhere and ran here, and each thread of user space that is pinned here,
    though it may sleep now. If it is the trading thread itself, [[threads]] says so. Kernel threads that belong to
    the CPU (PF_NO_SETAFFINITY) cannot move and are left alone.
    Source: Documentation/admin-guide/kernel-per-CPU-kthreads.rst; Documentation/timers/no_hz.rst.
    """
    found = strangers(trespassers(window, isolated_cpu, scope.isolated), traders, isolated_cpu)
    if not found:
        return
    housekeeping = format_cpulist(scope.housekeeping & scope.online)
    fixes = [_fix(one, isolated_cpu, housekeeping) for one in found]
    if isolated_cpu not in cpu_facts.kernel_isolated | cpu_facts.partitioned and not all(one.pinned for one in found):
        fixes.append(f"the kernel does not isolate CPU {isolated_cpu}: tunectl apply, and reboot")
    failing(
        f"CPU {isolated_cpu} is not left alone: {some(_seen(one) for one in found)}",
        some(dict.fromkeys(fixes)),
        observed=len(found),
        desired=0,
    )


def _seen(one: Trespass) -> str:
    thread = one.run.thread
    kind = "kernel thread" if thread.kernel else "thread"
    name = f"{kind} {thread.comm} (pid {thread.pid}" + (f", tid {thread.tid})" if thread.tid != thread.pid else ")")
    share = f"{one.run.busy:.0%} of the time" if one.run.busy >= 0.01 else "briefly"
    did = f"ran here, {share}" if one.run.ran else "sleeps"
    return f"{name} is pinned here and {did}" if one.pinned else f"{name} {did}"


def _fix(one: Trespass, cpu: int, housekeeping: str) -> str:
    thread = one.run.thread
    if one.pinned:
        move = f"taskset -cp {housekeeping} {thread.tid}"
        return f"{move}; if it is the trading thread itself, declare it: [[threads]] in the host file, with cpu = {cpu}"
    if thread.comm.startswith("kworker/u"):
        return "keep unbound work on the housekeeping CPUs: /sys/devices/virtual/workqueue/cpumask"
    if thread.kernel and thread.comm.startswith("irq/"):
        irq = thread.comm.removeprefix("irq/").partition("-")[0]
        return f"echo {housekeeping} > /proc/irq/{irq}/smp_affinity_list"
    return f"taskset -cp {housekeeping} {thread.tid}"
