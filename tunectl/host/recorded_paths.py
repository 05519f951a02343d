"""What a recording of a host holds beside the files that the knobs read: an explicit list.

The knob table says itself what its rows read (knobs.files_read()); here is what topology, checks, the monitor and the
readers of other tuners need. Nothing that is in neither list is ever read for a recording.

Left out on purpose: environments and command lines of processes (they hold secrets), hardware
addresses and serial numbers, keys, logs, the operator's own files, and MSRs. secrets.py takes out what is secret in
the files that are recorded.
"""

from __future__ import annotations

MARK = "tunectl-recording.json"  # tells a recording from any other tree below a root
_CPU = "sys/devices/system/cpu"
_ONE = f"{_CPU}/cpu[0-9]*"
_NET = "sys/class/net/*"
_PCI = "numa_node local_cpulist irq vendor device msi_irqs/*"
_POLICY = (
    "scaling_driver scaling_governor scaling_cur_freq scaling_available_frequencies scaling_setspeed cpuinfo_min_freq "
    "cpuinfo_max_freq cpuinfo_transition_latency bios_limit related_cpus affected_cpus base_frequency amd_pstate_*"
)


def _below(directory: str, names: str) -> tuple[str, ...]:
    return tuple(f"{directory}/{name}" for name in names.split())


