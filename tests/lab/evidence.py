"""Whether a finding is true, by the kernel's own files: the product's reading of them has no part in this."""

import re

from .lab import Lab


def reaches_isolated(lab: Lab, target: str) -> bool:
    """Does the kernel's own file say that this reaches CPU 2 or 3, or that it is gone?"""
    instance = target.partition("[")[2].rstrip("]")
    if target == "workqueue.cpumask":
        return bool(int(lab.read("/sys/devices/virtual/workqueue/cpumask"), 16) & 0b1100)
    if target == "kernel.watchdog_cpumask":
        return bool({2, 3} & cpus(lab.read("/proc/sys/kernel/watchdog_cpumask")))
    if target.startswith("check.ipis["):
        before = sent(lab, int(instance))
        lab.run("sleep 2")
        return sent(lab, int(instance)) - before > 20
    if target.startswith("check.device_interrupts["):  # one of a card's, which the kernel lets be moved
        rows = [line for line in lab.read("/proc/interrupts").splitlines() if re.search("-(in|out)put", line)]
        asked = (lab.read(f"/proc/irq/{row.split(':')[0].strip()}/smp_affinity_list") for row in rows)
        return any(int(instance) in cpus(text) for text in asked)
    if target == "irq.default_affinity":
        return bool(int(lab.read("/proc/irq/default_smp_affinity"), 16) & 0b1100)
    if target == "irqbalance.banned_cpus":  # the daemon's own environment
        ban = "tr '\\0' '\\n' < /proc/$(pgrep -xo irqbalance)/environ | sed -n 's/^IRQBALANCE_BANNED_CPULIST=//p'"
        return not {2, 3} <= cpus(lab.run(ban).out.strip())
    if target.startswith("irq.affinity["):
        folder = f"/proc/irq/{instance}"
        return bool({2, 3} & cpus(lab.read(f"{folder}/smp_affinity_list")))
    if target.startswith("check.tick_off["):
        before = ticks(lab, int(instance))
        lab.run(f"taskset -c {instance} timeout 2 sh -c 'while :; do :; done'", check=False)  # what would trade there
        return ticks(lab, int(instance)) - before > 50
    if target == "kernel.sched_rt_runtime_us":  # what stops a real-time spinner in spite of it
        return lab.run("grep -qvx 0 /sys/kernel/debug/sched/fair_server/cpu[23]/runtime", check=False).code == 0
    if target.startswith("cpufreq."):  # nobody offers a frequency any more
        return not lab.run("ls -d /sys/devices/system/cpu/cpufreq/policy*", check=False).out
    raise AssertionError(f"nothing here tells whether {target} is true")


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
