"""What can be tuned: THE TABLE. A facility is a file and its name in `ALL`; a knob is a row in it.

The order of the facilities is the order of operations; `after` on a row mends it where it must.
"""

from tunectl.knobs import (
    boot,
    clocksource,
    cpu,
    cpufreq,
    cpuidle,
    cpuset,
    irq,
    kernel,
    kthread,
    limits,
    mm,
    net,
    pcie,
    systemd,
    uncore,
    workqueue,
)
from tunectl.knobs.row import Knob

ALL = (
    *(cpu, net, irq, workqueue, cpuset, kthread, cpuidle, cpufreq, uncore, pcie, clocksource),
    *(mm, limits, kernel, systemd, boot),
)

KNOBS: dict[str, Knob] = {knob.name: knob for facility in ALL for knob in facility.KNOBS}


def files_read() -> tuple[str, ...]:
    """Shell patterns of every file that a row reads, each once: what a recording of a host must hold."""
    return tuple(dict.fromkeys(path for knob in KNOBS.values() for path in knob.driver.reads()))


def in_order(names: list[str]) -> list[str]:
    """The names in the order in which they must be written: the table's, and every `after` before its row."""
    asked = set(names)
    done: dict[str, None] = {}

    def visit(name: str) -> None:
        for earlier in KNOBS[name].after:
            if earlier in asked and earlier not in done:
                visit(earlier)
        done.setdefault(name)

    for name in KNOBS:
        if name in asked:
            visit(name)
    return list(done)
