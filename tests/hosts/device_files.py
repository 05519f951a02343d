"""Interrupts, network interfaces and sensors of a generated host."""

from tests.hosts.spec import HostSpec, Irq, Nic
from tests.hosts.tree import Tree
from tunectl.cpulist import format_cpulist, format_cpumask

_X86_ROWS = (
    ("NMI", "Non-maskable interrupts"),
    ("LOC", "Local timer interrupts"),
    ("SPU", "Spurious interrupts"),
    ("PMI", "Performance monitoring interrupts"),
    ("IWI", "IRQ work interrupts"),
    ("RES", "Rescheduling interrupts"),
    ("CAL", "Function call interrupts"),
    ("TLB", "TLB shootdowns"),
    ("TRM", "Thermal event interrupts"),
    ("MCE", "Machine check exceptions"),
    ("MCP", "Machine check polls"),
)
_L1 = ("l1_aspm", "l1_1_aspm", "l1_2_aspm", "l1_1_pcipm", "l1_2_pcipm")
_ARM_ROWS = (("IPI0", "Rescheduling interrupts"), ("IPI1", "Function call interrupts"), ("IPI5", "IRQ work interrupts"))


def write_devices(tree: Tree, spec: HostSpec) -> None:
    """/proc/irq, /proc/interrupts, /sys/kernel/irq, /sys/class/net, thermal zones and hwmon."""
    allowed = format_cpumask(spec.all_possible - spec.tuned_boot, nr_cpus=spec.nr_cpus)
    tree.value("proc/irq/default_smp_affinity", allowed)
    for irq in spec.irqs:
        _write_irq(tree, spec, irq)
    tree.text("proc/interrupts", interrupts_text(spec))
    tree.directory("sys/class/net")
    for nic in spec.nics:
        _write_nic(tree, spec, nic)
    _write_loopback(tree)
    for number, (kind, millidegrees) in enumerate(spec.thermal_zones):
        tree.values(f"sys/class/thermal/thermal_zone{number}", type=kind, temp=millidegrees)
    for number, name in enumerate(spec.hwmon):
        tree.value(f"sys/class/hwmon/hwmon{number}/name", name)
        tree.value(f"sys/class/hwmon/hwmon{number}/temp1_input", 45000)


def _write_irq(tree: Tree, spec: HostSpec, irq: Irq) -> None:
    affinity, effective = spec.placed(irq)
    directory = f"proc/irq/{irq.irq}"
    # Since 6.12 the mode says which interrupts the kernel moves itself; before, all look settable.
    mode = 0o444 if irq.managed and spec.kernel_version >= (6, 12) else 0o644
    tree.value(f"{directory}/smp_affinity", format_cpumask(affinity, nr_cpus=spec.nr_cpus), mode)
    tree.value(f"{directory}/smp_affinity_list", format_cpulist(affinity), mode)
    target = {effective} & spec.online
    tree.value(f"{directory}/effective_affinity", format_cpumask(target, nr_cpus=spec.nr_cpus), 0o444)
    tree.value(f"{directory}/effective_affinity_list", format_cpulist(target), 0o444)
    tree.value(f"{directory}/affinity_hint", format_cpumask((), nr_cpus=spec.nr_cpus), 0o444)
    tree.value(f"{directory}/node", irq.node, 0o444)
    tree.text(f"{directory}/spurious", "count 0\nunhandled 0\nlast_unhandled 0 ms\n", 0o444)
    if irq.action and "/" not in irq.action:
        tree.directory(f"{directory}/{irq.action}")
    counts = ",".join(str(irq.count if cpu == effective else 0) for cpu in sorted(spec.all_possible))[:4095]
    tree.values(
        f"sys/kernel/irq/{irq.irq}",
        actions=irq.action,
        chip_name=irq.chip,
        hwirq=irq.hwirq,
        name="edge",
        type="edge",
        wakeup="disabled",
        per_cpu_count=counts,
    )


