"""The NICs that carry market data: their queues, how long they hold a packet back, and who processes it.

A change of channels sets up new interrupts, so those rows come first and the interrupts are placed afterwards.
"""

from typing import Any

from tunectl.knobs.codecs import COUNT, CPULIST, CPUMASK, NATURAL, SWITCH
from tunectl.knobs.drivers.irqaffinity import IrqFacts, QueueIrqs
from tunectl.knobs.drivers.nicfile import NicFile
from tunectl.knobs.drivers.pseudofile import PseudoFile
from tunectl.knobs.row import Facts, Judgement, Knob
from tunectl.model import Match, Outcome, Reading, Severity

_NIC = "sys/class/net/{nic}"
_SPEC = "Documentation/networking/ethtool-netlink.rst"
_SCALING = "Documentation/networking/scaling.rst"
_NAPI = "Documentation/networking/napi.rst"
_RESETS = "most drivers take the link down for a moment, and set up the queues' interrupts again"


def judge_queue_irq(knob: Knob, desired: Any, reading: Reading, facts: Facts) -> Judgement:
    """A queue's interrupt is where it should be when it is delivered to its one CPU."""
    show = knob.codec.show
    if reading.facts is None:
        return Judgement(Outcome.COMPLIANT, show(reading.value), show(desired))
    found = reading.of_facts(IrqFacts)
    irq = f"interrupt {reading.instance}" + (f" ({found.device})" if found.device else "")
    if (knob.name, reading.instance) in facts.refused or found.settable is False:
        reason = f"the kernel manages {irq} itself"
        return Judgement(Outcome.REFUSED, show(reading.value), show(desired), reason, changeable=False, harmful=False)
    if facts.live and found.asked == desired:
        reason = f"accepted; the kernel moves {irq} with its next occurrence"
        return Judgement(Outcome.COMPLIANT, show(found.asked), show(desired), reason)
    elsewhere = found.effective and found.effective != desired
    where = f"is delivered to CPU {show(found.effective)}" if elsewhere else f"may go to CPU {show(found.asked)}"
    return Judgement(Outcome.DRIFTED, show(reading.value), show(desired), f"{irq} {where}")


def _size(name: str, severity: Severity, path: str, why: str, end: str = "") -> Knob:
    """How many channels there are, or how long a ring is: a number up to one that the driver says."""
    driver = NicFile(f"ethtool/{{nic}}/{path}{end}", f"ethtool/{{nic}}/{path}-max", resets=True)
    return Knob(name, driver, COUNT, severity, why, _SPEC, _RESETS)


def _delay(name: str, path: str, why: str) -> Knob:
    """How long the NIC holds an interrupt back; some drivers refuse a fixed delay while an adaptive one is in force."""
    risk = "an interrupt for nearly every packet" + (" sent" if path.startswith("tx") else "")
    driver = NicFile(f"ethtool/{{nic}}/coalesce/{path}")
    return Knob(name, driver, NATURAL, Severity.SLOWER, why, _SPEC, risk, after=("net.adaptive_rx", "net.adaptive_tx"))


def _switch(name: str, path: str, why: str, risk: str) -> Knob:
    return Knob(name, NicFile(f"ethtool/{{nic}}/{path}"), SWITCH, Severity.SLOWER, why, _SPEC, risk)


