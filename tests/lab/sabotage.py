"""Ways to break a tuned host behind the tool's back. Each is found by name, and silent once its fix was followed.

The rows of a round happen together, for a look at the host costs seconds here; no two break the same target.
"""

from enum import Enum
from typing import NamedTuple

CPU = "/sys/devices/system/cpu"


class Kind(Enum):
    """What is broken. Each kind has a row in a round that CI plays; a quick test keeps it so."""

    VALUE = "a value in /proc or /sys"
    INTERRUPT = "where interrupts go"
    CPU = "a CPU goes offline"
    CONFIG = "another program's configuration"
    SERVICE = "our own service"
    PROGRAM = "a program that tunes starts"
    THREAD = "a thread on an isolated CPU"
    BOOT_SOURCE = "what the boot menu is made from"
    BOOT_MENU = "the boot menu itself"


class Sabotage(NamedTuple):
    """One row of the matrix."""

    kind: Kind
    name: str
    breaks: str  # a shell command in the guest
    finds: tuple[str, ...]  # the targets that must be reported as failing; none: this breaks nothing, and is no alarm
    command: str = "verify"
    follows: tuple[str, ...] = ()  # patterns of further targets that this breaks for as long as it lasts


class Round(NamedTuple):
    """What happens together."""

    rows: tuple[Sabotage, ...]
    long: bool = False  # played in the long set only; CI plays the others, which have each kind of row and of fix
    reboots: bool = False  # all of it takes effect with the next boot
    after: str = ""  # the round whose mended host this one breaks next: its reboot shows that the mending lasts


def _file(name: str, path: str, value: str, target: str, kind: Kind = Kind.VALUE) -> Sabotage:
    return Sabotage(kind, name, f"echo {value} > {path}", (target,))


def _governor(cpu: int, name: str) -> Sabotage:
    path = f"{CPU}/cpu{cpu}/cpufreq/scaling_governor"
    return _file(f"governor of CPU {cpu}: {name}", path, name, f"cpufreq.governor[{cpu}]")


_NIC_IRQ = "$(grep virtio0-input /proc/interrupts | head -1 | cut -d: -f1 | tr -d ' ')"
_GRUB_CFG = "/boot/grub/grub.cfg"
_DROP_IN = "/etc/default/grub.d/99-tunectl.cfg"
_SPIN = "sh -c 'while :; do :; done'"

_VALUES = Round(
    (
        Sabotage(  # the first: the others break what it leaves
            Kind.CPU,
            "CPU off and on again",
            f"cd {CPU}/cpu3; echo 0 > online; sleep 1; echo 1 > online; echo 0 > cpuidle/state3/disable",
            ("cpuidle.max_latency_us[3]",),
        ),
        *(_governor(cpu, "powersave") for cpu in range(4)),
        _file("C3 re-enabled on CPU 2", f"{CPU}/cpu2/cpuidle/state3/disable", "0", "cpuidle.max_latency_us[2]"),
        _file(
            "latency limit lifted", f"{CPU}/cpu3/power/pm_qos_resume_latency_us", "0", "cpuidle.resume_latency_us[3]"
        ),
        _file("clock capped", f"{CPU}/cpu2/cpufreq/scaling_max_freq", "1200000", "cpufreq.max_khz[2]"),
        _file(
            "default interrupt mask reset",
            "/proc/irq/default_smp_affinity",
            "f",
            "irq.default_affinity",
            Kind.INTERRUPT,
        ),
        _file("workqueue mask reset", "/sys/devices/virtual/workqueue/cpumask", "f", "workqueue.cpumask"),
        _file("huge pages on", "/sys/kernel/mm/transparent_hugepage/enabled", "always", "mm.thp_enabled"),
        _file("compaction on page faults", "/sys/kernel/mm/transparent_hugepage/defrag", "always", "mm.thp_defrag"),
        _file("ksmd started", "/sys/kernel/mm/ksm/run", "1", "mm.ksm"),
        _file("swappiness", "/proc/sys/vm/swappiness", "60", "mm.swappiness"),
        _file("watchdog on all CPUs", "/proc/sys/kernel/watchdog_cpumask", "0-3", "kernel.watchdog_cpumask"),
        _file("timers stay", "/proc/sys/kernel/timer_migration", "0", "kernel.timer_migration"),
        _file("statistics every second", "/proc/sys/vm/stat_interval", "1", "kernel.stat_interval"),
        _file("real-time throttling", "/proc/sys/kernel/sched_rt_runtime_us", "950000", "kernel.sched_rt_runtime_us"),
        Sabotage(
            Kind.INTERRUPT,
            "one interrupt moved",  # irqbalance would mend it behind our back, within ten seconds
            f"systemctl stop irqbalance; echo 2 > /proc/irq/{_NIC_IRQ}/smp_affinity_list",
            ("irq.affinity[NIC]",),
        ),
        Sabotage(
            Kind.CONFIG,
            "irqbalance's ban list emptied",
            "sed -i 's/^IRQBALANCE_BANNED_CPULIST=.*/IRQBALANCE_BANNED_CPULIST=/' /etc/default/irqbalance",
            ("irqbalance.banned_cpus",),
        ),
        Sabotage(Kind.SERVICE, "service disabled", "systemctl -q disable tunectl-apply", ("systemd.apply_at_boot",)),
    )
)

