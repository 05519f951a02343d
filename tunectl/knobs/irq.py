"""Where device interrupts go: the default mask, each interrupt's own, and irqbalance's ban list."""

from typing import Any

from tunectl.command import as_data
from tunectl.fix import APPLY, NOTHING, to_decide
from tunectl.knobs.codecs import CPULIST, CPUMASK
from tunectl.knobs.drivers.irqaffinity import IrqAffinity, IrqFacts
from tunectl.knobs.drivers.irqbalance import BanList, judge_ban
from tunectl.knobs.drivers.kthreads import FIFO, IrqThreads
from tunectl.knobs.drivers.pseudofile import PseudoFile
from tunectl.knobs.row import Absence, Facts, Judgement, Knob
from tunectl.model import Match, Outcome, Reading, Severity

# Of an interrupt that the kernel places itself.
KEPT_OFF = to_decide(
    "boot with isolcpus=managed_irq,domain,... (knob boot.isolcpus): then the kernel keeps it off; or use fewer queues",
    settled_by=("boot.isolcpus", "managed_irq"),
)


def judge_irq(knob: Knob, desired: Any, reading: Reading, facts: Facts) -> Judgement:
    """An interrupt is where it should be when it is delivered to housekeeping CPUs, and its mask has no others.

    One that the kernel manages has a mask of its own, which nobody else can write: there the first is enough. Before
    6.12 only a write tells which these are: with isolcpus=managed_irq one that nobody has tried is unknown. One that
    no driver uses cannot fire: the default mask, on which it would start, has a row of its own.
    """
    show = knob.codec.show
    if reading.facts is None:
        return Judgement(Outcome.COMPLIANT, show(reading.value), show(desired))
    found = reading.of_facts(IrqFacts)
    if found.unused:
        reason = f"no driver uses interrupt {reading.instance}: one that comes starts it on irq.default_affinity"
        return Judgement(Outcome.COMPLIANT, show(reading.value), show(desired), reason)
    if facts.live and found.asked and found.asked <= desired:
        # Without interrupt remapping the kernel moves an interrupt inside its next occurrence.
        reason = f"accepted; the kernel moves it away from CPU {show(found.effective)} with its next interrupt"
        return Judgement(Outcome.COMPLIANT, show(found.asked), show(desired), reason)
    device = f" ({as_data(found.device)})" if found.device else ""
    managed = (knob.name, reading.instance) in facts.refused or found.settable is False
    lax = bool(found.effective) and found.effective <= desired and not found.asked.isdisjoint(desired)
    if lax and (managed or facts.journal):
        return Judgement(Outcome.COMPLIANT, show(found.effective), show(desired))
    if managed:
        return _judge_refused(knob, desired, reading, facts, device)
    if facts.journal:
        reason = (
            f"the journal {facts.journal}: whether the kernel manages interrupt {reading.instance}{device} is not known"
        )
        return Judgement(Outcome.UNREADABLE, show(reading.value), show(desired), reason, changeable=False)
    return _judge_free(knob, desired, reading, facts, device, lax)


def _judge_free(knob: Knob, desired: Any, reading: Reading, facts: Facts, device: str, lax: bool) -> Judgement:
    """One that nobody has seen the kernel keep to itself; `lax`: only its mask lets it go elsewhere."""
    found, show = reading.of_facts(IrqFacts), knob.codec.show
    others = show(found.asked - desired)
    moves = found.settable or (knob.name, reading.instance) in facts.moved
    what = f"interrupt {reading.instance}{device}"
    if lax and not moves and found.asked - desired <= facts.managed_kept:
        reason = f"whether the kernel itself keeps {what} off CPU {others} is not known before `apply` tries to"
        return Judgement(Outcome.UNREADABLE, show(found.asked), show(desired), reason, APPLY)
    if lax:
        where = f"is delivered to CPU {show(found.effective)} now, and its mask lets it go to CPU {others}"
    elif found.effective and found.effective <= desired:
        where = f"is asked to go to CPU {show(found.asked)} with its next interrupt"
    elif found.effective:
        where = f"is delivered to CPU {show(found.effective)}"
    else:
        where = f"may go to CPU {show(found.asked)}"
    return Judgement(Outcome.DRIFTED, show(reading.value), show(desired), f"{what} {where}")