def interrupts_text(spec: HostSpec) -> str:
    """/proc/interrupts: a column for each online CPU."""
    online = sorted(spec.online)
    column = {cpu: index for index, cpu in enumerate(online)}
    zero = f"{0:>10} "
    lines = ["     " + "".join(f"{'CPU' + str(cpu):>10} " for cpu in online)]
    for irq in spec.irqs:
        if not irq.action:
            continue
        cells = [zero] * len(online)
        _, effective = spec.placed(irq)
        if effective in column:
            cells[column[effective]] = f"{irq.count:>10} "
        lines.append(f"{irq.irq:>3}: {''.join(cells)} {irq.chip:>8} {irq.hwirq:>3}-edge      {irq.action}")
    for label, text in _ARM_ROWS if spec.arch == "aarch64" else _X86_ROWS:
        cells = [f"{_local(label, cpu in spec.tuned_boot):>10} " for cpu in online]
        lines.append(f"{label:>3}: {''.join(cells)}  {text}")
    tail = ["Err:          0"] if spec.arch == "aarch64" else ["ERR:          0", "MIS:          0"]
    return "\n".join([*lines, *tail, ""])


def _local(label: str, isolated: bool) -> int:
    busy = {"LOC": 120000, "RES": 900, "CAL": 1200, "TLB": 80, "IPI0": 900, "IPI1": 1200}.get(label, 0)
    return busy // 100 if isolated else busy


def _write_nic(tree: Tree, spec: HostSpec, nic: Nic) -> None:
    pci = f"sys/devices/pci0000:00/{nic.bus}"
    device = f"{pci}/virtio0" if nic.virtio else pci
    up = device.count("/") + 1  # directories of the path, with one more below
    tree.link(f"sys/class/net/{nic.name}", f"../../{device.removeprefix('sys/')}/net/{nic.name}")
    net = f"{device}/net/{nic.name}"
    tree.values(net, operstate="up" if nic.up else "down", speed=nic.speed, mtu=1500, type=1, carrier=int(nic.up))
    tree.values(net, gro_flush_timeout=0, napi_defer_hard_irqs=0)
    for setting, value in nic.ethtool.items():
        tree.value(f"ethtool/{nic.name}/{setting}", value)
    tree.link(f"{net}/device", f"../../../{device.rpartition('/')[2]}")
    tree.link(f"{net}/subsystem", "../" * (up + 1) + "class/net")
    for queue in range(nic.queues):
        tree.value(f"{net}/queues/rx-{queue}/rps_cpus", format_cpumask((), nr_cpus=spec.nr_cpus))
        tree.value(f"{net}/queues/rx-{queue}/rps_flow_cnt", 0)
        if nic.queues > 1:  # a queue that is the only one has no such choice (net/core/net-sysfs.c)
            tree.value(f"{net}/queues/tx-{queue}/xps_cpus", format_cpumask((), nr_cpus=spec.nr_cpus))
        else:
            tree.value(f"{net}/queues/tx-{queue}/tx_timeout", 0)
    driver = f"bus/{'virtio' if nic.virtio else 'pci'}/drivers/{nic.driver}"
    tree.link(f"{device}/driver", "../" * (up - 1) + driver)
    tree.directory(f"sys/{driver}")
    tree.value(f"{pci}/numa_node", nic.node if len(spec.nodes) > 1 else -1)
    local = frozenset(cpu.cpu for cpu in spec.cpus if cpu.online and cpu.node == nic.node)
    tree.value(f"{pci}/local_cpulist", format_cpulist(local))
    for irq in nic.irqs:
        tree.value(f"{pci}/msi_irqs/{irq}", "msix")
    tree.value(f"{pci}/irq", min(nic.irqs, default=0))
    tree.values(f"{pci}/power", control="on", runtime_status="active")
    if not nic.virtio:
        tree.values(f"{pci}/link", l0s_aspm=0, **dict.fromkeys(_L1, 0))
    tree.link(f"sys/bus/pci/devices/{nic.bus}", f"../../../devices/pci0000:00/{nic.bus}")


def _write_loopback(tree: Tree) -> None:
    tree.link("sys/class/net/lo", "../../devices/virtual/net/lo")
    tree.values("sys/devices/virtual/net/lo", operstate="unknown", mtu=65536, type=772)
    tree.value("sys/devices/virtual/net/lo/queues/rx-0/rps_cpus", "0")
