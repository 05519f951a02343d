"""Settings, files and services changed behind the tool's back: the first rows of the matrix.

The rows of a round happen together, for a look at the host costs seconds here; no two break the same target, unless
`says` tells them apart.
"""

from ..sabotage import (
    ALL,
    ARGUMENTS,
    CPU,
    ISOLATED,
    THP,
    Kind,
    Round,
    Sabotage,
    each,
    governor,
    value,
    with_frequencies,
    with_grub,
    with_idle_states,
)

NIC_IRQ = "$(grep virtio0-input /proc/interrupts | head -1 | cut -d: -f1 | tr -d ' ')"
_GRUB_CFG = "/boot/grub/grub.cfg"
_DROP_IN = "/etc/default/grub.d/99-tunectl.cfg"
_SPIN = "sh -c 'while :; do :; done'"

_VALUES = Round(
    (
        with_idle_states(
            Sabotage(  # the first: the others break what it leaves
                Kind.CPU,
                "CPU off and on again",
                f"cd {CPU}/cpu3; echo 0 > online; sleep 1; echo 1 > online; echo 0 > cpuidle/state3/disable",
                ("cpuidle.max_latency_us[3]",),
                follows=("kthread.node_affinity[kcompactd0]",),  # it gets CPU 3, too, until our rule has run
            )
        ),
        *(governor(cpu, "powersave") for cpu in range(4)),
        with_idle_states(
            value("C3 re-enabled on CPU 2", f"{CPU}/cpu2/cpuidle/state3/disable", "0", "cpuidle.max_latency_us[2]")
        ),
        with_idle_states(
            value(
                "latency limit lifted",
                f"{CPU}/cpu3/power/pm_qos_resume_latency_us",
                "0",
                "cpuidle.resume_latency_us[3]",
            )
        ),
        with_frequencies(
            value("clock capped", f"{CPU}/cpu2/cpufreq/scaling_max_freq", "1200000", "cpufreq.max_khz[2]")
        ),
        value(
            "default interrupt mask reset",
            "/proc/irq/default_smp_affinity",
            "f",
            "irq.default_affinity",
            Kind.INTERRUPT,
        ),
        Sabotage(
            Kind.THREAD,
            "kswapd has all CPUs of its node again",
            "taskset -pc 0-3 $(pgrep -x kswapd0) >/dev/null",
            ("kthread.node_affinity[kswapd0]",),
            who="a script that undoes the affinity of every thread",
        ),
        value("workqueue mask reset", "/sys/devices/virtual/workqueue/cpumask", "f", "workqueue.cpumask"),
        *(
            value(name, f"{THP}/{file}", "always", target)._replace(
                needs=f"test -d {THP}", lacks="this kernel has no transparent huge pages (PREEMPT_RT)"
            )
            for name, file, target in (
                ("huge pages on", "enabled", "mm.thp_enabled"),
                ("compaction on page faults", "defrag", "mm.thp_defrag"),
            )
        ),
        value("ksmd started", "/sys/kernel/mm/ksm/run", "1", "mm.ksm"),
        value("swappiness", "/proc/sys/vm/swappiness", "60", "mm.swappiness"),
        value("watchdog on all CPUs", "/proc/sys/kernel/watchdog_cpumask", "0-3", "kernel.watchdog_cpumask"),
        value("timers stay", "/proc/sys/kernel/timer_migration", "0", "kernel.timer_migration"),
        value("statistics every second", "/proc/sys/vm/stat_interval", "1", "kernel.stat_interval"),
        value("real-time throttling", "/proc/sys/kernel/sched_rt_runtime_us", "950000", "kernel.sched_rt_runtime_us"),
        Sabotage(
            Kind.INTERRUPT,
            "one interrupt moved",  # irqbalance would mend it behind our back, within ten seconds
            f"systemctl stop irqbalance; echo 2 > /proc/irq/{NIC_IRQ}/smp_affinity_list",
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
        governor(2, "schedutil"),
        value("C2 re-enabled on CPU 3", f"{CPU}/cpu3/cpuidle/state2/disable", "0", "cpuidle.max_latency_us[3]"),
        Sabotage(
            Kind.SERVICE, "service removed", "rm /etc/systemd/system/tunectl-apply.service", ("systemd.apply_at_boot",)
        ),
        Sabotage(
            Kind.BOOT_SOURCE,
            "later grub.d file overwrites ours",
            "echo 'GRUB_CMDLINE_LINUX_DEFAULT=quiet' > /etc/default/grub.d/zz.cfg; update-grub 2>/dev/null",
            ARGUMENTS,
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
            follows=("irq.affinity[*]", "check.device_interrupts[*]"),
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
            says=("thread sh",),
        ),
        Sabotage(
            Kind.CONFIG,
            "sysctl.d file that wins",
            "echo vm.swappiness = 60 > /etc/sysctl.d/99-zz.conf",
            ("check.other_tuners[sysctl.d]",),
            command="check",
        ),
        with_grub(
            Sabotage(
                Kind.BOOT_SOURCE,
                "our drop-in loses an argument",
                f"sed -i 's/ skew_tick=1//' {_DROP_IN}; update-grub 2>/dev/null",
                ("boot.skew_tick",),
            )
        ),
    )
)

_HAND = Round(
    (
        Sabotage(Kind.CPU, "CPU off", f"echo 0 > {CPU}/cpu3/online", ("cpu.online[3]",)),
        Sabotage(
            Kind.BOOT_MENU,
            "our words moved to /etc/default/grub, and the menu edited by hand",
            f"words=$(sed -n 's/.*DEFAULT[}} ]*\\(.*\\)\"/\\1/p' {_DROP_IN}); rm {_DROP_IN}; "
            'sed -i "s/^GRUB_CMDLINE_LINUX=\\"/&$words /" /etc/default/grub; '
            f"chmod u+w {_GRUB_CFG}; sed -i 's/ tsc=reliable//' {_GRUB_CFG}",
            ("boot.tsc",),
            who="an operator who keeps all boot arguments in one file",
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
                "kthread.node_affinity[kswapd0]",
                "kthread.node_affinity[kcompactd0]",
                *each("cpufreq.governor", ALL),
                *each("cpuidle.max_latency_us", ISOLATED),
                *each("cpuidle.resume_latency_us", ISOLATED),
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
