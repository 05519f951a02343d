"""The recorded servers: several sockets and NUMA nodes, many CPUs."""

from tests.hosts.parts import APART, INTEL_IDLE, MLX5, platform, queues
from tests.hosts.spec import Cache, Cpu, Frequency, HostSpec, Idle, Nic, Node


def xeon2s() -> HostSpec:
    """2 sockets x 8 cores x 2 threads; CPU n and n+16 share a core; intel_pstate with HWP; RHEL and TuneD."""
    cpus = tuple(Cpu(n, n % 8, n % 16 // 8, node=n % 16 // 8, l3=n % 16 // 8) for n in range(32))
    frequency = Frequency(
        "intel_pstate", ("performance", "powersave"), "powersave", 800000, 4400000, 3500000, preferences=True
    )
    node1 = [8, 9, 10, 11, 12, 13, 14, 15]
    irqs = (
        *platform("timer", "rtc0", "acpi"),
        *queues(40, "eno1-TxRx-", 4, [0, 1, 2, 3], "0000:17:00.0"),
        *queues(60, "ens2f0-", 8, node1, "0000:b1:00.0", node=1),
        *queues(80, "nvme0q", 16, range(32), "0000:18:00.0", managed=True, start=1),
    )
    return HostSpec(
        "xeon2s",
        cpus,
        kernel="6.12.0-55.el10.x86_64",
        os="rhel",
        loader="bls",
        model="Intel(R) Xeon(R) Gold 6334 CPU @ 3.60GHz",
        smt="on",
        frequency=frequency,
        idle=INTEL_IDLE,
        nodes=(Node(0, 128000, (10, 21)), Node(1, 128000, (21, 10))),
        irqs=irqs,
        nics=(
            Nic("eno1", "tg3", "0000:17:00.0", (40, 41, 42, 43), speed=1000, queues=4, ethtool=APART),
            Nic(
                "ens2f0", "mlx5_core", "0000:b1:00.0", tuple(range(60, 68)), node=1, speed=25000, queues=8, ethtool=MLX5
            ),
        ),
        thermal_zones=(("x86_pkg_temp", 52000), ("x86_pkg_temp", 50000)),
        hwmon=("coretemp", "coretemp", "nvme"),
        uncore=("package_00_die_00", "package_01_die_00"),
        energy_bias=6,
        throttle=True,
        daemons=("tuned", "irqbalance"),
        files={
            "etc/tuned/active_profile": "throughput-performance\n",
            "etc/tuned/profile_mode": "auto\n",
            "etc/sysconfig/irqbalance": "#IRQBALANCE_ONESHOT=\nIRQBALANCE_BANNED_CPULIST=\n",
            "etc/sysctl.d/90-site.conf": "# set by the site\nvm.swappiness = 10\nkernel/numa_balancing = 1\n",
        },
    )


def epyc() -> HostSpec:
    """1 socket in NPS4, 16 cores x 2, four L3 caches; one node has memory and no CPU; amd-pstate."""
    cpus = tuple(Cpu(n, n % 16, die=0, node=(0, 1, 3, 3)[n % 16 // 4], l3=n % 16 // 4) for n in range(32))
    frequency = Frequency(
        "amd-pstate-epp",
        ("performance", "powersave"),
        "powersave",
        400000,
        3700000,
        nominal_mhz=2850,
        preferences=True,
        boost=True,
        policy_boost=True,
    )
    distances = ((10, 12, 12, 12), (12, 10, 12, 12), (12, 12, 10, 12), (12, 12, 12, 10))
    return HostSpec(
        "epyc",
        cpus,
        kernel="6.8.0-45-generic",
        os="ubuntu",
        vendor="AuthenticAMD",
        model="AMD EPYC 9124 16-Core Processor",
        tsc_mhz=2850,
        smt="on",
        frequency=frequency,
        idle=(Idle("POLL", 0, 0), Idle("C1", 1, 2), Idle("C2", 100, 200)),
        nodes=tuple(Node(n, 64000, distances[n]) for n in range(4)),
        irqs=(*platform("timer", "acpi"), *queues(50, "mlx5_comp", 8, range(12, 16), "0000:c1:00.0", node=3)),
        nics=(
            Nic(
                "enp193s0",
                "mlx5_core",
                "0000:c1:00.0",
                tuple(range(50, 58)),
                node=3,
                speed=100000,
                queues=8,
                ethtool=MLX5,
            ),
        ),
        hwmon=("k10temp",),
        daemons=("irqbalance", "power-profiles-daemon"),
        files={
            "etc/default/irqbalance": "IRQBALANCE_BANNED_CPULIST=30-31\n",
            "etc/default/grub.d/50-cloudimg-settings.cfg": 'GRUB_CMDLINE_LINUX_DEFAULT="console=tty1 console=ttyS0"\n',
        },
    )


def big() -> HostSpec:
    """1,152 CPUs: 9 sockets x 64 cores x 2; masks of 36 groups."""
    cpus = tuple(Cpu(n, n % 64, n % 576 // 64, node=n % 576 // 64, l3=n % 576 // 8) for n in range(1152))
    nodes = tuple(Node(n, 256000, tuple(10 if n == m else 32 for m in range(9))) for n in range(9))
    irqs = queues(200, "ens1-", 16, range(64), "0000:31:00.0")
    return HostSpec(
        "big",
        cpus,
        kernel="6.12.1-amd64",
        smt="on",
        nodes=nodes,
        irqs=irqs,
        nics=(Nic("ens1", "ice", "0000:31:00.0", tuple(range(200, 216)), queues=16),),
        caches=(Cache(1, "Data", 48), Cache(2, "Unified", 2048), Cache(3, "Unified", 32768)),
    )


def generated(cpus: int = 256, irqs: int = 4096) -> HostSpec:
    """Two sockets, SMT, and as many interrupts as asked, half of them managed: for measuring speed."""
    cores = cpus // 2

    def cpu(number: int) -> Cpu:
        package = number % cores * 2 // cores
        return Cpu(number, number % cores, package, node=package, l3=number % cores // 8)

    half = irqs // 2
    everywhere = range(cpus)
    rows = (
        *queues(100, "nvme0q", half, everywhere, "0000:18:00.0", managed=True, start=1),
        *queues(100 + half, "ens1-", irqs - half, everywhere, "0000:b1:00.0", node=1),
    )
    frequency = Frequency(
        "intel_pstate", ("performance", "powersave"), "powersave", 800000, 4000000, 2900000, preferences=True
    )
    return HostSpec(
        "generated",
        tuple(cpu(number) for number in range(cpus)),
        kernel="6.12.1-amd64",
        smt="on",
        frequency=frequency,
        idle=INTEL_IDLE,
        nodes=(Node(0, 256000, (10, 21)), Node(1, 256000, (21, 10))),
        irqs=rows,
        nics=(Nic("ens1", "ice", "0000:b1:00.0", tuple(range(100 + half, 100 + half + 64)), node=1, queues=64),),
        throttle=True,
    )
