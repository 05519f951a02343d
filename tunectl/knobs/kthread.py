"""Kernel threads and where they may run."""

from typing import Any

from tunectl.command import as_data
from tunectl.knobs.codecs import CPULIST, satisfies
from tunectl.knobs.drivers.kthreads import KthreadFacts, Kthreads, NodeThreads
from tunectl.knobs.row import Absence, Facts, Judgement, Knob
from tunectl.model import Match, Outcome, Reading, Severity
from tunectl.wording import few

_SHOWN = 8  # names of threads that cannot move, in one line
_UNSEEN = "of kernel threads that cannot be seen nothing is known"


def judge_kthread(knob: Knob, desired: Any, reading: Reading, facts: Facts) -> Judgement:
    """The summary names threads that belong to isolated CPUs, which is right; any other thread has to move."""
    found = reading.of_facts(KthreadFacts)
    shown = knob.codec.show(reading.value), knob.codec.show(desired)
    if satisfies(Match.WITHIN, reading.value, desired):
        names = few(found.bound, _SHOWN)
        stay = f"expected on isolated CPUs, because they cannot be moved: {names}" if names else ""
        return Judgement(Outcome.COMPLIANT, *shown, stay)
    reason = f"kernel thread {as_data(found.comm)} (pid {reading.instance}) may run on CPUs {shown[0]}"
    if found.delivered:
        reason += f", though its interrupt is delivered to CPU {knob.codec.show(found.delivered)}"
    return Judgement(Outcome.DRIFTED, *shown, reason)


KNOBS = (
    Knob(
        "kthread.affinity",
        Kthreads(),
        CPULIST,
        Severity.INTERRUPT,
        match=Match.WITHIN,
        judge=judge_kthread,
        why="A kernel thread that may use every CPU (rcuo, kthreadd and its children) is woken wherever it ran "
        "last; without nohz_full= on the command line the kernel does not keep them away from isolated CPUs. The "
        "thread of an interrupt is SCHED_FIFO 50: left on an isolated CPU it preempts whatever has a lower priority.",
        source="Documentation/admin-guide/kernel-per-CPU-kthreads.rst",
        after=("workqueue.cpumask", "cpuset.isolated", "irq.affinity"),
        absence=Absence(harmless=_UNSEEN),
    ),
    Knob(
        "kthread.node_affinity",
        NodeThreads(),
        CPULIST,
        Severity.STALL,
        match=Match.WITHIN,
        why="The kernel gives kswapd and kcompactd the CPUs of their memory node, isolated or not, nohz_full= or not; "
        "kcompactd gets them again whenever a CPU of that node comes online. Where memory gets short they run for "
        "milliseconds, and take turns with a spinner.",
        risk="where a node has no housekeeping CPU, its memory is reclaimed and compacted from another node",
        source="mm/vmscan.c, kswapd(); mm/compaction.c, kcompactd(), kcompactd_cpu_online()",
        after=("cpuset.isolated",),
        absence=Absence(harmless="no CPU has to be kept from threads that a kernel does not have"),
    ),
)
