"""Unbound workqueues."""

from tunectl.knobs.codecs import CPUMASK
from tunectl.knobs.drivers.pseudofile import PseudoFile
from tunectl.knobs.row import Knob
from tunectl.model import Match, Severity

CPUMASK_FILE = "sys/devices/virtual/workqueue/cpumask"  # where unbound work may run
KNOBS = (
    Knob(
        "workqueue.cpumask",
        PseudoFile(CPUMASK_FILE),
        CPUMASK,
        Severity.INTERRUPT,
        match=Match.WITHIN,
        why="Unbound kernel work runs on any CPU of this mask; the residual 1 Hz tick work of nohz_full CPUs is "
        "itself such work and must be done elsewhere.",
        source="Documentation/core-api/workqueue.rst; kernel/sched/core.c, sched_tick_remote()",
        after=("irq.affinity",),
    ),
)
