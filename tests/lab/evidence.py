"""Whether a finding is true, by the kernel's own files: the product's reading of them has no part in this."""

import re
from collections.abc import Callable, Mapping

from .commands import ask_irqbalance
from .lab import Lab

Tells = Callable[[Lab, str], bool]
_ISOLATED = {2, 3}


def reaches_isolated(lab: Lab, target: str) -> bool:
    """Does the kernel's own file say that this reaches CPU 2 or 3, or that it is gone?"""
    name, _, instance = target.partition("[")
    tells = _TELLS.get(name) or next((tells for begins, tells in _TELLS.items() if name.startswith(f"{begins}.")), None)
    assert tells, f"nothing here tells whether {target} is true"
    return tells(lab, instance.rstrip("]"))


def _mask(path: str) -> Tells:
    return lambda lab, _: bool(int(lab.read(path), 16) & 0b1100)


def _watchdog(lab: Lab, _: str) -> bool:
    return bool(_ISOLATED & cpus(lab.read("/proc/sys/kernel/watchdog_cpumask")))


def _ban(lab: Lab, _: str) -> bool:
    """The daemon's own environment; or its own word, a mask: irqbalance-ui changes its list while it runs."""
    ban = "tr '\\0' '\\n' < /proc/$(pgrep -xo irqbalance)/environ | sed -n 's/^IRQBALANCE_BANNED_CPULIST=//p'"
    word = re.search("BANNED ([0-9a-f]+)", lab.run(ask_irqbalance("setup"), check=False).out)
    return not cpus(lab.run(ban).out.strip()) >= _ISOLATED or bool(word and int(word[1], 16) & 0b1100 != 0b1100)


def _affinity(lab: Lab, irq: str) -> bool:
    return bool(_ISOLATED & cpus(lab.read(f"/proc/irq/{irq}/smp_affinity_list")))


def read_wide_masks(lab: Lab) -> set[str]:
    """The targets of interrupts that may reach an isolated CPU at this moment: a balancer moves them within seconds."""
    lines = lab.run("grep -H . /proc/irq/*/smp_affinity_list", check=False).out.splitlines()
    return {f"irq.affinity[{path.split('/')[3]}]" for path, _, text in (line.partition(":") for line in lines)
            if _ISOLATED & cpus(text)}  # fmt: skip


def _arrives(lab: Lab, cpu: str) -> bool:
    """One of a card's interrupts, which the kernel lets be moved, is asked to go there, or a balancer may ask it to.

    A balancer without its ban moves an interrupt there and away again: what the mask says now proves nothing.
    """
    if lab.run("pgrep -xo irqbalance", check=False).code == 0 and _ban(lab, ""):
        return True
    rows = [line for line in lab.read("/proc/interrupts").splitlines() if re.search("-(in|out)put", line)]
    asked = (lab.read(f"/proc/irq/{row.split(':')[0].strip()}/smp_affinity_list") for row in rows)
    return any(int(cpu) in cpus(text) for text in asked)


def _threaded(lab: Lab, cpu: str) -> bool:
    """The thread of an interrupt may run there."""
    masks = lab.run("grep -h ^Cpus_allowed_list $(pgrep '^irq/' | sed 's|.*|/proc/&/status|')", check=False).out
    return any(int(cpu) in cpus(line.split()[1]) for line in masks.splitlines())


def _of_node(lab: Lab, name: str) -> bool:
    status = lab.run(f"grep ^Cpus_allowed_list /proc/$(pgrep -x {name})/status").out
    return bool(_ISOLATED & cpus(status.split()[1]))


def _sent(lab: Lab, cpu: str) -> bool:
    before = sent(lab, int(cpu))
    lab.run("sleep 2")
    return sent(lab, int(cpu)) - before > 20


def _ticks(lab: Lab, cpu: str) -> bool:
    before = ticks(lab, int(cpu))
    lab.run(f"taskset -c {cpu} timeout 2 sh -c 'while :; do :; done'", check=False)  # what would trade there
    return ticks(lab, int(cpu)) - before > 50


def _fair_server(lab: Lab, _: str) -> bool:
    """What stops a real-time spinner in spite of the sysctl."""
    return lab.run("grep -qvx 0 /sys/kernel/debug/sched/fair_server/cpu[23]/runtime", check=False).code == 0


def _no_clock(lab: Lab, _: str) -> bool:
    """Nobody offers a frequency any more."""
    return not lab.run("ls -d /sys/devices/system/cpu/cpufreq/policy*", check=False).out


# By the knob or check, or what its name begins with.
_TELLS: Mapping[str, Tells] = {
    "workqueue.cpumask": _mask("/sys/devices/virtual/workqueue/cpumask"),
    "irq.default_affinity": _mask("/proc/irq/default_smp_affinity"),
    "kernel.watchdog_cpumask": _watchdog,
    "kernel.sched_rt_runtime_us": _fair_server,
    "irqbalance.banned_cpus": _ban,
    "irq.affinity": _affinity,
    "check.device_interrupts": _arrives,
    "kthread.node_affinity": _of_node,
    "check.movable_threads": _threaded,
    "check.ipis": _sent,
    "check.tick_off": _ticks,
    "cpufreq": _no_clock,
}


def cpus(text: str) -> set[int]:
    """A plain CPU list."""
    ends = [part.partition("-") for part in text.split(",") if part]
    return {cpu for first, _, last in ends for cpu in range(int(first), int(last or first) + 1)}


def sent(lab: Lab, cpu: int) -> int:
    """Interrupts of the kernel's own on a CPU so far, other than the timer's."""
    rows = [line.split() for line in lab.read("/proc/interrupts").splitlines()]
    return sum(int(row[1 + cpu]) for row in rows if row[0] in ("CAL:", "TLB:", "RES:", "IWI:"))


def ticks(lab: Lab, cpu: int) -> int:
    """Local timer interrupts of a CPU so far."""
    (row,) = [line for line in lab.read("/proc/interrupts").splitlines() if line.split()[0] == "LOC:"]
    return int(row.split()[1 + cpu])