KNOBS = (
    _size(
        *("net.combined_channels", Severity.INTERRUPT, "channels/combined"),
        "Each channel is a queue pair with an interrupt of its own: as many as there are CPUs to serve them, no more.",
        "-count",
    ),
    _size(
        *("net.rx_channels", Severity.INTERRUPT, "channels/rx"),
        "Where receive queues have channels of their own, each is one more interrupt to place.",
        "-count",
    ),
    _size(
        *("net.tx_channels", Severity.SLOWER, "channels/tx"),
        "Where transmit queues have channels of their own, threads that share one wait for its lock.",
        "-count",
    ),
    _size(
        *("net.rx_ring", Severity.STALL, "rings/rx"),
        "A burst that is longer than the ring is dropped; a ring that is longer than the cache makes every packet "
        "a cache miss.",
    ),
    _size(
        *("net.tx_ring", Severity.SLOWER, "rings/tx"),
        "What is sent while the ring is full waits in the queueing discipline.",
    ),
    _switch(
        *("net.adaptive_rx", "coalesce/use-adaptive-rx"),
        "Adaptive moderation lengthens the wait before a receive interrupt as traffic grows: when a market moves, "
        "every message is held back longer.",
        "more interrupts under load, on the CPUs that serve the NIC",
    ),
    _switch(
        *("net.adaptive_tx", "coalesce/use-adaptive-tx"),
        "Adaptive moderation changes when sent buffers are given back, and with it when the next packet finds room.",
        "more interrupts under load, on the CPUs that serve the NIC",
    ),
    _delay(
        *("net.rx_usecs", "rx-usecs"),
        "The NIC delays its interrupt by this many microseconds after a packet, to see whether more packets come.",
    ),
    _delay(
        *("net.rx_frames", "rx-max-frames"),
        "This many packets end the wait of rx_usecs early; 1 ends it with the first packet.",
    ),
    _delay(
        *("net.tx_usecs", "tx-usecs"),
        "Sent buffers are given back this many microseconds late, in fewer interrupts.",
    ),
    _delay("net.tx_frames", "tx-max-frames", "This many sent packets end the wait of tx_usecs early."),
    _switch(
        *("net.ntuple", "features/rx-ntuple-filter"),
        "Filters in the NIC send a flow to the one queue whose reader wants it, before any CPU looks at a packet.",
        "switching it off removes the filters that are set",
    ),
    _switch(
        *("net.gro", "features/rx-gro"),
        "Generic receive offload merges packets of one TCP stream and delivers them together.",
        "off costs throughput; multicast UDP is not merged anyway",
    ),
    _switch(
        *("net.lro", "features/rx-lro"),
        "The NIC itself merges packets of one TCP stream and delivers the first with the last.",
        "off costs throughput",
    ),
    Knob(
        "net.gro_flush_timeout_ns",
        NicFile(f"{_NIC}/gro_flush_timeout"),
        NATURAL,
        Severity.INTERRUPT,
        why="How long, in ns, a NAPI instance waits for its next poll before a timer stands in for the interrupt: "
        "with napi_defer_hard_irqs and SO_PREFER_BUSY_POLL, a reader that polls is never interrupted.",
        source=_NAPI,
        risk="a reader that stops polling gets its packets this much later",
    ),
    Knob(
        "net.napi_defer_hard_irqs",
        NicFile(f"{_NIC}/napi_defer_hard_irqs"),
        NATURAL,
        Severity.INTERRUPT,
        why="This many polls may find nothing before the queue's interrupt is switched on again.",
        source=_NAPI,
        risk="without gro_flush_timeout_ns it does nothing",
    ),
    Knob(
        "net.busy_poll",
        PseudoFile("proc/sys/net/core/busy_poll"),
        NATURAL,
        Severity.SLOWER,
        why="poll() and select() look into the NIC's queue for so many microseconds before they sleep: no interrupt "
        "and no wake-up lie between packet and reader.",
        source="Documentation/admin-guide/sysctl/net.rst",
        risk="a thread that waits keeps its CPU busy for that long",
        boots_with=0,
    ),
    Knob(
        "net.busy_read",
        PseudoFile("proc/sys/net/core/busy_read"),
        NATURAL,
        Severity.SLOWER,
        why="A blocking read looks into the NIC's queue for so many microseconds before it sleeps; it is the value a "
        "new socket's SO_BUSY_POLL starts with.",
        source="Documentation/admin-guide/sysctl/net.rst",
        risk="a thread that waits keeps its CPU busy for that long",
        boots_with=0,
    ),
    Knob(
        "net.rps_cpus",
        NicFile(f"{_NIC}/queues/{{rx}}/rps_cpus"),
        CPUMASK,
        Severity.INTERRUPT,
        match=Match.NO_OTHER,
        why="Receive packet steering hands packets to these CPUs by an inter-processor interrupt and a softirq.",
        source=_SCALING,
        boots_with="",
    ),
    Knob(
        "net.rps_sock_flow_entries",
        PseudoFile("proc/sys/net/core/rps_sock_flow_entries"),
        NATURAL,
        Severity.INTERRUPT,
        why="Receive flow steering runs the protocol on the CPU where the reader last ran, by an inter-processor "
        "interrupt: on a CPU that is isolated, too. 0 switches it off.",
        source=_SCALING,
        boots_with=0,
    ),
    Knob(
        "net.rps_flow_cnt",
        NicFile(f"{_NIC}/queues/{{rx}}/rps_flow_cnt"),
        NATURAL,
        Severity.INTERRUPT,
        why="The flows of one queue that receive flow steering remembers; 0 leaves the queue out of it.",
        source=_SCALING,
        boots_with=0,
    ),
    Knob(
        "net.xps_cpus",
        NicFile(f"{_NIC}/queues/{{tx}}/xps_cpus"),
        CPUMASK,
        Severity.SLOWER,
        match=Match.EQUAL,
        why="The CPUs whose packets leave by this queue: those that share one share its lock and its cache lines.",
        source=_SCALING,
        after=("net.combined_channels", "net.tx_channels"),
    ),
    Knob(
        "net.queue_irqs",
        QueueIrqs(),
        CPULIST,
        Severity.INTERRUPT,
        judge=judge_queue_irq,
        why="Two queues on one CPU wait for each other; each interrupt of the NIC gets a CPU of this set of its own, "
        "in turn, on the NIC's NUMA node where the set reaches there.",
        source="Documentation/core-api/irq/irq-affinity.rst; Documentation/networking/scaling.rst",
        risk="irqbalance moves it within ten seconds, unless it is stopped or told to leave the interrupt alone",
        after=("irq.affinity", "irqbalance.banned_cpus", "irq.default_affinity"),
    ),
)