_FILES = Round(
    (
        _governor(2, "schedutil"),
        _file("C2 re-enabled on CPU 3", f"{CPU}/cpu3/cpuidle/state2/disable", "0", "cpuidle.max_latency_us[3]"),
        Sabotage(
            Kind.SERVICE, "service removed", "rm /etc/systemd/system/tunectl-apply.service", ("systemd.apply_at_boot",)
        ),
        Sabotage(
            Kind.BOOT_SOURCE,
            "later grub.d file overwrites ours",
            "echo 'GRUB_CMDLINE_LINUX_DEFAULT=quiet' > /etc/default/grub.d/zz.cfg; update-grub 2>/dev/null",
            (
                "boot.isolcpus",
                "boot.nohz_full",
                "boot.rcu_nocbs",
                "boot.irqaffinity",
                "boot.skew_tick",
                "boot.nosoftlockup",
                "boot.tsc",
            ),
        ),
    ),
    long=True,
)

_OTHERS = Round(
    (
        Sabotage(
            Kind.PROGRAM,
            "irqbalance started without its ban",
            "systemctl stop irqbalance; env -u IRQBALANCE_BANNED_CPULIST IRQBALANCE_BANNED_CPUS=0"
            " setsid irqbalance --foreground >/dev/null 2>&1 & sleep 2",
            ("check.other_tuners[irqbalance]",),
            command="check",
            follows=("irq.affinity[*]",),
        ),
        Sabotage(
            Kind.THREAD,
            "thread pinned on an isolated CPU",
            "taskset -c 2 sleep 1000 >/dev/null 2>&1 &",
            ("check.movable_threads[2]",),
            command="check",
        ),
        Sabotage(
            Kind.THREAD,
            "busy thread on an isolated CPU",
            f"taskset -c 3 {_SPIN} >/dev/null 2>&1 & sleep 1",
            ("check.movable_threads[3]",),
            command="check",
            follows=("check.tick_off[3]",),
        ),
        Sabotage(
            Kind.CONFIG,
            "sysctl.d file that wins",
            "echo vm.swappiness = 60 > /etc/sysctl.d/99-zz.conf",
            ("check.other_tuners[sysctl.d]",),
            command="check",
        ),
        Sabotage(
            Kind.BOOT_SOURCE,
            "our drop-in loses an argument",
            f"sed -i 's/ skew_tick=1//' {_DROP_IN}; update-grub 2>/dev/null",
            ("boot.skew_tick",),
        ),
    )
)

_HAND = Round(
    (
        Sabotage(Kind.CPU, "CPU off", f"echo 0 > {CPU}/cpu3/online", ("cpu.online[3]",)),
        Sabotage(
            Kind.BOOT_MENU,
            "default boot entry edited by hand",
            f"chmod u+w {_GRUB_CFG}; sed -i 's/ tsc=reliable//' {_GRUB_CFG}",
            ("boot.tsc",),
        ),
    ),
    long=True,
)

_BOOT = Round(
    (
        Sabotage(
            Kind.BOOT_SOURCE,
            "duplicate isolcpus with another list",
            "sed -i 's/^GRUB_CMDLINE_LINUX=\"/&isolcpus=domain,3 /' /etc/default/grub; update-grub 2>/dev/null",
            ("boot.isolcpus",),
        ),
        Sabotage(
            Kind.BOOT_MENU,
            "argument dropped by hand",
            f"chmod u+w {_GRUB_CFG}; sed -i 's/ nohz_full=2-3//' {_GRUB_CFG}",
            ("boot.nohz_full",),
        ),
        Sabotage(
            Kind.SERVICE,
            "boot without the service",
            "systemctl -q disable tunectl-apply",
            (
                "systemd.apply_at_boot",
                *(f"cpufreq.governor[{cpu}]" for cpu in range(4)),
                *(
                    f"{knob}[{cpu}]"
                    for knob in ("cpuidle.max_latency_us", "cpuidle.resume_latency_us")
                    for cpu in (2, 3)
                ),
                "net.busy_poll",
                "net.busy_read",
                "mm.thp_enabled",
                "mm.thp_defrag",
                "mm.swappiness",
                "kernel.stat_interval",
                "kernel.sched_rt_runtime_us",
            ),
            # the other rows of this boot change what the kernel starts with
            follows=("irq.affinity[*]", "workqueue.cpumask", "kernel.watchdog_cpumask"),
        ),
    ),
    reboots=True,
)

_BOOT_AGAIN = Round(
    (
        Sabotage(
            Kind.BOOT_SOURCE,
            "isolcpus without domain",
            f"sed -i 's/isolcpus=managed_irq,domain,2-3/isolcpus=managed_irq,2-3/' {_DROP_IN}; update-grub 2>/dev/null",
            ("boot.isolcpus",),
        ),
        Sabotage(
            Kind.BOOT_MENU,
            "another argument dropped by hand",
            f"chmod u+w {_GRUB_CFG}; sed -i 's/ skew_tick=1//' {_GRUB_CFG}",
            ("boot.skew_tick",),
        ),
        Sabotage(
            Kind.BOOT_MENU,
            "callbacks argument dropped by hand, and nohz_full= offloads the same CPUs",
            f"sed -i 's/ rcu_nocbs=2-3//' {_GRUB_CFG}",
            (),
        ),
    ),
    long=True,
    reboots=True,
    after="boot",
)

ROUNDS = {
    "values": _VALUES,
    "files": _FILES,
    "others": _OTHERS,
    "by-hand": _HAND,
    "boot": _BOOT,
    "boot-again": _BOOT_AGAIN,
}
