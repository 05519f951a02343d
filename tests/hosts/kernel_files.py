"""/proc and the kernel-wide half of /sys of a generated host: stock values, but for what its boot says."""

from tests.hosts.spec import HostSpec
from tests.hosts.tree import Tree
from tunectl.cpulist import format_cpulist, format_cpumask

_SOFTIRQS = ("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU")
_X86_FLAGS = "fpu vme de pse tsc msr pae mce cx8 apic sse sse2 ht syscall nx rdtscp lm constant_tsc nonstop_tsc"


def write_kernel(tree: Tree, spec: HostSpec) -> None:
    """Everything that is not a CPU, an interrupt, a device or a configuration file."""
    _write_identity(tree, spec)
    _write_sysctls(tree, spec)
    _write_memory(tree, spec)
    _write_statistics(tree, spec)
    tree.text("proc/cpuinfo", _cpuinfo(spec))
    _write_workqueue(tree, spec)
    clock = "sys/devices/system/clocksource/clocksource0"
    tree.values(clock, current_clocksource=spec.clocksources[0], available_clocksource=" ".join(spec.clocksources))
    _write_nodes(tree, spec)
    tree.value("sys/module/pcie_aspm/parameters/policy", "[default] performance powersave powersupersave")
    tree.values("sys/bus/pci/devices/0000:00:1c.0/link", l1_aspm=0, clkpm=0)


def running_cmdline(spec: HostSpec) -> str:
    """What this boot was given."""
    by_grub = spec.loader in ("grub", "suse-grub", "bls", "rpm-ostree")
    image = f"BOOT_IMAGE=/boot/vmlinuz-{spec.kernel}" if by_grub else "initrd=\\initrd.img"
    return " ".join([image, "root=UUID=5f3c-0001", "ro", "quiet", *spec.boot_words()])


def _write_identity(tree: Tree, spec: HostSpec) -> None:
    tree.value("proc/cmdline", running_cmdline(spec))
    version = f"Linux version {spec.kernel} (builder@{spec.os}) (gcc 12.2.0) #1 SMP PREEMPT_DYNAMIC"
    tree.value("proc/version", version)
    kernel = "proc/sys/kernel"
    tree.values(kernel, hostname=spec.name, osrelease=spec.kernel, ostype="Linux", version="#1 SMP PREEMPT_DYNAMIC")
    tree.value(f"{kernel}/random/boot_id", f"00000000-0000-4000-8000-{sum(spec.name.encode()):012d}")
    if spec.kernel_version >= (6, 1):  # kernel/utsname_sysctl.c has it since 6.1
        tree.value(f"{kernel}/arch", spec.arch)
    tree.value("proc/uptime", "86400.00 340000.00")
    tree.value("sys/kernel/security/lockdown", "[none] integrity confidentiality")
    if spec.hypervisor:
        tree.values("sys/class/dmi/id", sys_vendor=spec.hypervisor, product_name="Standard PC (Q35)")
    elif spec.arch == "x86_64":
        tree.values("sys/class/dmi/id", sys_vendor="Generated Systems", product_name=spec.name)


def _write_sysctls(tree: Tree, spec: HostSpec) -> None:
    hard = int(not spec.hypervisor and spec.arch == "x86_64")
    soft = 0 if spec.tuned_boot else 1
    tree.values(
        "proc/sys/kernel",
        numa_balancing=int(len(spec.nodes) > 1),
        nmi_watchdog=hard,
        soft_watchdog=soft,
        watchdog=hard | soft,
        watchdog_cpumask=format_cpulist(spec.all_possible - spec.tuned_boot),
        watchdog_thresh=10,
        timer_migration=1,
        sched_rt_runtime_us=950000,
        sched_rt_period_us=1000000,
    )
    tree.values("proc/sys/vm", swappiness=60, stat_interval=1, dirty_ratio=20)
    tree.values("proc/sys/net/core", busy_poll=0, busy_read=0, rps_sock_flow_entries=0)
    tree.directory("sys/kernel/debug/sched")  # as root sees it
    if spec.kernel_version >= (6, 12):  # "sched/fair: Fair server interface"
        for cpu in sorted(spec.all_possible):
            tree.values(f"sys/kernel/debug/sched/fair_server/cpu{cpu}", runtime=50_000_000, period=1_000_000_000)


