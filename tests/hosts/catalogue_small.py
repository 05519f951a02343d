"""The recorded hosts with odd corners: small, virtual, sparse, hybrid, ARM."""

from tests.hosts.parts import INTEL_IDLE, VIRTIO_NET, platform, queues
from tests.hosts.spec import Cpu, Frequency, HostSpec, Idle, Irq, Nic


def lab4() -> HostSpec:
    """The QEMU lab: 4 CPUs, no SMT, acpi-cpufreq with three frequencies, managed nvme queues."""
    governors = ("performance", "powersave", "schedutil")
    steps = (3500000, 2400000, 1200000)
    frequency = Frequency("acpi-cpufreq", governors, "schedutil", 1200000, 3500000, steps_khz=steps, bios_limit=True)
    admin = Irq(24, "nvme0q0", 0, "PCI-MSIX-0000:00:03.0", 0, count=20)
    nvme = (admin, *queues(25, "nvme0q", 4, [0, 1, 2, 3], "0000:00:03.0", managed=True, start=1))
    net = ("virtio0-config", "virtio0-input.0", "virtio0-output.0")
    virtio = tuple(Irq(30 + n, name, n, "PCI-MSIX-0000:00:04.0", n, count=500 * n) for n, name in enumerate(net))
    return HostSpec(
        "lab4",
        tuple(Cpu(cpu, cpu) for cpu in range(4)),
        frequency=frequency,
        idle=(Idle("POLL", 0, 0), Idle("C1", 2, 2), Idle("C2", 10, 20), Idle("C3", 133, 600)),
        irqs=(*platform("timer", "i8042", "ttyS0", "rtc0", "acpi"), *nvme, *virtio),
        nics=(Nic("eth0", "virtio_net", "0000:00:04.0", (30, 31, 32), speed=-1, virtio=True, ethtool=VIRTIO_NET),),
        thermal_zones=(("acpitz", 45000),),
        hypervisor="QEMU",
        daemons=("irqbalance",),
        files={"etc/default/irqbalance": "# Configuration for the irqbalance daemon\n#IRQBALANCE_BANNED_CPULIST=\n"},
    )


def vm2() -> HostSpec:
    """A small cloud machine: 2 CPUs, no cpufreq, no cpuidle, a paravirtual clock."""
    return HostSpec(
        "vm2",
        tuple(Cpu(n, n) for n in range(2)),
        model="Intel(R) Xeon(R) Processor",
        tsc_mhz=2300,
        clocksources=("kvm-clock", "tsc", "acpi_pm"),
        hypervisor="QEMU",
        irqs=tuple(
            Irq(24 + n, name, n % 2, "PCI-MSIX-0000:00:03.0", n, count=100 * n)
            for n, name in enumerate(("virtio1-config", "virtio1-input.0", "virtio1-output.0"))
        ),
        nics=(Nic("ens3", "virtio_net", "0000:00:03.0", (24, 25, 26), speed=-1, virtio=True, ethtool=VIRTIO_NET),),
    )


def sparse() -> HostSpec:
    """CPU numbers with holes, CPU 0 switched off, offline CPUs without a topology; an old kernel."""
    online = (2, 3, 8, 9)
    cpus = [Cpu(0, 0, online=False), *(Cpu(n, n // 2) for n in online), Cpu(12, 6, online=False)]
    return HostSpec(
        "sparse",
        tuple(cpus),
        kernel="5.14.0-427.el9.x86_64",
        possible=frozenset(range(16)),
        smt="on",
        irqs=(Irq(16, "acpi", 2, "IO-APIC", 16, count=3), Irq(30, "weird name \udcff#1", 3, count=9)),
        frequency=Frequency(
            "acpi-cpufreq",
            ("performance", "ondemand"),
            "ondemand",
            1200000,
            2801000,
            steps_khz=(2801000, 2800000, 1200000),
            boost=True,
        ),
    )


def hybrid() -> HostSpec:
    """4 performance cores with two threads each, 8 efficient cores in clusters of four; systemd-boot."""
    performance = tuple(Cpu(n, n // 2 * 4) for n in range(8))
    efficient = tuple(Cpu(n, 16 + n, l2=100 + n // 4, efficient=True) for n in range(8, 16))
    frequency = Frequency(
        "intel_pstate",
        ("performance", "powersave"),
        "powersave",
        800000,
        5100000,
        3400000,
        efficient_max_khz=3900000,
        efficient_base_khz=2500000,
        preferences=True,
    )
    return HostSpec(
        "hybrid",
        performance + efficient,
        kernel="6.8.0-45-generic",
        os="ubuntu",
        loader="systemd-boot",
        model="13th Gen Intel(R) Core(TM) i5-13500",
        tsc_mhz=2496,
        smt="on",
        frequency=frequency,
        idle=INTEL_IDLE,
        irqs=(*platform("timer", "rtc0"), *queues(120, "enp3s0-TxRx-", 4, [0, 2, 4, 6], "0000:03:00.0")),
        nics=(Nic("enp3s0", "igc", "0000:03:00.0", (120, 121, 122, 123), speed=2500, queues=4),),
        hwmon=("coretemp",),
        throttle=True,
        daemons=("thermald",),
        # The display controller of the chip, as i915 leaves it.
        files={
            "sys/bus/pci/devices/0000:00:02.0/class": "0x030000\n",
            "sys/bus/pci/devices/0000:00:02.0/power/control": "auto\n",
        },
    )


def arm64() -> HostSpec:
    """64 cores, aarch64: /proc/cpuinfo without flags, cppc_cpufreq, cpu_capacity."""
    frequency = Frequency(
        "cppc_cpufreq", ("ondemand", "performance", "schedutil"), "ondemand", 1000000, 3000000, nominal_mhz=3000
    )
    return HostSpec(
        "arm64",
        tuple(Cpu(n, n) for n in range(64)),
        kernel="6.12.9-arm64",
        arch="aarch64",
        vendor="",
        smt="notimplemented",
        frequency=frequency,
        idle=(Idle("LPI-0", 1, 1), Idle("LPI-1", 20, 40)),
        clocksources=("arch_sys_counter",),
        irqs=queues(90, "eth0-q", 8, range(8), "0000:01:00.0"),
        nics=(Nic("eth0", "ena", "0000:01:00.0", tuple(range(90, 98)), speed=25000, queues=8),),
    )