# Shell patterns, a directory at a time; links on the way are recorded as links.
FILES = (
    *_below("proc", "cmdline cpuinfo interrupts loadavg meminfo softirqs stat uptime version"),
    *_below("proc/irq/[0-9]*", "smp_affinity smp_affinity_list effective_affinity effective_affinity_list"),
    *_below("proc/irq/[0-9]*", "affinity_hint node spurious"),
    *_below("proc/[0-9]*", "comm stat status cgroup task/*/comm task/*/stat task/*/status"),
    *_below("proc/sys/kernel", "arch hostname osrelease ostype version random/boot_id"),
    *_below("proc/sys/kernel", "watchdog watchdog_thresh sched_rt_period_us"),
    "proc/meminfo",
    *_below("proc/sys/vm", "dirty_ratio dirty_background_ratio"),
    *_below("proc/sys/net/core", "netdev_budget netdev_max_backlog"),
    *_below(_CPU, "present online possible offline isolated nohz_full kernel_max smt/active"),
    *_below(_CPU, "cpuidle/current_driver cpuidle/current_governor cpuidle/current_governor_ro"),
    *_below(_CPU, "cpufreq/boost intel_pstate/* amd_pstate/* vulnerabilities/*"),
    *_below(_ONE, "online cpu_capacity topology/* node[0-9]*"),
    *_below(f"{_ONE}/cache/index*", "level type size id shared_cpu_list shared_cpu_map coherency_line_size"),
    *_below(f"{_ONE}/cpufreq", _POLICY),
    *_below(f"{_ONE}/cpuidle/state*", "name desc latency residency default_status usage time above below"),
    *_below(_ONE, "thermal_throttle/* acpi_cppc/nominal_freq acpi_cppc/highest_perf acpi_cppc/lowest_freq"),
    *_below("sys/devices", "cpu/type cpu_core/cpus cpu_atom/cpus cpu_lowpower/cpus"),
    *_below("sys/devices/system/node", "online possible has_cpu has_memory node[0-9]*/cpulist node[0-9]*/cpumap"),
    *_below("sys/devices/system/node/node[0-9]*", "distance meminfo hugepages/*/*_hugepages"),
    *_below("sys/devices/system/clocksource/clocksource0", "current_clocksource available_clocksource"),
    *_below("sys/devices/virtual/workqueue", "cpumask_requested cpumask_isolated writeback/cpumask"),
    *_below("sys/kernel/irq/[0-9]*", "actions chip_name hwirq name type wakeup per_cpu_count"),
    *_below("sys/kernel", "security/lockdown debug/kprobes/list"),
    *_below("sys/kernel/tracing", "current_tracer set_event kprobe_events uprobe_events function_profile_enabled"),
    *_below("sys/kernel/tracing/instances/*", "current_tracer set_event"),
    "proc/sys/kernel/stack_tracer_enabled",
    *_below("sys/kernel/debug/sched/fair_server/cpu[0-9]*", "runtime period"),
    *_below("sys/module", "intel_idle/parameters/max_cstate processor/parameters/max_cstate"),
    "sys/bus/pci/devices/*/link/*_aspm",
    *_below(_NET, "operstate speed mtu type carrier device/driver"),
    *_below(f"{_NET}/device", _PCI),
    *_below(f"{_NET}/device/..", _PCI),
    *_below(f"{_NET}/queues/*", "rps_cpus rps_flow_cnt xps_cpus tx_timeout"),
    *_below("sys/class/thermal/thermal_zone*", "type temp mode policy trip_point_*_temp trip_point_*_type"),
    *_below("sys/class/thermal/cooling_device*", "type cur_state max_state"),
    *_below("sys/class/hwmon/hwmon*", "name"),
    *_below("sys/class/dmi/id", "sys_vendor product_name bios_version chassis_asset_tag"),
    *_below("sys/hypervisor", "type"),
    *_below("sys/fs/cgroup", "cpuset.cpus.effective cpuset.cpus.isolated"),
    *_below("sys/fs/cgroup/*", "cpuset.cpus cpuset.cpus.effective cpuset.cpus.partition"),
    *_below("etc", "os-release kernel/install.conf"),
    *_below("etc", "tuned/active_profile tuned/profile_mode tuned/bootcmdline sysctl.conf sysctl.d/*.conf"),
    *_below("etc", "tuned/*-variables.conf tuned/*/tuned.conf tuned/profiles/*/tuned.conf tlp.conf tlp.d/*.conf"),
    *_below("etc", "default/cpupower sysconfig/cpupower cpupower-service.conf default/cpufrequtils auto-cpufreq.conf"),
    "sys/devices/system/cpu/modalias",
    *(f"{place}/modprobe.d/*.conf" for place in ("etc", "run", "usr/local/lib", "usr/lib", "lib")),
    *(
        f"{place}/systemd/zram-generator.conf{more}"
        for place in ("etc", "run", "usr/lib")
        for more in ("", ".d/*.conf")
    ),
    *_below("etc", "tmpfiles.d/*.conf sysfs.conf sysfs.d/*.conf udev/rules.d/*.rules"),
    *_below("usr/lib", "tuned/*/tuned.conf tuned/profiles/*/tuned.conf tmpfiles.d/*.conf udev/rules.d/*.rules"),
    *_below("run", "tmpfiles.d/*.conf udev/rules.d/*.rules sysctl.d/*.conf"),
    *_below("usr/lib", "os-release sysctl.d/*.conf"),
    "usr/local/lib/sysctl.d/*.conf",
    "usr/share/tlp/defaults.conf",
)

# Of these only that they are there matters: recorded as empty files.
PRESENCE = (
    *_below("usr/sbin", "update-grub grub-mkconfig grub2-mkconfig grubby irqbalance"),
    *_below("usr/bin", "bootctl kernel-install rpm-ostree"),
    *_below("etc", "zipl.conf kernel/postinst.d/z50-raspi-firmware"),
    *_below("run", "ostree-booted ostree/staged-deployment"),
)
DIRECTORIES = (
    "etc/default/grub.d",
    "etc/udev/rules.d",
    "sys/firmware/efi",
    "proc/irq",
    "sys/kernel/debug/sched",
    "sys/class/net",
    f"{_NET}/queues/*",
)

# Reading these runs code on the CPU they belong to (docs/kernel-facts.md); an isolated CPU is left alone.
INTERRUPTS_ITS_CPU = (
    "scaling_cur_freq",  # 4.13 to 5.18
    "base_frequency",
    "energy_performance_preference",
    "energy_perf_bias",
    "nominal_freq",
    "highest_perf",
    "lowest_freq",
)
# A zone of this type reads an MSR on a CPU of its package, whichever the kernel chose.
DISTURBING_ZONE = "x86_pkg_temp"