def _write_memory(tree: Tree, spec: HostSpec) -> None:
    huge = "sys/kernel/mm/transparent_hugepage"
    tree.values(huge, enabled="always [madvise] never", defrag="always defer defer+madvise [madvise] never")
    tree.values("sys/kernel/mm/ksm", run=0, pages_to_scan=100, pages_shared=0)
    total = sum(node.memory_mib for node in spec.nodes) * 1024
    tree.text("proc/meminfo", f"MemTotal:       {total} kB\nMemFree:        {total // 2} kB\n")
    tree.text("proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")


def _write_workqueue(tree: Tree, spec: HostSpec) -> None:
    allowed = format_cpumask(spec.all_possible - spec.tuned_boot, nr_cpus=spec.nr_cpus)
    directory = "sys/devices/virtual/workqueue"
    tree.value(f"{directory}/cpumask", allowed)
    tree.value(f"{directory}/writeback/cpumask", allowed)
    if spec.kernel_version >= (6, 12):
        tree.value(f"{directory}/cpumask_requested", format_cpumask(spec.all_possible, nr_cpus=spec.nr_cpus))
        tree.value(f"{directory}/cpumask_isolated", format_cpumask(spec.tuned_boot, nr_cpus=spec.nr_cpus))


def _write_statistics(tree: Tree, spec: HostSpec) -> None:
    online = sorted(spec.online)
    lines = [f"cpu  {9 * len(online)} 0 {4 * len(online)} {900 * len(online)} 0 0 0 0 0 0"]
    lines += [f"cpu{cpu} 9 0 4 900 0 0 0 0 0 0" for cpu in online]
    total = sum(irq.count for irq in spec.irqs)
    lines += [f"intr {total}", "ctxt 123456", "btime 1790000000", "processes 4321"]
    lines += ["procs_running 1", "procs_blocked 0"]
    tree.text("proc/stat", "\n".join([*lines, "softirq 0 0 0 0 0 0 0 0 0 0 0", ""]))
    possible = sorted(spec.all_possible)
    rows = [" " * 15 + "".join(f" CPU{cpu:<7}" for cpu in possible).rstrip()]
    rows += [f"{name:>12}:" + "".join(f" {100 + cpu:>10}" for cpu in possible) for name in _SOFTIRQS]
    tree.text("proc/softirqs", "\n".join([*rows, ""]))


def _cpuinfo(spec: HostSpec) -> str:
    blocks = []
    for cpu in spec.cpus:
        if not cpu.online:
            continue
        if spec.arch == "aarch64":
            lines = [f"processor\t: {cpu.cpu}", "BogoMIPS\t: 50.00", "CPU implementer\t: 0x41", "CPU part\t: 0xd0c"]
        else:
            flags = _X86_FLAGS + (" hypervisor" if spec.hypervisor else "")
            lines = [f"processor\t: {cpu.cpu}", f"vendor_id\t: {spec.vendor}", f"model name\t: {spec.model}"]
            lines += [f"cpu MHz\t\t: {spec.tsc_mhz}.000", f"physical id\t: {cpu.package}", f"core id\t\t: {cpu.core}"]
            lines += [f"flags\t\t: {flags}"]
        blocks.append("\n".join(lines) + "\n\n")
    return "".join(blocks)


def _write_nodes(tree: Tree, spec: HostSpec) -> None:
    directory = "sys/devices/system/node"
    if not spec.nodes:
        return
    ids = format_cpulist(node.node for node in spec.nodes)
    with_cpus = {cpu.node for cpu in spec.cpus if cpu.online}
    tree.values(directory, online=ids, possible=ids, has_memory=ids, has_cpu=format_cpulist(with_cpus))
    for node in spec.nodes:
        cpus = frozenset(cpu.cpu for cpu in spec.cpus if cpu.online and cpu.node == node.node)
        below = f"{directory}/node{node.node}"
        tree.value(f"{below}/cpulist", format_cpulist(cpus))
        tree.value(f"{below}/cpumap", format_cpumask(cpus, nr_cpus=spec.nr_cpus))
        tree.value(f"{below}/distance", " ".join(str(distance) for distance in node.distances))
        kib = node.memory_mib * 1024
        total, free = (
            f"Node {node.node} {name}:       {n} kB\n" for name, n in (("MemTotal", kib), ("MemFree", kib // 2))
        )
        tree.text(f"{below}/meminfo", total + free)
        for size in (2048, 1048576):
            tree.values(f"{below}/hugepages/hugepages-{size}kB", nr_hugepages=0, free_hugepages=0, surplus_hugepages=0)
        for cpu in sorted(cpus):
            tree.link(f"{below}/cpu{cpu}", f"../../cpu/cpu{cpu}")