def _judge_refused(knob: Knob, desired: Any, reading: Reading, facts: Facts, device: str) -> Judgement:
    found = reading.of_facts(IrqFacts)
    show = knob.codec.show
    count = facts.irq_counts.get(reading.instance, 0)
    if count is None:
        reason = f"how often interrupt {reading.instance}{device} came is not known: /proc/interrupts cannot be read"
        return Judgement(Outcome.UNREADABLE, None, show(desired), reason, changeable=False)
    fired = f"; {count} so far on isolated CPUs" if count else "; none so far on isolated CPUs"
    what = f"the kernel manages interrupt {reading.instance}{device} itself"
    fix = NOTHING
    if (found.device == "" or not found.effective) and not count:
        reason, harmful = f"{what}; no driver uses it now, so it does not fire", False
    elif not found.asked & desired:
        reason = f"{what}; it may go to isolated CPUs only, so it fires for I/O submitted from them only{fired}"
        harmful = False
    elif facts.managed_pending:
        reason = f"{what}; isolcpus=managed_irq moves it to a housekeeping CPU with the next boot{fired}"
        harmful = False
    else:
        reason = f"{what}; it serves housekeeping CPUs too and fires on CPU {show(found.effective)}{fired}"
        fix = KEPT_OFF
        harmful = True
    return Judgement(Outcome.REFUSED, show(reading.value), show(desired), reason, fix, False, harmful)


KNOBS = (
    Knob(
        "irqbalance.banned_cpus",
        BanList(),
        CPULIST,
        Severity.INTERRUPT,
        match=Match.COVERS,
        judge=judge_ban,
        why="irqbalance rewrites every affinity about every ten seconds; a CPU it may use gets interrupts back. "
        "Any ban list switches its automatic ban of isolated and nohz_full CPUs off, so ours is the union.",
        source="irqbalance(1), IRQBALANCE_BANNED_CPULIST",
        risk="irqbalance is restarted once",
        absence=Absence(harmless="no irqbalance moves an interrupt"),
    ),
    Knob(
        "irq.default_affinity",
        PseudoFile("proc/irq/default_smp_affinity"),
        CPUMASK,
        Severity.INTERRUPT,
        match=Match.WITHIN,
        why="An interrupt that is set up later (a driver loads, a NIC is plugged in) starts on this mask.",
        source="Documentation/core-api/irq/irq-affinity.rst",
        after=("irqbalance.banned_cpus",),
    ),
    Knob(
        "irq.affinity",
        IrqAffinity(),
        CPULIST,
        Severity.INTERRUPT,
        match=Match.WITHIN,
        judge=judge_irq,
        why="A device interrupt on an isolated CPU stops the trading thread for its handler, its softirqs and the "
        "cache lines they take; it is judged by where the interrupt is delivered and where its mask lets it go; "
        "by the first alone where the kernel manages it.",
        source="Documentation/core-api/irq/irq-affinity.rst; kernel/irq/proc.c",
        risk="a NIC whose queues were spread over all CPUs now shares the housekeeping CPUs",
        after=("irq.default_affinity", "irqbalance.banned_cpus"),
    ),
    Knob(
        "irq.thread_priority",
        IrqThreads(),
        FIFO,
        Severity.STALL,
        why="Of two threads that are ready on one CPU, the one with the higher priority has it. The kernel starts the "
        "thread of each interrupt as SCHED_FIFO 50 (PREEMPT_RT, boot.threadirqs), the network cards' like all others: "
        "where they share a CPU, the card's threads wait behind those of a disk. A site's choice: no profile sets it.",
        source="kernel/irq/manage.c; sched(7); chrt(1)",
        risk="above a trading thread it preempts that thread with each interrupt; not above one that spins, it never "
        "runs where they share a CPU (check.trading_outranks)",
        after=("net.combined_channels", "net.rx_channels", "net.tx_channels", "net.rx_ring", "net.tx_ring"),
    ),
)
